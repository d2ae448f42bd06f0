"""The Manifest of a Program, and the JSON form of a library call's arguments.

What it does: lists slots, steps and tensor specs as a runner needs them; encodes and decodes `LibraryCall`.
What it does not do: run anything. Called by `cpp` (makes it) and by runners (decode).

JSON of a call: `{"args": [...], "kwargs": {...}}`; a tensor is `{"tensor": "name"}`, a dtype `{"dtype": "f32"}`, a tuple an
array; null, booleans, numbers and strings are themselves; a float that JSON lacks is `{"float": "inf"}`.
"""

from __future__ import annotations

import json
import math
from typing import Any

from kernelwright.ir.expr import DType
from kernelwright.ir.graph import Argument, DTypeRef, Library, LibraryCall, Role, Tensor, TensorRef
from kernelwright.ir.tile import Place, Program
from kernelwright.records import GeneratedStep, LibraryStep, Manifest, TensorSpec


def encode_call(call: LibraryCall) -> str:
    """The JSON text of a call's arguments."""
    return json.dumps({"args": [_encode(a) for a in call.args], "kwargs": {k: _encode(v) for k, v in call.kwargs}})


def decode_call(target: str, text: str) -> LibraryCall:
    """The call whose arguments `encode_call` wrote."""
    data = json.loads(text)
    kwargs = tuple((str(k), _decode(v)) for k, v in data["kwargs"].items())
    return LibraryCall(target, tuple(_decode(a) for a in data["args"]), kwargs)


def _encode(argument: Argument) -> object:
    if isinstance(argument, TensorRef):
        return {"tensor": argument.name}
    if isinstance(argument, DTypeRef):
        return {"dtype": argument.dtype.value}
    if isinstance(argument, tuple):
        return [_encode(a) for a in argument]
    if isinstance(argument, float) and not math.isfinite(argument):
        return {"float": str(argument)}
    return argument


def _decode(data: Any) -> Argument:
    if isinstance(data, list):
        return tuple(_decode(d) for d in data)
    if isinstance(data, dict):
        ((kind, value),) = data.items()
        if kind == "tensor":
            return TensorRef(str(value))
        return DTypeRef(DType(value)) if kind == "dtype" else float(value)
    if data is None or isinstance(data, bool | int | float | str):
        return data
    raise ValueError(f"not an argument: {data!r}")


def slots_of(program: Program) -> tuple[str, ...]:
    """The tensors that are passed as pointers, in the order of their slots."""
    graph = program.graph
    named = [*graph.inputs, *program.tensors]
    order = {Role.INPUT: 0, Role.WEIGHT: 1, Role.CONSTANT: 2, Role.OUTPUT: 3, Role.TEMP: 4}
    buffers = program.buffers
    passed = [
        n for n in dict.fromkeys(named)
        if n in buffers and buffers[n].place is Place.ARGUMENT and buffers[n].alias is None
    ]  # fmt: skip
    return tuple(sorted(passed, key=lambda n: order[program.tensors[n].role]))


def library_step(step: Library) -> LibraryStep:
    """The step as a runner reads it."""
    return LibraryStep(step.call.target, encode_call(step.call), step.outputs)


def make_manifest(
    program: Program, steps: tuple[GeneratedStep | LibraryStep, ...], sizes: tuple[int, int, int]
) -> Manifest:
    """The manifest; `sizes` are the bytes of workspace, local area and packed panels."""
    slots = slots_of(program)
    tensors = [program.graph.tensors.get(n) or program.tensors[n] for n in slots]  # the graph's shapes, not the plan's

    def specs(role: Role) -> tuple[TensorSpec, ...]:
        return tuple(_spec(t) for t in tensors if t.role is role)

    graph = program.graph
    inputs = tuple(_spec(graph.tensors[n]) for n in graph.inputs)
    workspace, local, packed = sizes
    return Manifest(
        inputs, specs(Role.WEIGHT), specs(Role.CONSTANT), specs(Role.OUTPUT), specs(Role.TEMP), slots, graph.outputs,
        graph.output_tree, steps, workspace, local, packed,
    )  # fmt: skip


def _spec(tensor: Tensor) -> TensorSpec:
    return TensorSpec(tensor.name, tensor.shape, tensor.dtype.value, tensor.source)
