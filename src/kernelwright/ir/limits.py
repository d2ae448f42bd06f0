"""Limits: proof that a causal mask makes part of a tile unnecessary.

What it does: finds in a nest an axis k and a tiled axis q such that beyond k = q + c every value is known (minus infinity
before a maximum, zero before a sum), and ends the stages' k axis there (`Limit`).
What it does not do: weaken results. It assumes, as every fused attention does, that what is multiplied by an exact zero is
finite and that a row's maximum is not infinite because of masked elements. Called by `ir.plan`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernelwright.ir.expr import Axis, Call, Const, DType, Expr, Fn, Load, call, index, loads_in, substitute, walk
from kernelwright.ir.graph import Combine, Contract, Map, Reduce, Scan, Structured, all_axes, expressions_of
from kernelwright.ir.simplify import Extents, affine, simplify
from kernelwright.ir.tile import Limit, Loop, Stage

_NEUTRAL = {Combine.SUM: 0.0, Combine.MAX: -math.inf, Combine.MIN: math.inf, Combine.PROD: 1.0}


def causal_limits(stages: list[Stage], loops: tuple[Loop, ...], private: frozenset[str]) -> list[Stage]:
    """`stages` with the limits that can be proved. `private`: tensors that only this nest sees."""
    ops = [op for stage in stages for op in stage.ops]
    tiled = {loop.axis: loop for loop in loops}
    for k, q, offset in _masks(ops, tiled):
        region = _Region(k, q, offset, _extents(ops))
        allowed = _limitable(stages, region, private)
        if allowed:
            upper = simplify(call(Fn.ADD, Axis(q), index(tiled[q].step - 1 + offset)), {})
            limit = Limit(k, upper)
            return [replace(s, limits=(*s.limits, limit)) if i in allowed else s for i, s in enumerate(stages)]
    return stages


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
