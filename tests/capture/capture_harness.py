"""Capture, evaluate and compare with PyTorch: what the capture tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from kernelwright.capture.export import Captured, capture
from kernelwright.ir.evaluate import evaluate
from kernelwright.ir.graph import DTypeRef, Library, LibraryCall, Role, Tensor, TensorRef

TORCH = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The array that stands for a tensor in the evaluator (bf16 as float32)."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


def run_library(captured: Captured):
    """The callback that runs library calls in PyTorch."""

    def run(call: LibraryCall, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        def real(a: Any) -> Any:
            if isinstance(a, TensorRef):
                dtype = captured.graph.tensors[a.name].dtype
                return torch.tensor(arrays[a.name], dtype=TORCH[dtype.value])
            if isinstance(a, DTypeRef):
                return TORCH[a.dtype.value]
            return [real(v) for v in a] if isinstance(a, tuple) else a

        namespace, name, overload = call.target.split(".")
        op = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        out = op(*(real(a) for a in call.args), **{k: real(v) for k, v in call.kwargs})
        return tuple(as_numpy(t) for t in (out if isinstance(out, tuple | list) else (out,)))

    return run


def evaluated(captured: Captured, reference: Any, inputs: tuple[Any, ...]) -> list[np.ndarray]:
    """The captured graph's outputs for these inputs, by the numpy evaluator."""
    graph = captured.graph
    state = reference.state_dict() if isinstance(reference, torch.nn.Module) else {}
    arrays = {n: as_numpy(state[t.source]) for n, t in graph.tensors.items() if t.role is Role.WEIGHT}
    arrays |= {n: as_numpy(inputs[p]) for n, p in zip(graph.inputs, captured.tensor_inputs, strict=True)}
    out = evaluate(graph, arrays, run_library(captured))
    return [out[n] for n in graph.outputs]


def check(reference: Any, *inputs: Any, tolerance: float | None = None, generated: bool = True) -> Captured:
    """Capture `reference`, and compare the evaluator's answer with PyTorch's. `generated`: no library calls may remain."""
    with torch.no_grad():
        want = reference(*inputs)
    captured = capture(reference, inputs, "case")
    if generated:
        assert captured.library_reasons == (), captured.library_reasons
    wants = list(want) if isinstance(want, tuple | list) else [want]
    gots = evaluated(captured, reference, inputs)
    assert len(wants) == len(gots)
    for a, b, name in zip(wants, gots, captured.graph.outputs, strict=True):
        same(a, b, captured.graph.tensors[name], tolerance=tolerance)
    return captured


def kinds(captured: Captured) -> list[str]:
    """The operations' kinds, in order."""
    return [type(op).__name__ for op in captured.graph.ops]


def library_targets(captured: Captured) -> list[str]:
    return [op.call.target for op in captured.graph.ops if isinstance(op, Library)]


def check_all(table: dict[str, Callable[..., torch.Tensor]], *inputs: Any, tolerance: float | None = None) -> None:
    """Check many operators on the same inputs in one capture; a failure names the operator."""

    def every(*args: Any) -> tuple[torch.Tensor, ...]:
        return tuple(f(*args) for f in table.values())

    captured = capture(every, inputs, "table")
    assert captured.library_reasons == (), captured.library_reasons
    gots = evaluated(captured, every, inputs)
    for (label, function), got, name in zip(table.items(), gots, captured.graph.outputs, strict=True):
        want = function(*inputs)
        same(want, got, captured.graph.tensors[name], label, tolerance)


def same(want: torch.Tensor, got: np.ndarray, meta: Tensor, label: str = "", tolerance: float | None = None) -> None:
    """Assert equal shape and dtype, and values within the dtype's tolerance."""
    assert tuple(want.shape) == meta.shape == got.shape, label
    assert TORCH[meta.dtype.value] is want.dtype, label
    default = {torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.float64: 1e-10}.get(want.dtype, 2e-5)
    limit = default if tolerance is None else tolerance
    a, b = as_numpy(want).astype(np.float64), got.astype(np.float64)
    np.testing.assert_allclose(b, a, rtol=limit, atol=limit, equal_nan=True, err_msg=label)
