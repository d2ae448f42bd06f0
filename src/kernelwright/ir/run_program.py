"""The meaning of a tile program, in plain numpy: tile by tile, so that every plan can be checked against `evaluate`.

What it does: runs a Program on arrays, honouring loops, limits, places, offsets, tile-local bases and views. Tile-local memory
is poisoned (NaN) before each tile, the workspace at the start, tiles run in a shuffled order, and reading outside a buffer
raises.
What it does not do: run fast, or model leaves, vectors and threads (they may not change a program's meaning). Called by tests.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.ir.evaluate import NUMPY, RunLibrary, as_array, evaluate_library, evaluate_op, from_bytes
from kernelwright.ir.expr import Call, DType, Expr, Fn, Load, index, substitute, transform
from kernelwright.ir.fuse import change_expressions
from kernelwright.ir.graph import Library, Role, Structured, Tensor, all_axes
from kernelwright.ir.simplify import simplify
from kernelwright.ir.tile import Nest, Place, Program, Stage

Array = npt.NDArray[Any]
_WIDE = 2  # BF16 values are held as float32, so every area and offset is doubled


def evaluate_program(
    program: Program, tensors: Mapping[str, Array], library: RunLibrary | None = None
) -> dict[str, Array]:
    """The arrays of the graph's outputs, by name, in the graph's shapes. `tensors` has the inputs and weights."""
    arrays = _arguments(program, tensors)
    workspace = np.full(program.workspace_bytes * _WIDE + 64, 0xFF, np.uint8)
    for name, buffer in program.buffers.items():
        if buffer.place is Place.WORKSPACE and buffer.alias is None:
            arrays[name] = _view(workspace, program.tensors[name].shape, program.tensors[name].dtype, buffer.offset)
    for name, buffer in program.buffers.items():
        if buffer.alias is not None:
            arrays[name] = arrays[buffer.alias].reshape(program.tensors[name].shape)
            assert np.shares_memory(arrays[name], arrays[buffer.alias]) or arrays[name].size == 0
    for step in program.steps:
        if isinstance(step, Library):
            shaped = {n: a.reshape(program.graph.tensors[n].shape) for n, a in arrays.items() if n in program.graph.tensors}
            for name, value in evaluate_library(step, program.graph.tensors, shaped, library).items():
                arrays[name][...] = value.reshape(arrays[name].shape)
        else:
            _run_nest(program, step, arrays)
    return {n: arrays[n].reshape(program.graph.tensors[n].shape) for n in program.graph.outputs}


def _arguments(program: Program, tensors: Mapping[str, Array]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name, buffer in program.buffers.items():
        if buffer.place is not Place.ARGUMENT or buffer.alias is not None:
            continue
        tensor = program.tensors[name]
        if name in tensors:
            value = as_array(tensors[name], tensor.dtype)
        elif tensor.role is Role.CONSTANT and tensor.source is not None:
            value = from_bytes(program.graph.constants[tensor.source], tensor.shape, tensor.dtype)
        else:
            arrays[name] = _poisoned(tensor.shape, tensor.dtype)
            continue
        arrays[name] = np.array(value).reshape(tensor.shape)
        arrays[name].setflags(write=False)
    return arrays


def _poisoned(shape: tuple[int, ...], dtype: DType) -> Array:
    if dtype.is_float:
        return np.full(shape, np.nan, NUMPY[dtype])
    return np.full(shape, 1 if dtype in (DType.BOOL, DType.U8, DType.I8) else 12345, NUMPY[dtype])


def _view(area: npt.NDArray[np.uint8], shape: tuple[int, ...], dtype: DType, offset: int) -> Array:
    held = np.dtype(NUMPY[dtype])
    size = int(np.prod(shape)) * held.itemsize
    return area[offset * _WIDE : offset * _WIDE + size].view(held).reshape(shape)


@dataclass(frozen=True)
class _Tile:
    """One tile: the base of each loop axis, its range, and the thread's local area."""

    base: dict[str, int]
    ranges: dict[str, tuple[int, int]]
    area: npt.NDArray[np.uint8]


