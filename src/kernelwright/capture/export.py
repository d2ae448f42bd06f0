"""A module or function with example inputs, to a Graph.

What it does: runs torch.export (non-strict, no_grad), decomposes to core ATen except for what decomposes badly, checks that
the result is functional and static, and lowers it. The module keeps its own train or eval mode; its weights are not read.
What it does not do: load the user's file (see `task.reference`), run anything, or fall back by itself.
Imports torch and runs the user's code: only a worker process calls it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence

import torch
from torch.export.exported_program import ExportedProgram
from torch.export.graph_signature import ConstantArgument, TensorArgument

from kernelwright.capture.captured import Captured
from kernelwright.capture.errors import CaptureError, CaptureErrorKind
from kernelwright.capture.lower import lower

Reference = Callable[..., object]
Input = torch.Tensor | float | int | bool

# Kept whole: their decompositions lose structure (attention), unroll over time (recurrences) or add views (products).
KEPT = (
    torch.ops.aten.scaled_dot_product_attention.default, torch.ops.aten.linear.default, torch.ops.aten.matmul.default,
    torch.ops.aten.lstm.input, torch.ops.aten.lstm.data, torch.ops.aten.gru.input, torch.ops.aten.gru.data,
    torch.ops.aten.rnn_tanh.input, torch.ops.aten.rnn_tanh.data, torch.ops.aten.rnn_relu.input, torch.ops.aten.rnn_relu.data,
    torch.ops.aten.softplus.default, torch.ops.aten.silu.default, torch.ops.aten.mish.default, torch.ops.aten.hardswish.default,
    torch.ops.aten.hardsigmoid.default, torch.ops.aten.logsumexp.default, torch.ops.aten.pixel_shuffle.default,
    torch.ops.aten.pixel_unshuffle.default, torch.ops.aten.roll.default, torch.ops.aten.tril.default,
    torch.ops.aten.triu.default, torch.ops.aten.masked_fill.Scalar, torch.ops.aten.masked_fill.Tensor,
    torch.ops.aten.index_select.default, torch.ops.aten.stack.default, torch.ops.aten.one_hot.default,
    torch.ops.aten.upsample_nearest1d.vec, torch.ops.aten.upsample_nearest2d.vec, torch.ops.aten.upsample_nearest3d.vec,
    torch.ops.aten.upsample_bilinear2d.vec, torch.ops.aten.upsample_linear1d.vec, torch.ops.aten.upsample_bicubic2d.vec,
    torch.ops.aten.reflection_pad1d.default, torch.ops.aten.reflection_pad2d.default,
    torch.ops.aten.replication_pad1d.default, torch.ops.aten.replication_pad2d.default, torch.ops.aten.im2col.default,
)  # fmt: skip


class _Function(torch.nn.Module):
    """A plain function in the shape that torch.export wants."""

    def __init__(self, function: Reference) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Input) -> object:
        return self.function(*args)


def capture(reference: torch.nn.Module | Reference, inputs: Sequence[Input], name: str) -> Captured:
    """The Graph of `reference` at the shapes of `inputs`. Raises CaptureError; the inputs are not changed."""
    for position, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor | float | int | bool):
            kind = type(value).__name__
            raise CaptureError(CaptureErrorKind.INPUT, f"input {position} is a {kind}, not a tensor or a number",
                               "Make get_inputs return a flat list of tensors and numbers.")
    module = reference if isinstance(reference, torch.nn.Module) else _Function(reference)
    program = _exported(module, tuple(inputs))
    tree = _output_tree(program)
    _check_functional(program)
    graph = lower(program, name, tree)
    scalars = tuple((p, v) for p, v in enumerate(inputs) if not isinstance(v, torch.Tensor))
    return Captured(graph, tuple(p for p, v in enumerate(inputs) if isinstance(v, torch.Tensor)), scalars)


def _exported(module: torch.nn.Module, inputs: tuple[Input, ...]) -> ExportedProgram:
    table = torch.export.default_decompositions()
    for op in KEPT:
        table.pop(op, None)  # type: ignore[no-untyped-call]
    with warnings.catch_warnings(record=True) as seen, torch.no_grad():
        warnings.simplefilter("always")
        try:
            program: ExportedProgram = torch.export.export(module, inputs, strict=False).run_decompositions(table)
        except Exception as error:  # tracing runs the user's forward, which may raise anything: it is told in one line
            raise _explained(error) from error
    _check_attributes([str(w.message) for w in seen])
    return program


# What torch.export says, by the words it uses -> our kind and hint.
_EXPLANATIONS: tuple[tuple[str, CaptureErrorKind, str, str], ...] = (
    (
        r"GuardOnDataDependent|data-dependent|DataDependentOutput|Could not extract specialized integer|Could not guard",
        CaptureErrorKind.DATA_DEPENDENT,
        "the reference's shapes or branches depend on tensor values",
        "Kernelwright needs a static graph: use torch.where or masks instead of if, .item() or nonzero.",
    ),
    (
        r"is mutated|was mutated|assigned during export|Such attributes must be registered",
        CaptureErrorKind.STATE_MUTATED,
        "forward changes the module's own state",
        "Return the new state instead of storing it on the module.",
    ),
)


def _explained(error: Exception) -> CaptureError:
    text = f"{type(error).__name__}: {error}"
    for pattern, kind, message, hint in _EXPLANATIONS:
        if re.search(pattern, text):
            return CaptureError(kind, f"{message} ({short(error)})", hint)
    return CaptureError(CaptureErrorKind.RAISED, f"the reference can't be captured: {short(error)}",
                        "Run it once in plain PyTorch with the same inputs; if it works there, torch.export refuses it.")


def short(error: Exception, limit: int = 200) -> str:
    """The type and the first line of an error's text."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line}"[:limit]


