"""Limits: proof that a causal mask makes part of a tile unnecessary.

What it does: finds in a nest an axis k and a tiled axis q such that beyond k = q + c every value is known (minus infinity
before a maximum, zero before a sum), and ends the stages' k axis there (`Limit`). Zero times NaN or infinity is NaN, so where a
contraction multiplies the zeros by something, a stage of its own looks whether all of that is finite, and the limit holds
only then.
What it does not do: weaken results. Called by `ir.plan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelwright.ir.expr import (
    Axis,
    Call,
    Const,
    DType,
    Expr,
    Fn,
    Load,
    axes_in,
    call,
    dtype_of,
    index,
    loads_in,
    substitute,
    walk,
)
from kernelwright.ir.graph import Combine, Contract, Map, Reduce, Scan, Structured, all_axes, expressions_of
from kernelwright.ir.simplify import Extents, affine, simplify
from kernelwright.ir.tile import Limit, Loop, Stage

_NEUTRAL = {Combine.SUM: 0.0, Combine.MAX: -math.inf, Combine.MIN: math.inf, Combine.PROD: 1.0}


@dataclass(frozen=True)
class Causal:
    """What was proved: the limit and the numbers of the stages where it holds, provided that `finite`, if any, is true."""

    limit: Limit
    stages: frozenset[int]
    finite: Reduce | None


def causal_limits(
    stages: list[Stage], loops: tuple[Loop, ...], private: frozenset[str], fresh: Callable[[str], str]
) -> Causal | None:
    """The limit that can be proved. `private`: tensors that only this nest sees; `fresh` makes an unused tensor name."""
    ops = [op for stage in stages for op in stage.ops]
    tiled = {loop.axis: loop for loop in loops}
    for k, q, offset in _masks(ops, tiled):
        region = _Region(k, q, offset, _extents(ops))
        allowed = _limitable(stages, region, private)
        if allowed:
            upper = simplify(call(Fn.ADD, Axis(q), index(tiled[q].step - 1 + offset)), {})
            contracts = [op for i in allowed for op in stages[i].ops if isinstance(op, Contract) and _reduces(op, k)]
            if not contracts:
                return Causal(Limit(k, upper), frozenset(allowed), None)
            finite = _finite(contracts[0], region, ops, tiled, fresh) if len(contracts) == 1 else None
            if finite is not None:
                when = Load(finite.output, tuple(Axis(a.name) for a in finite.axes), DType.BOOL)
                return Causal(Limit(k, upper, when), frozenset(allowed), finite)
    return None


def with_limits(stages: list[Stage], found: Causal) -> list[Stage]:
    """`stages` with the limit where it holds."""
    limit = found.limit
    return [replace(s, limits=(*s.limits, limit)) if i in found.stages else s for i, s in enumerate(stages)]


def _reduces(op: Contract, axis: str) -> bool:
    return any(a.name == axis for a in op.reduce_axes)


def _finite(
    op: Contract, region: _Region, ops: list[Structured], tiled: dict[str, Loop], fresh: Callable[[str], str]
) -> Reduce | None:
    """Whether all that `op` multiplies by zeros of the region is finite in a tile; None where that is not cheap to ask."""
    makers = {o.output: o for o in ops}
    other = op.rhs if region.q in axes_in(op.lhs) else op.lhs
    if region.q in axes_in(other) or any(load.tensor in makers for load in loads_in(other)):
        return None
    batch = (axes_in(op.lhs) & axes_in(op.rhs) & tiled.keys()) - {region.k}
    if any(tiled[a].step > 1 for a in axes_in(other) & tiled.keys()):
        return None
    own = {a.name: a for a in all_axes(op)}
    body = call(Fn.EQ, call(Fn.SUB, other, other), Const(0.0, dtype_of(other)))
    return Reduce(
        output=fresh(f"{op.output}_finite"),
        axes=tuple(a for n, a in own.items() if n in batch),
        reduce_axes=tuple(a for n, a in own.items() if n in axes_in(other) - batch),
        combine=Combine.ALL,
        body=body,
        accumulate=DType.BOOL,
        origin="finite",
    )


@dataclass(frozen=True)
class _Region:
    """The points with k >= q + offset."""

    k: str
    q: str
    offset: int
    extents: Extents

    def decide(self, condition: Expr) -> bool | None:
        """The value of `condition` where it is the same in the whole region."""
        beyond = call(Fn.ADD, call(Fn.ADD, Axis(self.q), index(self.offset)), Axis("beyond"))
        value = simplify(substitute(condition, {self.k: beyond}), {**self.extents, "beyond": self.extents[self.k]})
        return bool(value.value) if isinstance(value, Const) else None


def _extents(ops: list[Structured]) -> Extents:
    return {a.name: a.extent for op in ops for a in all_axes(op)}


def _masks(ops: list[Structured], tiled: dict[str, Loop]) -> list[tuple[str, str, int]]:
    """(k, q, c) of each comparison of k - q with a constant below a SELECT: candidates, nothing proved yet."""
    found: dict[tuple[str, str, int], None] = {}
    for e in (e for op in ops for whole in expressions_of(op) for e in walk(whole)):
        if not (isinstance(e, Call) and e.fn in (Fn.LT, Fn.LE, Fn.GT, Fn.GE)):
            continue
        form = affine(Call(Fn.SUB, e.args, DType.I64)) if e.args[0] != e.args[1] else None
        if form is None or sorted(form.terms.values()) != [-1, 1]:
            continue
        q = next((a for a in form.terms if a in tiled), None)
        k = next((a for a in form.terms if a not in tiled), None)
        if q is None or k is None:
            continue
        edge = -form.constant * form.terms[k]
        for offset in (edge, edge + 1):
            if offset >= 1:  # every row keeps at least one element
                found[k, q, offset] = None
    return list(found)


def _limitable(stages: list[Stage], region: _Region, private: frozenset[str]) -> set[int]:
    """The stages whose k axis may end at the region's border."""
    ops = [op for stage in stages for op in stage.ops]
    makers = {op.output: op for op in ops}
    facts: dict[str, float] = {}
    for op in ops:
        fact = _fact_of(op, region, facts, makers)
        if fact is not None:
            facts[op.output] = fact
    good = {op.output for op in ops if _may_end(op, region, facts, makers, private)}
    allowed = {i for i, s in enumerate(stages) if _has(s, region.k) and all(op.output in good for op in s.ops)}
    while True:
        inside = {op.output for i in allowed for op in stages[i].ops}
        for i in sorted(allowed):
            outputs = [op.output for op in stages[i].ops if any(a.name == region.k for a in op.axes)]
            if any(not _only_read_inside(name, ops, inside, region, makers) for name in outputs):
                allowed.discard(i)
                break
        else:
            return allowed


