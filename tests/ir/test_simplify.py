"""Simplified expressions keep their value on every point, and the forms that the plan relies on come out."""

from __future__ import annotations

import itertools
import random

import pytest

from kernelwright.ir.expr import Axis, Call, Const, DType, Expr, Fn, Load, call, index
from kernelwright.ir.simplify import FALSE, TRUE, affine, bounds, simplify

EXTENTS = {"i": 6, "j": 4, "k": 5}
I, J, K = Axis("i"), Axis("j"), Axis("k")


def c(fn: Fn, *args: Expr | int) -> Expr:
    return call(fn, *(index(a) if isinstance(a, int) else a for a in args))


def flat(*pairs: tuple[Expr, int]) -> Expr:
    out: Expr = index(0)
    for e, step in pairs:
        out = c(Fn.ADD, out, c(Fn.MUL, e, step))
    return out


def value(expr: Expr, point: dict[str, int]) -> int:
    """Plain Python meaning of an integer expression."""
    if isinstance(expr, Const):
        return int(expr.value)
    if isinstance(expr, Axis):
        return point[expr.name]
    assert isinstance(expr, Call)
    if expr.fn is Fn.SELECT:
        return value(expr.args[1 if value(expr.args[0], point) else 2], point)
    args = [value(a, point) for a in expr.args]
    table = {
        Fn.ADD: lambda a, b: a + b, Fn.SUB: lambda a, b: a - b, Fn.MUL: lambda a, b: a * b, Fn.NEG: lambda a: -a,
        Fn.FLOORDIV: lambda a, b: a // b, Fn.MOD: lambda a, b: a % b, Fn.MIN: min, Fn.MAX: max, Fn.LT: lambda a, b: a < b,
        Fn.LE: lambda a, b: a <= b, Fn.GT: lambda a, b: a > b, Fn.GE: lambda a, b: a >= b, Fn.EQ: lambda a, b: a == b,
        Fn.NE: lambda a, b: a != b, Fn.AND: lambda a, b: a and b, Fn.OR: lambda a, b: a or b, Fn.NOT: lambda a: not a,
    }  # fmt: skip
    return int(table[expr.fn](*args))


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (c(Fn.FLOORDIV, flat((I, 4), (J, 1)), 4), I),
        (c(Fn.MOD, flat((I, 4), (J, 1)), 4), J),
        (c(Fn.FLOORDIV, flat((I, 20), (J, 5), (K, 1)), 20), I),
        (c(Fn.MOD, c(Fn.FLOORDIV, flat((I, 20), (J, 5), (K, 1)), 5), 4), J),
        (c(Fn.FLOORDIV, c(Fn.FLOORDIV, flat((I, 20), (J, 5), (K, 1)), 5), 4), I),
        (flat((c(Fn.FLOORDIV, I, 3), 3), (c(Fn.MOD, I, 3), 1)), I),
        (flat((c(Fn.FLOORDIV, I, 4), 4), (c(Fn.MOD, c(Fn.FLOORDIV, I, 2), 2), 2), (c(Fn.MOD, I, 2), 1)), I),
        (c(Fn.LT, I, 6), TRUE),
        (c(Fn.GE, c(Fn.SUB, I, 1), 6), FALSE),
        (c(Fn.MAX, I, 0), I),
        (c(Fn.SELECT, c(Fn.LE, I, 5), J, K), J),
        (c(Fn.SUB, I, I), index(0)),
    ],
)  # fmt: skip
def test_canonical_forms(expr: Expr, expected: Expr) -> None:
    assert simplify(expr, EXTENTS) == expected


def draw(rng: random.Random, depth: int) -> Expr:
    if depth == 0:
        return rng.choice([I, J, K, index(rng.randint(-3, 9))])
    fn = rng.choice([Fn.ADD, Fn.SUB, Fn.MUL, Fn.FLOORDIV, Fn.MOD, Fn.MIN, Fn.MAX, Fn.SELECT, Fn.NEG])
    a, b = draw(rng, depth - 1), draw(rng, depth - 1)
    if fn is Fn.MUL or fn in (Fn.FLOORDIV, Fn.MOD):
        return c(fn, a, rng.randint(1, 7))
    if fn is Fn.NEG:
        return c(fn, a)
    if fn is Fn.SELECT:
        compare = rng.choice([Fn.LT, Fn.LE, Fn.GT, Fn.GE, Fn.EQ, Fn.NE])
        return c(fn, c(compare, draw(rng, depth - 1), b), a, b)
    return c(fn, a, b)


@pytest.mark.parametrize("seed", range(150))
def test_random_expressions_keep_their_value(seed: int) -> None:
    rng = random.Random(seed)
    expr = draw(rng, rng.randint(1, 4))
    simple = simplify(expr, EXTENTS)
    limits = bounds(expr, EXTENTS)
    for i, j, k in itertools.product(range(6), range(4), range(5)):
        point = {"i": i, "j": j, "k": k}
        expected = value(expr, point)
        assert value(simple, point) == expected
        assert limits is None or limits[0] <= expected <= limits[1]
    assert simplify(simple, EXTENTS) == simple


def test_affine() -> None:
    form = affine(simplify(flat((I, 4), (J, -2), (index(3), 5)), EXTENTS))
    assert form is not None
    assert (form.constant, form.terms) == (15, {"i": 4, "j": -2})
    assert affine(c(Fn.FLOORDIV, I, 4)) is None
    assert affine(c(Fn.MUL, I, J)) is None


def test_element_arithmetic_is_left_exact() -> None:
    x = Load("x", (I,), DType.F32)
    one, zero = Const(1.0, DType.F32), Const(0.0, DType.F32)
    assert simplify(call(Fn.MUL, x, one), EXTENTS) == x
    assert simplify(call(Fn.SUB, x, zero), EXTENTS) == x
    assert simplify(call(Fn.ADD, x, zero), EXTENTS) == call(Fn.ADD, x, zero)  # -0 + 0 is +0
    tenth = Call(Fn.CAST, (Const(0.1, DType.F64),), DType.F32)
    assert simplify(tenth, EXTENTS) == Const(0.10000000149011612, DType.F32)


def test_unit_axis_is_zero() -> None:
    assert simplify(c(Fn.ADD, c(Fn.MUL, Axis("u"), 7), I), {"u": 1, "i": 6}) == I