def _check_attributes(messages: list[str]) -> None:
    """Refuse a forward that stores tensors on its module (recurrent layers refresh `_flat_weights`, which is harmless)."""
    for message in messages:
        before, found, _ = message.partition("assigned during export")
        names = [n for n in re.findall(r"self\.([\w.\[\]]+)", before) if found and "_flat_weights" not in n]
        if names:
            raise CaptureError(CaptureErrorKind.STATE_MUTATED, f"forward changes the module's own state: {names[0]}",
                               "Return the new state instead of storing it on the module.")


def _check_functional(program: ExportedProgram) -> None:
    signature = program.graph_signature
    if signature.user_inputs_to_mutate:
        name = next(iter(signature.user_inputs_to_mutate.values()))
        raise CaptureError(CaptureErrorKind.INPUT_MUTATED, f"the reference changes its input {name} in place",
                           "Use the out-of-place form of the operation (add instead of add_), or clone the input first.")
    changed = {**signature.buffers_to_mutate, **getattr(signature, "parameters_to_mutate", {})}
    if changed:
        name = next(iter(changed.values()))
        raise CaptureError(CaptureErrorKind.STATE_MUTATED, f"forward changes the module's own state: {name}",
                           "BatchNorm in training updates its statistics: call .eval(), or set track_running_stats=False.")


def _output_tree(program: ExportedProgram) -> str:
    """"tensor", "tuple", "list" or "none"."""
    outputs = program.graph_signature.output_specs
    for spec in outputs:
        if isinstance(spec.arg, ConstantArgument) and spec.arg.value is None and len(outputs) == 1:
            return "none"
        if not isinstance(spec.arg, TensorArgument):
            value = getattr(spec.arg, "value", spec.arg)
            raise _not_tensors(type(value).__name__)
    spec = program.call_spec.out_spec
    assert spec is not None
    if spec.is_leaf():
        return "tensor"
    if not issubclass(spec.type, tuple | list) or not all(child.is_leaf() for child in spec.children()):
        raise _not_tensors("dict" if spec.type is dict else "nested structure")
    return "tuple" if issubclass(spec.type, tuple) else "list"


def _not_tensors(what: str) -> CaptureError:
    return CaptureError(CaptureErrorKind.OUTPUT, f"the reference returns a {what}",
                        "Return a tensor, or a flat tuple or list of tensors.")


__all__ = ["CaptureError", "CaptureErrorKind", "Captured", "capture"]