def _run_nest(program: Program, nest: Nest, arrays: dict[str, Array]) -> None:
    bases = [range(0, loop.extent, loop.step) for loop in nest.loops]
    tiles = list(itertools.product(*bases))
    if nest.parallel == len(nest.loops):
        random.Random(0).shuffle(tiles)
    for tile in tiles:
        base = {loop.axis: b for loop, b in zip(nest.loops, tile, strict=True)}
        ranges = {loop.axis: (b, min(b + loop.step, loop.extent)) for loop, b in zip(nest.loops, tile, strict=True)}
        area = np.full(program.local_bytes * _WIDE + 64, 0xFF, np.uint8)
        for stage in nest.stages:
            _run_stage(program, stage, _Tile(base, ranges, area), arrays)


def _run_stage(program: Program, stage: Stage, tile: _Tile, arrays: dict[str, Array]) -> None:
    base, area, limited = tile.base, tile.area, dict(tile.ranges)
    for limit in stage.limits:
        if limit.when is not None:
            buffer = program.buffers[limit.when.tensor]
            flags = _view(area, buffer.shape, DType.BOOL, buffer.offset)
            if not flags.reshape(-1)[0]:
                continue
        low, high = limited.get(limit.axis, (0, _extent(stage, limit.axis)))
        limited[limit.axis] = (low, min(high, max(low, _number(limit.upper, base))))
    forwarded: dict[str, tuple[int, ...]] = {}
    for op in stage.ops:
        seen = dict(arrays)
        tensors: dict[str, Tensor] = dict(program.tensors)
        for name, buffer in program.buffers.items():
            if buffer.place is Place.LOCAL and name in program.tensors:
                seen[name] = _view(area, buffer.shape, program.tensors[name].dtype, buffer.offset)
        value = evaluate_op(_localized(program, op, base, forwarded), tensors, seen, None, limited)
        span = [limited.get(a.name, (0, a.extent)) for a in op.axes]
        buffer = program.buffers[op.output]
        if buffer.place is Place.FORWARDED:
            arrays[op.output] = value
            forwarded[op.output] = tuple(low for low, _ in span)
            continue
        starts = [base[b] if b is not None else 0 for b in buffer.base] if buffer.place is Place.LOCAL else [0] * len(span)
        target = seen[op.output]
        where = tuple(slice(low - s, high - s) for (low, high), s in zip(span, starts, strict=True))
        assert target[where].shape == value.shape, f"{op.output}: the tile {where} lies outside its buffer {target.shape}"
        target[where] = value


def _localized(program: Program, op: Structured, base: dict[str, int], forwarded: dict[str, tuple[int, ...]]) -> Structured:
    """`op` with loads of tile-local tensors at their place in the buffer."""

    def one(e: Expr) -> Expr:
        if not isinstance(e, Load):
            return e
        buffer = program.buffers[e.tensor]
        if buffer.place is Place.LOCAL:
            starts = tuple(base[b] if b is not None else 0 for b in buffer.base)
        elif buffer.place is Place.FORWARDED:
            starts = forwarded[e.tensor]
        else:
            return e
        shifted = (Call(Fn.SUB, (i, index(s)), DType.I64) for i, s in zip(e.index, starts, strict=True))
        return replace(e, index=tuple(shifted))

    return change_expressions(op, lambda e: transform(e, one))


def _extent(stage: Stage, axis: str) -> int:
    return next(a.extent for op in stage.ops for a in all_axes(op) if a.name == axis)


def _number(expr: Expr, base: dict[str, int]) -> int:
    value = simplify(substitute(expr, {n: index(b) for n, b in base.items()}), {})
    if not hasattr(value, "value"):
        raise ValueError(f"a limit must depend on tile bases only: {expr}")
    return int(value.value)