def _has(stage: Stage, axis: str) -> bool:
    return all(axis in {a.name for a in all_axes(op)} for op in stage.ops)


def _only_read_inside(
    name: str, ops: list[Structured], inside: set[str], region: _Region, makers: dict[str, Structured]
) -> bool:
    for op in ops:
        loads = [load for e in expressions_of(op) for load in loads_in(e) if load.tensor == name]
        if loads and (op.output not in inside or not all(_aligned(load, makers, region) for load in loads)):
            return False
    return True


def _may_end(
    op: Structured, region: _Region, facts: dict[str, float], makers: dict[str, Structured], private: frozenset[str]
) -> bool:
    """Whether `op` itself does not need the region: it reduces neutral values there, or makes what only others need."""
    if isinstance(op, Scan):
        return False
    out, reduced = {a.name for a in op.axes}, {a.name for a in all_axes(op)} - {a.name for a in op.axes}
    if region.k in out:
        return op.output in private
    if region.k not in reduced or region.q not in out:
        return False
    if isinstance(op, Contract):
        return 0.0 in (_fact(op.lhs, region, facts, makers), _fact(op.rhs, region, facts, makers))
    assert isinstance(op, Reduce)
    value = _fact(op.body, region, facts, makers)
    return value is not None and _NEUTRAL.get(op.combine) == value


def _fact_of(op: Structured, region: _Region, facts: dict[str, float], makers: dict[str, Structured]) -> float | None:
    """The value of `op`'s result in the region, where it is known."""
    names = {a.name for a in op.axes}
    if region.k not in names or region.q not in names:
        return None
    if isinstance(op, Map):
        return _fact(op.body, region, facts, makers)
    return None if op.finish is None else _fact(op.finish, region, facts, makers)


def _aligned(load: Load, makers: dict[str, Structured], region: _Region) -> bool:
    """Whether `load` reads its tensor at the reader's own k and q."""
    maker = makers.get(load.tensor)
    if maker is None:
        return False
    pairs = zip(maker.axes, load.index, strict=True)
    return all(e == Axis(a.name) for a, e in pairs if a.name in (region.k, region.q))


def _fact(
    expr: Expr, region: _Region, facts: dict[str, float], makers: dict[str, Structured]
) -> float | None:
    if isinstance(expr, Const):
        return float(expr.value)
    if isinstance(expr, Load):
        return facts.get(expr.tensor) if _aligned(expr, makers, region) else None
    if not isinstance(expr, Call) or not expr.dtype.is_float:
        return None
    if expr.fn is Fn.SELECT:
        verdict = region.decide(expr.args[0])
        branches = [_fact(a, region, facts, makers) for a in expr.args[1:]]
        if verdict is not None:
            return branches[0 if verdict else 1]
        return branches[0] if branches[0] == branches[1] else None
    return _through(expr.fn, [_fact(a, region, facts, makers) for a in expr.args])


def _through(fn: Fn, values: list[float | None]) -> float | None:
    """What minus infinity and zero do to arithmetic with finite unknowns."""
    first = values[0]
    second = values[1] if len(values) > 1 else None
    if fn is Fn.CAST:
        return first
    if fn is Fn.EXP:
        return 0.0 if first == -math.inf else None
    if fn is Fn.ADD:
        return -math.inf if -math.inf in values and math.inf not in values else None
    if fn is Fn.SUB:
        return -math.inf if first == -math.inf and second in (None, 0.0) else None
    if fn is Fn.MUL:
        if 0.0 in values:
            return 0.0
        finite = next((v for v in values if v is not None and math.isfinite(v)), None)
        return -math.inf if -math.inf in values and finite is not None and finite > 0 else None
    if fn is Fn.DIV:
        return 0.0 if first == 0.0 else None
    return None


__all__ = ["causal_limits"]
