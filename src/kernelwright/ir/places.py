"""Places: where each tensor of a program lives, and the offsets of what is planned.

What it does: arguments stay with the caller (all that library steps touch too), tile-local results get per-thread buffers, results
used in one stage only are forwarded, everything else shares one workspace by lifetime.
What it does not do: panels of packed operands (the printer's). Called by `ir.plan`.
"""

from __future__ import annotations

from kernelwright.ir.graph import Library, Role, Structured, Tensor, inputs_of, outputs_of
from kernelwright.ir.memory import Piece, arrange
from kernelwright.ir.tile import Buffer, Nest, Place, Step


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
    buffers: dict[str, Buffer] = {}
    pieces: list[Piece] = []
    for op in made:
        if last.get(op.output) == stage_of[op.output]:
            buffers[op.output] = Buffer(op.output, Place.FORWARDED)
            continue
        shape = tuple(min(steps.get(a.name, a.extent), a.extent) for a in op.axes)
        base = tuple(a.name if a.name in steps else None for a in op.axes)
        size = tensors[op.output].dtype.bytes
        for extent in shape:
            size *= extent
        pieces.append(Piece(op.output, size, stage_of[op.output], last.get(op.output, stage_of[op.output])))
        buffers[op.output] = Buffer(op.output, Place.LOCAL, shape=shape, base=base)
    offsets, total = arrange(pieces)
    for name, offset in offsets.items():
        old = buffers[name]
        buffers[name] = Buffer(name, Place.LOCAL, offset, old.shape, old.base)
    return buffers, total
