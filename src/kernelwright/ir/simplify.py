"""Canonical index arithmetic under known axis ranges, and safe constant folding of element arithmetic.

What it does: rewrites I64 expressions into a canonical sum of terms, resolves floor division and remainder by ranges
((4*i + j) // 4 with j < 4 is i), decides comparisons and selects that the ranges decide, and folds constants.
What it does not do: reassociate or otherwise change floating-point results (only x*1, x/1, x-0 and exact folds).
Called by fuse and plan after each substitution, by printers for addresses, and by the cost model for strides.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace

from kernelwright.ir.expr import Axis, Call, Const, DType, Expr, Fn, Load, dtype_of, index

Extents = dict[str, int]
Bounds = tuple[int, int]
_Terms = dict[Expr, int]

TRUE = Const(True, DType.BOOL)
FALSE = Const(False, DType.BOOL)


@dataclass(frozen=True)
class Affine:
    """`constant` + the sum of coefficient * axis over `terms` (no zero coefficients)."""

    constant: int
    terms: dict[str, int]

    def coefficient(self, axis: str) -> int:
        """The coefficient of `axis`, 0 where it does not occur."""
        return self.terms.get(axis, 0)


def affine(expr: Expr) -> Affine | None:
    """The affine form of an I64 expression over its axes, or None where it has none."""
    linear = _linear(expr)
    if linear is None:
        return None
    constant, terms = linear
    named: dict[str, int] = {}
    for atom, coefficient in terms.items():
        if not isinstance(atom, Axis):
            return None
        named[atom.name] = coefficient
    return Affine(constant, named)


def bounds(expr: Expr, extents: Extents) -> Bounds | None:
    """Smallest and largest value that the ranges allow `expr` to take, or None where they say nothing."""
    if isinstance(expr, Const):
        return None if isinstance(expr.value, float) else (int(expr.value), int(expr.value))
    if isinstance(expr, Axis):
        extent = extents.get(expr.name)
        return None if extent is None or extent < 1 else (0, extent - 1)
    if isinstance(expr, Call) and (expr.dtype is DType.I64 or expr.dtype is DType.BOOL):
        return _call_bounds(expr, extents)
    return None


def simplify(expr: Expr, extents: Extents) -> Expr:
    """`expr` in canonical form, equal to it for every point of the box 0 <= axis < extents[axis]."""
    return _Simplifier(extents).visit(expr)


def _call_bounds(expr: Call, extents: Extents) -> Bounds | None:
    if expr.dtype is DType.BOOL:
        return (0, 1)
    fn = expr.fn
    if fn in (Fn.ADD, Fn.SUB, Fn.MUL, Fn.NEG):
        linear = _linear(expr)
        return None if linear is None else _linear_bounds(linear[0], linear[1], extents)
    if fn is Fn.CAST:
        return bounds(expr.args[0], extents)
    if fn is Fn.SELECT:
        a, b = bounds(expr.args[1], extents), bounds(expr.args[2], extents)
        return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
    if fn in (Fn.MIN, Fn.MAX):
        a, b = bounds(expr.args[0], extents), bounds(expr.args[1], extents)
        pick = min if fn is Fn.MIN else max
        return None if a is None or b is None else (pick(a[0], b[0]), pick(a[1], b[1]))
    divisor = expr.args[1] if len(expr.args) == 2 else None
    if fn in (Fn.FLOORDIV, Fn.MOD) and isinstance(divisor, Const) and divisor.value > 0:
        d = int(divisor.value)
        a = bounds(expr.args[0], extents)
        if fn is Fn.FLOORDIV:
            return None if a is None else (a[0] // d, a[1] // d)
        return a if a is not None and a[0] >= 0 and a[1] < d else (0, d - 1)
    return None


def _linear_bounds(constant: int, terms: _Terms, extents: Extents) -> Bounds | None:
    low = high = constant
    for atom, coefficient in terms.items():
        b = bounds(atom, extents)
        if b is None:
            return None
        low += coefficient * (b[0] if coefficient > 0 else b[1])
        high += coefficient * (b[1] if coefficient > 0 else b[0])
    return low, high


def _linear(expr: Expr) -> tuple[int, _Terms] | None:
    """`expr` as constant + sum of coefficient * atom; None for what is not I64."""
    if dtype_of(expr) is not DType.I64:
        return None
    if isinstance(expr, Const):
        return int(expr.value), {}
    if isinstance(expr, Call):
        if expr.fn is Fn.NEG:
            return _scaled(_linear(expr.args[0]), -1)
        if expr.fn in (Fn.ADD, Fn.SUB):
            left, right = _linear(expr.args[0]), _linear(expr.args[1])
            return _sum(left, right if expr.fn is Fn.ADD else _scaled(right, -1))
        if expr.fn is Fn.MUL:
            left, right = _linear(expr.args[0]), _linear(expr.args[1])
            if left is not None and not left[1]:
                return _scaled(right, left[0])
            if right is not None and not right[1]:
                return _scaled(left, right[0])
    return 0, {expr: 1}


def _scaled(linear: tuple[int, _Terms] | None, factor: int) -> tuple[int, _Terms] | None:
    if linear is None:
        return None
    constant, terms = linear
    return constant * factor, {a: c * factor for a, c in terms.items() if c * factor}


def _sum(a: tuple[int, _Terms] | None, b: tuple[int, _Terms] | None) -> tuple[int, _Terms] | None:
    if a is None or b is None:
        return None
    terms = dict(a[1])
    for atom, coefficient in b[1].items():
        total = terms.pop(atom, 0) + coefficient
        if total:
            terms[atom] = total
    return a[0] + b[0], terms


def _order(item: tuple[Expr, int]) -> tuple[int, str]:
    atom, coefficient = item
    return -abs(coefficient), atom.name if isinstance(atom, Axis) else "~" + repr(atom)


def _build(constant: int, terms: _Terms) -> Expr:
    """The canonical expression of a linear form: larger strides first, the constant last."""
    out: Expr | None = None
    for atom, coefficient in sorted(terms.items(), key=_order):
        size = abs(coefficient)
        term: Expr = atom if size == 1 else Call(Fn.MUL, (atom, index(size)), DType.I64)
        if out is None:
            out = term if coefficient > 0 else Call(Fn.NEG, (term,), DType.I64)
        else:
            out = Call(Fn.ADD if coefficient > 0 else Fn.SUB, (out, term), DType.I64)
    if out is None:
        return index(constant)
    if constant == 0:
        return out
    return Call(Fn.ADD if constant > 0 else Fn.SUB, (out, index(abs(constant))), DType.I64)


class _Simplifier:
    """One traversal; shared sub-expressions are visited once."""

    def __init__(self, extents: Extents) -> None:
        self.extents = extents
        self.seen: dict[int, Expr] = {}

    def visit(self, expr: Expr) -> Expr:
        known = self.seen.get(id(expr))
        if known is None:
            known = self._fresh(expr)
            self.seen[id(expr)] = known
        return known

    def _fresh(self, expr: Expr) -> Expr:
        if isinstance(expr, Axis):
            return index(0) if self.extents.get(expr.name) == 1 else expr
        if isinstance(expr, Load):
            return replace(expr, index=tuple(self.visit(e) for e in expr.index))
        if not isinstance(expr, Call):
            return expr
        if expr.fn is Fn.SELECT:
            return self._select(expr)
        expr = replace(expr, args=tuple(self.visit(a) for a in expr.args))
        if expr.dtype is DType.I64:
            return self._integer(expr)
        if expr.dtype is DType.BOOL:
            return self._predicate(expr)
        return _fold_float(expr)

    def _select(self, expr: Call) -> Expr:
        condition = self.visit(expr.args[0])
        if isinstance(condition, Const):
            return self.visit(expr.args[1] if condition.value else expr.args[2])
        yes, no = self.visit(expr.args[1]), self.visit(expr.args[2])
        return yes if yes == no else Call(Fn.SELECT, (condition, yes, no), expr.dtype)

    def _integer(self, expr: Call) -> Expr:
        fn = expr.fn
        if fn in (Fn.ADD, Fn.SUB, Fn.MUL, Fn.NEG):
            linear = _linear(expr)
            assert linear is not None
            return self._canonical(*linear)
        if fn in (Fn.FLOORDIV, Fn.MOD) and isinstance(expr.args[1], Const) and expr.args[1].value > 0:
            divide = self.floordiv if fn is Fn.FLOORDIV else self.mod
            return divide(expr.args[0], int(expr.args[1].value))
        if fn is Fn.CAST and dtype_of(expr.args[0]) is DType.I64:
            return expr.args[0]
        if fn is Fn.CAST and isinstance(expr.args[0], Const) and not isinstance(expr.args[0].value, float):
            return index(int(expr.args[0].value))
        if fn in (Fn.MIN, Fn.MAX):
            a, b = (bounds(e, self.extents) for e in expr.args)
            if a is not None and b is not None:
                if a[1] <= b[0]:
                    return expr.args[0 if fn is Fn.MIN else 1]
                if b[1] <= a[0]:
                    return expr.args[1 if fn is Fn.MIN else 0]
        return expr

    def _canonical(self, constant: int, terms: _Terms) -> Expr:
        """Rebuild, after joining c*d*(x // d) + c*(x % d) into c*x."""
        changed = True
        while changed:
            changed = False
            for atom, coefficient in list(terms.items()):
                if not (isinstance(atom, Call) and atom.fn is Fn.MOD and isinstance(atom.args[1], Const)):
                    continue
                quotient = _linear(self.floordiv(atom.args[0], int(atom.args[1].value)))
                if quotient is None or quotient[0] or len(quotient[1]) != 1:
                    continue
                ((whole, times),) = quotient[1].items()
                if times == 1 and terms.get(whole) == coefficient * int(atom.args[1].value):
                    rest = {a: c for a, c in terms.items() if a is not atom and a != whole}
                    joined = _sum((constant, rest), _scaled(_linear(atom.args[0]), coefficient))
                    assert joined is not None
                    constant, terms = joined
                    changed = True
                    break
        return _build(constant, terms)

    def _split(self, expr: Expr, d: int) -> tuple[_Terms, int, _Terms, int]:
        """`expr` = d * (whole, constant) + (rest, constant in [0, d))."""
        linear = _linear(expr)
        assert linear is not None
        whole = {a: c // d for a, c in linear[1].items() if c % d == 0}
        rest = {a: c for a, c in linear[1].items() if c % d}
        return whole, linear[0] // d, rest, linear[0] % d

    def _coarse(self, rest: _Terms, constant: int, d: int) -> tuple[int, _Terms, _Terms, int] | None:
        """The largest g > 1 dividing d with rest = g * coarse + fine and 0 <= fine < g, if there is one."""
        for g in sorted({math.gcd(d, c) for c in rest.values()}, reverse=True):
            if g <= 1 or g >= d:
                continue
            fine = {a: c for a, c in rest.items() if c % g}
            b = _linear_bounds(constant % g, fine, self.extents)
            if b is not None and b[0] >= 0 and b[1] < g:
                return g, {a: c // g for a, c in rest.items() if c % g == 0}, fine, constant % g
        return None

    def floordiv(self, expr: Expr, d: int) -> Expr:
        """`expr // d` for simplified `expr` and d > 0."""
        if d == 1:
            return expr
        whole, base, rest, constant = self._split(expr, d)
        b = _linear_bounds(constant, rest, self.extents)
        if b is not None and b[0] // d == b[1] // d:
            return self._canonical(base + b[0] // d, whole)
        coarse = self._coarse(rest, constant, d)
        if coarse is not None:
            g, terms, _, _ = coarse
            inner = self.floordiv(_build(constant // g, terms), d // g)
        else:
            inner = self._quotient_atom(_build(constant, rest), d)
        joined = _sum((base, whole), _linear(inner))
        assert joined is not None
        return self._canonical(*joined)

    def _quotient_atom(self, expr: Expr, d: int) -> Expr:
        if isinstance(expr, Call) and isinstance(expr.args[-1], Const):
            inner = int(expr.args[-1].value)
            if expr.fn is Fn.FLOORDIV and inner > 0:
                return self.floordiv(expr.args[0], inner * d)
            if expr.fn is Fn.MOD and inner > 0 and inner % d == 0:
                return self.mod(self.floordiv(expr.args[0], d), inner // d)
        return Call(Fn.FLOORDIV, (expr, index(d)), DType.I64)

    def mod(self, expr: Expr, d: int) -> Expr:
        """`expr % d` for simplified `expr` and d > 0."""
        if d == 1:
            return index(0)
        _, _, rest, constant = self._split(expr, d)
        b = _linear_bounds(constant, rest, self.extents)
        if b is not None and b[0] // d == b[1] // d:
            return self._canonical(constant - d * (b[0] // d), rest)
        coarse = self._coarse(rest, constant, d)
        if coarse is not None:
            g, terms, fine, low = coarse
            scaled = _scaled(_linear(self.mod(_build(constant // g, terms), d // g)), g)
            joined = _sum(scaled, (low, fine))
            assert joined is not None
            return self._canonical(*joined)
        inner = _build(constant, rest)
        if isinstance(inner, Call) and inner.fn is Fn.MOD and isinstance(inner.args[1], Const):
            modulus = int(inner.args[1].value)
            if modulus > 0 and modulus % d == 0:
                return self.mod(inner.args[0], d)
        return Call(Fn.MOD, (inner, index(d)), DType.I64)

    def _predicate(self, expr: Call) -> Expr:
        fn, args = expr.fn, expr.args
        if fn in _COMPARE and dtype_of(args[0]) is DType.I64 and dtype_of(args[1]) is DType.I64:
            difference = _sum(_linear(args[0]), _scaled(_linear(args[1]), -1))
            assert difference is not None
            b = _linear_bounds(*difference, self.extents)
            verdict = None if b is None else _COMPARE[fn](b)
            return expr if verdict is None else (TRUE if verdict else FALSE)
        if fn is Fn.NOT and isinstance(args[0], Const):
            return FALSE if args[0].value else TRUE
        if fn in (Fn.AND, Fn.OR):
            absorbing = fn is Fn.OR
            for position in (0, 1):
                arg = args[position]
                if isinstance(arg, Const) and arg.dtype is DType.BOOL:
                    return arg if bool(arg.value) is absorbing else args[1 - position]
            return args[0] if args[0] == args[1] else expr
        if fn is Fn.CAST and dtype_of(args[0]) is DType.BOOL:
            return args[0]
        return expr


def _equal(b: Bounds) -> bool | None:
    return True if b == (0, 0) else False if b[0] > 0 or b[1] < 0 else None


def _not_equal(b: Bounds) -> bool | None:
    verdict = _equal(b)
    return None if verdict is None else not verdict


# What the bounds of (left - right) decide.
_COMPARE = {
    Fn.LT: lambda b: True if b[1] < 0 else False if b[0] >= 0 else None,
    Fn.LE: lambda b: True if b[1] <= 0 else False if b[0] > 0 else None,
    Fn.GT: lambda b: True if b[0] > 0 else False if b[1] <= 0 else None,
    Fn.GE: lambda b: True if b[0] >= 0 else False if b[1] < 0 else None,
    Fn.EQ: _equal,
    Fn.NE: _not_equal,
}


def _fold_float(expr: Call) -> Expr:
    """Exact identities and folds on F32 and F64; everything else is returned unchanged."""
    fn, args = expr.fn, expr.args
    if fn is Fn.CAST:
        if dtype_of(args[0]) is expr.dtype:
            return args[0]
        value = args[0].value if isinstance(args[0], Const) else None
        if value is not None and expr.dtype in (DType.F32, DType.F64):
            return Const(_rounded(float(value), expr.dtype), expr.dtype)
        return expr
    if len(args) != 2 or expr.dtype not in (DType.F32, DType.F64) or dtype_of(args[0]) is not expr.dtype:
        return expr
    left, right = args
    if isinstance(right, Const) and dtype_of(right) is expr.dtype:
        if fn in (Fn.MUL, Fn.DIV) and right.value == 1:
            return left
        if fn is Fn.SUB and right.value == 0 and math.copysign(1.0, right.value) > 0:
            return left
        if isinstance(left, Const) and fn in (Fn.ADD, Fn.SUB, Fn.MUL):
            a, b = float(left.value), float(right.value)
            value = a + b if fn is Fn.ADD else a - b if fn is Fn.SUB else a * b
            if math.isfinite(value):
                return Const(_rounded(value, expr.dtype), expr.dtype)
    if fn is Fn.MUL and isinstance(left, Const) and left.value == 1 and dtype_of(right) is expr.dtype:
        return right
    return expr


def _rounded(value: float, dtype: DType) -> float:
    if dtype is not DType.F32 or not math.isfinite(value):
        return value
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
