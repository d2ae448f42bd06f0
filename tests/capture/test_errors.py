"""What can't be captured gets one typed error that says what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from capture_harness import check
from torch import nn

from kernelwright.capture.errors import CaptureError, CaptureErrorKind
from kernelwright.capture.export import capture
from kernelwright.ir.codec import dumps, loads
from kernelwright.ir.graph import Role


class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.hidden = torch.zeros(3)


class AddsToBuffer(Stateful):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x)
        return x + self.seen


class StoresHidden(Stateful):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden = self.hidden + x
        return self.hidden * 2


class AddsToHidden(Stateful):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden += x
        return self.hidden * 2


def _raises(x: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("the shelf is empty")


def _mismatch(x: torch.Tensor) -> torch.Tensor:
    return x @ torch.ones(4, 4)


CASES: dict[str, tuple[Any, CaptureErrorKind]] = {
    "nonzero": (lambda x: x[x > 0], CaptureErrorKind.DATA_DEPENDENT),
    "branch": (lambda x: x if x.sum() > 0 else -x, CaptureErrorKind.DATA_DEPENDENT),
    "item": (lambda x: x * x.max().item(), CaptureErrorKind.DATA_DEPENDENT),
    "unique": (torch.unique, CaptureErrorKind.DATA_DEPENDENT),
    "in_place": (lambda x: x.add_(1), CaptureErrorKind.INPUT_MUTATED),
    "in_place_slice": (lambda x: x[1:].mul_(2) + 1, CaptureErrorKind.INPUT_MUTATED),
    "dict": (lambda x: {"a": x + 1}, CaptureErrorKind.OUTPUT),
    "nested": (lambda x: (x + 1, (x, x)), CaptureErrorKind.OUTPUT),
    "number": (lambda x: (x + 1, 3), CaptureErrorKind.OUTPUT),
    "complex": (lambda x: torch.fft.fft(x).abs(), CaptureErrorKind.DTYPE),
    "raises": (_raises, CaptureErrorKind.RAISED),
    "mismatch": (_mismatch, CaptureErrorKind.RAISED),
    "buffer": (AddsToBuffer(), CaptureErrorKind.STATE_MUTATED),
    "attribute": (StoresHidden(), CaptureErrorKind.STATE_MUTATED),
    "attribute_in_place": (AddsToHidden(), CaptureErrorKind.STATE_MUTATED),
}


@pytest.mark.parametrize("name", CASES)
def test_a_typed_error(name: str) -> None:
    reference, kind = CASES[name]
    with pytest.raises(CaptureError) as caught:
        capture(reference, (torch.randn(3),), name)
    assert caught.value.kind is kind
    assert caught.value.hint
    assert len(caught.value.message) < 400
    assert "\n" not in caught.value.message


def test_batch_norm_in_training_says_what_to_do() -> None:
    with pytest.raises(CaptureError, match=r"BatchNorm.*eval\(\)"):
        capture(nn.BatchNorm2d(3), (torch.randn(2, 3, 4, 4),), "bn")


def test_an_input_that_is_no_tensor() -> None:
    with pytest.raises(CaptureError, match="flat list"):
        capture(torch.relu, ([torch.ones(2)],), "list")  # type: ignore[arg-type]


def test_the_users_message_is_kept() -> None:
    with pytest.raises(CaptureError, match="the shelf is empty"):
        capture(_raises, (torch.ones(3),), "raises")


class Weights(nn.Module):
    """A parameter used twice, a buffer that is not in the state_dict, and a plain tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.rand(4))
        self.register_buffer("mask", torch.rand(4) > 0.5, persistent=False)
        self.shift = torch.arange(4).bfloat16()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)) * self.scale * self.mask + self.shift + torch.tensor([1.0, 2, 3, 4])


def test_weights_constants_and_the_way_through_the_codec() -> None:
    module = Weights()
    captured = check(module, torch.randn(3, 4))
    assert set(captured.weights) <= set(module.state_dict())
    constants = [t for t in captured.graph.tensors.values() if t.role is Role.CONSTANT]
    assert sorted(t.dtype.value for t in constants) == ["bf16", "bool", "f32"]
    assert all(len(captured.graph.constants[t.source or ""]) == t.bytes for t in constants)
    assert loads(dumps(captured)) == captured
