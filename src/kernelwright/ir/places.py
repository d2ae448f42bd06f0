"""Places: where each tensor of a program lives, and the offsets of what is planned.

What it does: arguments stay with the caller (all that library steps touch too), tile-local results get per-thread buffers (an
element-wise stage works in place), results used in one stage only are forwarded, all else shares one workspace by lifetime.
What it does not do: panels of packed operands (the printer's). Called by `ir.plan`.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.ir.expr import Axis, loads_in
from kernelwright.ir.graph import Library, Map, Role, Structured, Tensor, inputs_of, outputs_of
from kernelwright.ir.memory import Piece, arrange
from kernelwright.ir.tile import Buffer, Nest, Place, Stage, Step


def place(
    steps: tuple[Step, ...], tensors: dict[str, Tensor], aliases: dict[str, str]
) -> tuple[dict[str, Buffer], int, int]:
    """(buffers by tensor, workspace bytes, local bytes a thread)."""
    buffers: dict[str, Buffer] = {}
    library = {n for s in steps if isinstance(s, Library) for n in (*inputs_of(s), *outputs_of(s))}
    spans = _spans(steps, aliases)
    for name, tensor in tensors.items():
        if name not in aliases and (tensor.role is not Role.TEMP or name in library):
            buffers[name] = Buffer(name, Place.ARGUMENT)
    local_bytes = 0
    for number, step in enumerate(steps):
        if isinstance(step, Nest):
            made = _inside(step, number, tensors, spans, buffers)
            local, size = _locals(step, made, tensors)
            buffers.update(local)
            local_bytes = max(local_bytes, size)
    rest = [
        Piece(n, tensors[n].bytes, first, last) for n, (first, last) in spans.items() if n not in buffers and n in tensors
    ]
    offsets, workspace = arrange(rest)
    buffers.update({n: Buffer(n, Place.WORKSPACE, offset) for n, offset in offsets.items()})
    for view, base in aliases.items():
        buffers[view] = Buffer(view, buffers[base].place, buffers[base].offset, alias=base)
    return buffers, workspace, local_bytes


def _spans(steps: tuple[Step, ...], aliases: dict[str, str]) -> dict[str, tuple[int, int]]:
    """First and last step that touches each tensor's memory."""
    spans: dict[str, tuple[int, int]] = {}
    for number, step in enumerate(steps):
        ops = [step] if isinstance(step, Library) else [op for stage in step.stages for op in stage.ops]
        for op in ops:
            for name in (*inputs_of(op), *outputs_of(op)):
                base = aliases.get(name, name)
                spans[base] = (spans.get(base, (number, number))[0], number)
    return spans


def _inside(
    nest: Nest, number: int, tensors: dict[str, Tensor], spans: dict[str, tuple[int, int]], buffers: dict[str, Buffer]
) -> list[Structured]:
    """The nest's operations whose results nobody outside sees."""
    ops = [op for stage in nest.stages for op in stage.ops]
    inside = [op for op in ops if op.output not in buffers and spans.get(op.output) == (number, number)]
    return [op for op in inside if tensors[op.output].role is Role.TEMP]


def _locals(nest: Nest, made: list[Structured], tensors: dict[str, Tensor]) -> tuple[dict[str, Buffer], int]:
    steps = {loop.axis: loop.step for loop in nest.loops}
    stage_of = {op.output: i for i, stage in enumerate(nest.stages) for op in stage.ops}
    last: dict[str, int] = {}
    for i, stage in enumerate(nest.stages):
        for name in (n for op in stage.ops for n in inputs_of(op)):
            last[name] = i
        for flag in (limit.when for limit in stage.limits if limit.when is not None):
            last[flag.tensor] = i
    buffers: dict[str, Buffer] = {}
    holders: dict[str, str] = {}  # tensor -> the earlier one whose memory it takes over
    pieces: dict[str, Piece] = {}
    for op in made:
        at = stage_of[op.output]
        end = last.get(op.output, at)
        if end == at and op.output in last:
            buffers[op.output] = Buffer(op.output, Place.FORWARDED)
            continue
        shape = tuple(min(steps.get(a.name, a.extent), a.extent) for a in op.axes)
        base = tuple(a.name if a.name in steps else None for a in op.axes)
        size = tensors[op.output].dtype.bytes
        for extent in shape:
            size *= extent
        buffers[op.output] = Buffer(op.output, Place.LOCAL, shape=shape, base=base)
        donor = _donor(op, nest.stages[at], {n for n in buffers if last.get(n) == at}, buffers, tensors)
        if donor is None:
            pieces[op.output] = Piece(op.output, size, at, end)
        else:
            holders[op.output] = holder = holders.get(donor, donor)
            pieces[holder] = Piece(holder, size, pieces[holder].first, end)
    offsets, total = arrange(list(pieces.values()))
    for name, buffer in buffers.items():
        if buffer.place is Place.LOCAL:
            buffers[name] = replace(buffer, offset=offsets[holders.get(name, name)])
    return buffers, total


def _donor(
    op: Structured, stage: Stage, ending: set[str], buffers: dict[str, Buffer], tensors: dict[str, Tensor]
) -> str | None:
    """A tile-local tensor that `op`, its last reader, reads only where it writes: `op` may work in place."""
    own = tuple(Axis(a.name) for a in op.axes)
    if not isinstance(op, Map):
        return None
    for name in inputs_of(op):
        if name not in ending or tensors[name].dtype is not tensors[op.output].dtype:
            continue
        old, new = buffers[name], buffers[op.output]
        alone = all(name not in inputs_of(other) for other in stage.ops if other is not op)
        aligned = all(load.index == own for load in loads_in(op.body) if load.tensor == name)
        if alone and aligned and old.place is Place.LOCAL and (old.shape, old.base) == (new.shape, new.base):
            return name
    return None
