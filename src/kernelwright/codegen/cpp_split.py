"""Where a vector loop may drop its guards: the interior of padded windows and shifted reads.

What it does: finds the SELECT guards that depend on the vector axis and protect a load, and the range of the vector axis in
which they hold for all values of the loops inside it.
What it does not do: print. Called by `cpp_stage`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernelwright.codegen.cpp_context import Context
from kernelwright.codegen.cpp_index import Linear, Range, guards
from kernelwright.ir.expr import Call, DType, Expr, Fn, axes_in, walk


@dataclass(frozen=True)
class Bound:
    """The vector axis must be >= -floor(form / step) (lower) or < floor(form / step) + 1 (upper)."""

    form: Linear
    step: int
    lower: bool


@dataclass(frozen=True)
class Interior:
    """Bounds of the range in which the conditions in `true` hold."""

    bounds: tuple[Bound, ...]
    true: frozenset[Expr]


def atoms(condition: Expr) -> Iterable[Expr]:
    """The parts of a conjunction."""
    if isinstance(condition, Call) and condition.fn is Fn.AND and condition.dtype is DType.BOOL:
        for part in condition.args:
            yield from atoms(part)
    else:
        yield condition


def interior(expressions: Iterable[Expr], vector: str, inside: frozenset[str], context: Context) -> Interior:
    """The interior of `vector`; `inside` are the axes of the loops inside the vector loop."""
    ranges = context.ranges()
    bounds: dict[Bound, None] = {}
    true: set[Expr] = set()
    for expr in expressions:
        for part in walk(expr):
            if not (isinstance(part, Call) and part.fn is Fn.SELECT) or all(map(context.safe, part.args[1:])):
                continue
            for atom in atoms(part.args[0]):
                found = guards(atom) if vector in axes_in(atom) else None
                if found is None or any(g.form.coefficient(vector) == 0 for g in found):
                    continue
                for guard in found:
                    bounds[_bound(guard.form, vector, inside, ranges)] = None
                    true.add(atom)
    return Interior(tuple(bounds), frozenset(true))


def _bound(form: Linear, vector: str, inside: frozenset[str], ranges: dict[str, Range]) -> Bound:
    step = form.coefficient(vector)
    assert step, "a guard of the vector axis without a step"
    constant, outer = form.constant, []
    for axis, k in form.terms:
        if axis in inside:
            constant += min(k * end for end in ranges[axis])
        elif axis != vector:
            outer.append((axis, k))
    return Bound(Linear(constant, tuple(outer)), abs(step), step > 0)
