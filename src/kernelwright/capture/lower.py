"""An exported program (core ATen, static shapes) to a Graph.

What it does: names the tensors, applies the rule of each node (`capture.rules.RULES`), keeps a node without a rule as a
library call with the reason, and drops what no output needs.
What it does not do: trace or decompose (see `capture.export`). Imports torch; called by `capture.export` in a worker.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.export.exported_program import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from kernelwright.capture import rules_contract, rules_index, rules_pointwise, rules_reduce, rules_view, rules_window
from kernelwright.capture.errors import CaptureError, CaptureErrorKind
from kernelwright.capture.rules import RULES
from kernelwright.capture.site import Meta, Site, Writing, load
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import DType
from kernelwright.ir.graph import (
    Argument,
    DTypeRef,
    Graph,
    Library,
    LibraryCall,
    Op,
    Role,
    Tensor,
    TensorRef,
    inputs_of,
    outputs_of,
    validate,
)

RULE_MODULES = (rules_contract, rules_index, rules_pointwise, rules_reduce, rules_view, rules_window)

DTYPES = {
    torch.float64: DType.F64, torch.float32: DType.F32, torch.float16: DType.F16, torch.bfloat16: DType.BF16,
    torch.int64: DType.I64, torch.int32: DType.I32, torch.int16: DType.I16, torch.int8: DType.I8, torch.uint8: DType.U8,
    torch.bool: DType.BOOL,
}  # fmt: skip

# Arguments that say where or how a result is laid out: no meaning for dense CPU tensors.
_PLACEMENT = {"device", "layout", "pin_memory", "memory_format", "non_blocking"}

Value = Any  # a Tensor, a literal, or a (nested) tuple of them


def lower(program: ExportedProgram, name: str, output_tree: str) -> Graph:
    """The Graph of `program`, whose nodes are functional. Raises CaptureError for dtypes and shapes that the IR has not."""
    lowering = _Lowering(program)
    results = lowering.run()
    return lowering.graph(name, results, output_tree)


def meta_of(value: object, where: str) -> Meta:
    """Shape and dtype of a fake tensor. Raises CaptureError where they are not static or not the IR's."""
    assert isinstance(value, torch.Tensor)
    if not all(isinstance(n, int) for n in value.shape):
        raise CaptureError(CaptureErrorKind.DATA_DEPENDENT, f"the shape of {where} depends on the data",
                           "Kernelwright needs static shapes: give sizes as constants, or mask instead of selecting.")
    if value.dtype not in DTYPES:
        raise CaptureError(CaptureErrorKind.DTYPE, f"{where} has dtype {value.dtype}, which is not supported",
                           f"Supported: {', '.join(str(d).removeprefix('torch.') for d in DTYPES)}.")
    return Meta(tuple(int(n) for n in value.shape), DTYPES[value.dtype])


