"""Stages: which statements of a family run in the same loops, along which vector axis, in which order.

What it does: merges operations of equal domain, chooses the vector axis by how the accesses walk memory, orders the other axes.
What it does not do: leaves of contractions (see `ir.leaf`) or tiles. Called by `ir.plan`.
"""

from __future__ import annotations

from kernelwright.ir.expr import Axis, Expr, Load, axes_in, loads_in
from kernelwright.ir.family import Family
from kernelwright.ir.graph import Contract, Map, Reduce, Scan, Structured, Tensor, all_axes, expressions_of
from kernelwright.ir.simplify import affine


def merge_stages(family: Family, leaves: frozenset[str]) -> list[tuple[Structured, ...]]:
    """The operations by stage, in execution order. Operations in `leaves` stay alone."""
    stages: list[list[Structured]] = []
    at: dict[str, int] = {}
    for op in family.ops:
        earliest = 0
        for maker in dict.fromkeys(load.tensor for e in expressions_of(op) for load in loads_in(e)):
            if maker in at:
                stage = at[maker]
                producer = next(o for o in stages[stage] if o.output == maker)
                earliest = max(earliest, stage if _forwards(producer, op) else stage + 1)
        for number in range(earliest, len(stages)):
            if op.output not in leaves and _fits(stages[number], op, leaves):
                stages[number].append(op)
                at[op.output] = number
                break
        else:
            at[op.output] = len(stages)
            stages.append([op])
    return [tuple(stage) for stage in stages]


def _forwards(producer: Structured, reader: Structured) -> bool:
    """Whether `reader` may take the producer's element from a register in the same iteration."""
    if not isinstance(producer, Map) or {a.name for a in producer.axes} != {a.name for a in all_axes(reader)}:
        return False
    own = tuple(Axis(a.name) for a in producer.axes)
    if any(load.index != own for e in expressions_of(reader) for load in loads_in(e) if load.tensor == producer.output):
        return False
    finish = None if isinstance(reader, Map) else reader.finish
    return finish is None or all(load.tensor != producer.output for load in loads_in(finish))


def _fits(stage: list[Structured], op: Structured, leaves: frozenset[str]) -> bool:
    if any(o.output in leaves or isinstance(o, Scan) for o in stage):
        return False
    if {a.name for a in all_axes(stage[0])} != {a.name for a in all_axes(op)}:
        return False
    if isinstance(op, Map):
        # A map after a reduction over the same domain would force the printer to order them inside the iteration.
        return all(isinstance(o, Map) for o in stage) or _independent(stage, op)
    reduced = {a.name for a in op.reduce_axes} if isinstance(op, Reduce | Contract) else {op.axis}
    for other in stage:
        if isinstance(other, Reduce | Contract) and {a.name for a in other.reduce_axes} != reduced:
            return False
    return not isinstance(op, Scan) or all(isinstance(o, Map) for o in stage)


def _independent(stage: list[Structured], op: Map) -> bool:
    read = {load.tensor for load in loads_in(op.body)}
    return all(o.output not in read for o in stage if not isinstance(o, Map))


def strides(index: tuple[Expr, ...], shape: tuple[int, ...], axis: str) -> int | None:
    """Elements between neighbours along `axis` in a dense tensor; None where the index is not affine in it."""
    total, step = 0, 1
    for e, extent in zip(reversed(index), reversed(shape), strict=True):
        if axis in axes_in(e):
            form = affine(e)
            if form is None:
                return None
            total += form.coefficient(axis) * step
        step *= extent
    return total


def vector_axis(ops: tuple[Structured, ...], tensors: dict[str, Tensor], step: dict[str, int]) -> str | None:
    """The axis along which most accesses are contiguous and none, if possible, strided. `step`: tile steps of loop axes."""
    best: tuple[float, int, str] | None = None
    axes = {a.name: min(a.extent, step.get(a.name, a.extent)) for op in ops for a in all_axes(op)}
    accesses = [access for op in ops for access in _accesses(op, tensors)]
    for axis, extent in axes.items():
        score = -4.0 if extent < 4 else 0.0
        for load, weight in accesses:
            stride = strides(load.index, tensors[load.tensor].shape, axis)
            score += weight if stride == 1 else 0.0 if stride == 0 else -weight
        if best is None or (score, extent) > best[:2]:
            best = (score, extent, axis)
    return None if best is None or best[1] < 2 else best[2]


def _accesses(op: Structured, tensors: dict[str, Tensor]) -> list[tuple[Load, float]]:
    """The loads and the store of `op` with weights: what happens once for each result of a reduction counts little."""
    rare = 1.0
    for a in op.reduce_axes if isinstance(op, Reduce | Contract) else ():
        rare /= max(a.extent, 1)
    whole = expressions_of(op)
    finish = None if isinstance(op, Map) else op.finish
    out = [(load, 2.0 * (rare if e is finish else 1.0)) for e in whole for load in loads_in(e)]
    out.append((Load(op.output, tuple(Axis(a.name) for a in op.axes), tensors[op.output].dtype), 3.0 * rare))
    return out


def loop_order(ops: tuple[Structured, ...], vector: str | None) -> tuple[str, ...]:
    """The stage's other axes, outermost first: output axes in order, then reduce axes (innermost for the accumulator)."""
    names: dict[str, None] = {}
    for op in ops:
        for a in op.axes:
            if not any(isinstance(o, Reduce | Contract) and a in o.reduce_axes for o in ops):
                names[a.name] = None
    for op in ops:
        for a in op.reduce_axes if isinstance(op, Reduce | Contract) else ():
            names[a.name] = None
    return tuple(n for n in names if n != vector)


__all__ = ["loop_order", "merge_stages", "strides", "vector_axis"]
