"""Index arithmetic for the C++ printer: linear forms, ranges, and C++ text of I64 expressions.

What it does: splits an I64 expression into `sum(coefficient * axis) + constant + opaque terms`, bounds it by interval
arithmetic, and says where an affine guard holds along one axis.
What it does not do: rewrite the IR (see `ir.simplify`). Called by the other modules of the C++ printer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.ir.expr import Axis, Call, Const, DType, Expr, Fn, axes_in, dtype_of, loads_in

Range = tuple[int, int]  # both ends included


@dataclass(frozen=True)
class Linear:
    """`constant + sum(terms[a] * a) + sum(k * e for k, e in opaque)`; no opaque term is a sum, an axis or a constant."""

    constant: int = 0
    terms: tuple[tuple[str, int], ...] = ()
    opaque: tuple[tuple[int, Expr], ...] = ()

    def coefficient(self, axis: str) -> int | None:
        """The step per unit of `axis`, or None where an opaque term depends on it."""
        if any(axis in axes_in(e) for _, e in self.opaque):
            return None
        return dict(self.terms).get(axis, 0)

    def axes(self) -> frozenset[str]:
        """Every axis that the value depends on."""
        found = {a for a, _ in self.terms}
        for _, e in self.opaque:
            found |= axes_in(e)
        return frozenset(found)

    def without(self, axis: str) -> Linear:
        """The form with the plain term of `axis` taken out."""
        return Linear(self.constant, tuple(t for t in self.terms if t[0] != axis), self.opaque)


def add(a: Linear, b: Linear, scale: int = 1) -> Linear:
    """`a + scale * b`."""
    terms = dict(a.terms)
    for name, k in b.terms:
        terms[name] = terms.get(name, 0) + scale * k
    opaque = {e: k for k, e in a.opaque}
    for k, e in b.opaque:
        opaque[e] = opaque.get(e, 0) + scale * k
    return Linear(
        a.constant + scale * b.constant,
        tuple((n, k) for n, k in terms.items() if k),
        tuple((k, e) for e, k in opaque.items() if k),
    )


def linear(expr: Expr) -> Linear:
    """The linear form of an I64 expression; what is not affine becomes one opaque term."""
    if isinstance(expr, Const):
        return Linear(int(expr.value))
    if isinstance(expr, Axis):
        return Linear(0, ((expr.name, 1),))
    if isinstance(expr, Call) and expr.dtype is DType.I64:
        if expr.fn in (Fn.ADD, Fn.SUB):
            return add(linear(expr.args[0]), linear(expr.args[1]), 1 if expr.fn is Fn.ADD else -1)
        if expr.fn is Fn.NEG:
            return add(Linear(), linear(expr.args[0]), -1)
        if expr.fn is Fn.MUL:
            a, b = linear(expr.args[0]), linear(expr.args[1])
            if not a.terms and not a.opaque:
                return add(Linear(), b, a.constant)
            if not b.terms and not b.opaque:
                return add(Linear(), a, b.constant)
        if expr.fn is Fn.CAST and dtype_of(expr.args[0]) is DType.I64:
            return linear(expr.args[0])
    return Linear(0, (), ((1, expr),))


def flatten(index: tuple[Expr, ...], shape: tuple[int, ...]) -> Linear:
    """The linear form of the element offset of `index` in a dense row-major array of `shape`."""
    total, stride = Linear(), 1
    for expr, extent in zip(reversed(index), reversed(shape), strict=True):
        total = add(total, linear(expr), stride)
        stride *= extent
    return total


def interval(expr: Expr, ranges: Mapping[str, Range]) -> Range | None:
    """Bounds of an I64 expression when each axis stays within its range; None where nothing is known."""
    if isinstance(expr, Const):
        return (int(expr.value), int(expr.value))
    if isinstance(expr, Axis):
        return ranges.get(expr.name)
    if not isinstance(expr, Call) or loads_in(expr) or expr.dtype is not DType.I64:
        return None
    form = linear(expr)
    if form.opaque != ((1, expr),):
        return _linear_interval(form, ranges)
    parts = [interval(a, ranges) for a in expr.args if dtype_of(a) is DType.I64]
    if any(p is None for p in parts):
        return None
    return _call_interval(expr.fn, [p for p in parts if p is not None])


def _linear_interval(form: Linear, ranges: Mapping[str, Range]) -> Range | None:
    low = high = form.constant
    pieces = [(k, ranges.get(a)) for a, k in form.terms] + [(k, interval(e, ranges)) for k, e in form.opaque]
    for k, bounds in pieces:
        if bounds is None:
            return None
        ends = (k * bounds[0], k * bounds[1])
        low, high = low + min(ends), high + max(ends)
    return low, high


def _call_interval(fn: Fn, parts: list[Range]) -> Range | None:
    if fn is Fn.SELECT:
        return min(p[0] for p in parts), max(p[1] for p in parts)
    if len(parts) != 2:
        return None
    (a, b), (c, d) = parts
    if fn is Fn.MUL:
        ends = [x * y for x in (a, b) for y in (c, d)]
        return min(ends), max(ends)
    if fn is Fn.FLOORDIV and c > 0:
        ends = [x // y for x in (a, b) for y in (c, d)]
        return min(ends), max(ends)
    if fn is Fn.MOD and c > 0:
        return 0, d - 1
    if fn is Fn.MIN:
        return min(a, c), min(b, d)
    if fn is Fn.MAX:
        return max(a, c), max(b, d)
    return None


@dataclass(frozen=True)
class Guard:
    """`form >= 0`, an affine condition."""

    form: Linear


def guards(cond: Expr) -> tuple[Guard, ...] | None:
    """`cond` as a conjunction of affine guards, or None where it is something else."""
    if not isinstance(cond, Call):
        return None
    if cond.fn is Fn.AND and cond.dtype is DType.BOOL:
        left, right = guards(cond.args[0]), guards(cond.args[1])
        return None if left is None or right is None else left + right
    if cond.fn not in (Fn.GE, Fn.GT, Fn.LE, Fn.LT) or dtype_of(cond.args[0]) is not DType.I64:
        return None
    a, b = linear(cond.args[0]), linear(cond.args[1])
    if cond.fn in (Fn.LE, Fn.LT):
        a, b = b, a
    form = add(a, b, -1)
    if cond.fn in (Fn.GT, Fn.LT):
        form = add(form, Linear(-1))
    return None if form.opaque else (Guard(form),)
