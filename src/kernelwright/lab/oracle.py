"""The float64 oracle: the reference run in double precision. Runs only inside the reference worker.

What it does: makes a double copy of the module, rewrites the places where the reference itself asks for a shorter float
(`.float()`, `dtype=torch.float32`) to double, and moves inputs and weights by half an ulp to see how much rounding alone can
change the answer.
What it does not do: decide what a failure of the oracle means (the Lab does). Called by `lab.reference_worker`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

SHORT = (torch.float32, torch.float16, torch.bfloat16)
HALF_ULP = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float64: 2.0**-53}

PERIOD = 8191


class _InDouble(TorchFunctionMode):
    """Turns requests for short floats into requests for double."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            return args[0].double()
        wide_args = tuple(torch.float64 if isinstance(a, torch.dtype) and a in SHORT else a for a in args)
        wide = {
            k: torch.float64 if isinstance(v, torch.dtype) and v in SHORT else v for k, v in (kwargs or {}).items()
        }
        return func(*wide_args, **wide)


def double_module(module: torch.nn.Module) -> torch.nn.Module:
    """A deep copy in double. Complex and integer buffers stay."""
    return copy.deepcopy(module).double()


def moved_module(module: torch.nn.Module, double: torch.nn.Module, generator: torch.Generator) -> torch.nn.Module:
    """A copy of `double` whose floating weights are moved by half an ulp of the dtype that they have in `module`."""
    out = copy.deepcopy(double)
    dtypes = {n: t.dtype for n, t in (*module.named_parameters(), *module.named_buffers())}
    with torch.no_grad():
        for name, tensor in (*out.named_parameters(), *out.named_buffers()):
            if tensor.is_floating_point():
                tensor.copy_(move(tensor, dtypes[name], generator))
    return out


def widen(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Floating tensors in double, others as they are."""
    return [t.double() if t.is_floating_point() else t for t in tensors]


def move(tensor: torch.Tensor, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """A dense double tensor whose elements are moved by half an ulp of `dtype`, up or down.

    The directions are random over PERIOD elements and repeat: the period is a prime, so that no axis falls in step with it.
    """
    out = tensor.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    factors = 1.0 + HALF_ULP[dtype] * (torch.randint(0, 2, (PERIOD,), generator=generator) * 2 - 1).double()
    flat = out.view(-1)
    whole = flat.numel() // PERIOD * PERIOD
    flat[:whole].view(-1, PERIOD).mul_(factors)
    flat[whole:].mul_(factors[: flat.numel() - whole])
    return out


@contextmanager
def in_double() -> Iterator[None]:
    """While open, new floating tensors are double and requests for shorter floats become double."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _InDouble():
            yield
    finally:
        torch.set_default_dtype(before)