class _Lowering:
    """The walk over one exported program's nodes."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.writing = Writing()
        self.values: dict[Node, Value] = {}
        self.inputs: list[str] = []
        self.constants: dict[str, bytes] = {}

    def run(self) -> list[Tensor]:
        """Lower every node; the tensors that the program returns, in order."""
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = self._placeholder(node, specs[node.name])
            elif node.op == "call_function":
                self.values[node] = self._call(node)
            elif node.op == "output":
                return [self.values[n] for n in node.args[0] if isinstance(n, Node)]
            elif node.op != "get_attr":
                raise CaptureError(CaptureErrorKind.EXPORT, f"the captured program has a {node.op} node ({node.name})")
        raise AssertionError("an exported program has an output node")

    def _placeholder(self, node: Node, spec: Any) -> Value:
        if "val" not in node.meta or not isinstance(node.meta["val"], torch.Tensor):
            return getattr(spec.arg, "value", None)
        meta = meta_of(node.meta["val"], f"tensor {spec.target or node.name}")
        prefix, role, source = "in", Role.INPUT, None
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and spec.persistent is not False:
            prefix, role, source = "w", Role.WEIGHT, spec.target
        elif spec.kind is not InputKind.USER_INPUT:
            prefix, role, source = "c", Role.CONSTANT, spec.target
            self.constants[spec.target] = raw_bytes(self.program.constants[spec.target])
        shown = node.name if role is Role.INPUT else node.name.split("_", 1)[1]
        name = f"{prefix}{len(self.writing.tensors)}_{identifier(shown)}"
        tensor = Tensor(name, meta.shape, meta.dtype, role, source)
        self.writing.tensors[name] = tensor
        if role is Role.INPUT:
            self.inputs.append(name)
        return tensor

    def _call(self, node: Node) -> Value:
        if node.target is operator.getitem:
            return self.values[node.args[0]][node.args[1]]  # type: ignore[index]
        target = str(node.target)
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            results = [meta_of(value, f"{target}'s result")]
        elif isinstance(value, tuple | list):
            results = [meta_of(v, f"{target}'s result") for v in value if isinstance(v, torch.Tensor)]
        elif value is None:
            return None  # an assertion on metadata: nothing to compute
        else:
            raise CaptureError(CaptureErrorKind.DATA_DEPENDENT, f"{target} turns a tensor's data into a Python number",
                               "Avoid .item(), int(tensor) and branches on tensor values inside forward.")
        args = tuple(self._argument(a) for a in node.args)
        kwargs = {k: self._argument(v) for k, v in node.kwargs.items() if k not in _PLACEMENT}
        site = Site(self.writing, target, tuple(results), origin=target.removesuffix(".default"))
        found = self._apply(site, args, kwargs, results)
        return found if isinstance(value, torch.Tensor) or isinstance(found, tuple) else (found,)

    def _apply(self, site: Site, args: tuple[Value, ...], kwargs: dict[str, Value], results: list[Meta]) -> Value:
        """The rule's results; a library call's where there is no rule, or it does not cover these arguments."""
        reason = "no lowering"
        lowering = RULES.get(site.target)
        if lowering is not None:
            mark = len(self.writing.ops)
            try:
                found = lowering(site, *args, **kwargs)
            except UnsupportedError as error:
                reason = str(error)
                del self.writing.ops[mark:]
            else:
                self._check(site, found, results)
                return found
        call = LibraryCall(
            site.target, tuple(argument(a) for a in args), tuple((k, argument(v)) for k, v in kwargs.items())
        )
        tensors = site.library(call, results, reason)
        return tensors[0] if len(results) == 1 else tensors

    def _check(self, site: Site, found: Value, results: list[Meta]) -> None:
        for tensor, meta in zip(found if isinstance(found, tuple) else (found,), results, strict=True):
            if tensor is not None:
                assert (tensor.shape, tensor.dtype) == (meta.shape, meta.dtype), f"{site.target}: {tensor}, not {meta}"

    def _argument(self, value: object) -> Value:
        if isinstance(value, Node):
            return self.values[value]
        if isinstance(value, tuple | list):
            return tuple(self._argument(v) for v in value)
        if isinstance(value, torch.dtype):
            return DTYPES[value]
        return value

    def graph(self, name: str, results: Sequence[Tensor], output_tree: str) -> Graph:
        """The finished graph: dead operations dropped, outputs marked, library results nobody reads left out."""
        results = [self._owned(t) for t in results]
        outputs = tuple(t.name for t in results)
        ops = live(self.writing.ops, outputs)
        used = {n for op in ops for n in (*inputs_of(op), *outputs_of(op))} | {*outputs, *self.inputs}
        tensors = {n: _with_role(t, outputs) for n, t in self.writing.tensors.items() if n in used}
        kept = {t.source for t in tensors.values() if t.role is Role.CONSTANT}
        constants = {source: data for source, data in self.constants.items() if source in kept}
        graph = Graph(name, tensors, tuple(ops), tuple(self.inputs), outputs, output_tree, constants)
        validate(graph)
        return graph

    def _owned(self, tensor: Tensor) -> Tensor:
        """An output that is a constant is copied: the caller must not get the program's own data."""
        if tensor.role is not Role.CONSTANT:
            return tensor
        site = Site(self.writing, "aten.clone.default", (Meta(tensor.shape, tensor.dtype),), "aten.clone")
        return site.map(tensor.shape, tensor.dtype, lambda ix: load(tensor, ix))


def live(ops: Iterable[Op], outputs: Iterable[str]) -> list[Op]:
    """The operations that `outputs` need; results of library calls that nobody reads become None."""
    needed = set(outputs)
    kept: list[Op] = []
    for op in reversed(list(ops)):
        if needed.isdisjoint(outputs_of(op)):
            continue
        kept.append(_without_unused(op, needed))
        needed.update(inputs_of(op))
    return kept[::-1]


def _without_unused(op: Op, needed: set[str]) -> Op:
    return replace(op, outputs=tuple(n if n in needed else None for n in op.outputs)) if isinstance(op, Library) else op


def _with_role(tensor: Tensor, outputs: tuple[str, ...]) -> Tensor:
    return replace(tensor, role=Role.OUTPUT) if tensor.role is Role.TEMP and tensor.name in outputs else tensor


def argument(value: Value) -> Argument:
    """A node's argument in a library call. Raises CaptureError where it has no such form."""
    if isinstance(value, Tensor):
        return TensorRef(value.name)
    if isinstance(value, DType):
        return DTypeRef(value)
    if isinstance(value, tuple):
        return tuple(argument(v) for v in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CaptureError(CaptureErrorKind.EXPORT, f"an operator takes an argument of type {type(value).__name__}")


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The elements of `tensor`, dense, little-endian."""
    dense = tensor.detach().cpu().contiguous()
    if dense.numel() == 0:
        return b""
    return bytes(dense.reshape(-1).view(torch.uint8).numpy().tobytes())


def identifier(text: str) -> str:
    """`text` with everything but letters, digits and underscores removed."""
    return "".join(c for c in text if c.isascii() and (c.isalnum() or c == "_"))
