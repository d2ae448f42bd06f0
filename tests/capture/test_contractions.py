"""Matrix products, convolutions, pooling and resizing, against PyTorch."""

# ruff: noqa: E501 (tables)

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from capture_harness import check, check_all, kinds
from torch import nn

from kernelwright.ir.graph import Contract, Reduce

torch.manual_seed(4)


def test_matrix_products() -> None:
    a, b, w = torch.randn(2, 3, 4, 5), torch.randn(3, 5, 6), torch.randn(6, 5)
    check_all(
        {
            "matmul": lambda a, b, w: a @ b, "mm": lambda a, b, w: a[0, 0] @ w.t(), "bmm": lambda a, b, w: torch.bmm(a[0], b),
            "transposed": lambda a, b, w: a @ a.transpose(-1, -2), "linear": lambda a, b, w: F.linear(a, w, w[:, 0]),
            "addmm": lambda a, b, w: torch.addmm(w[:, 0], a[0, 0], w.t(), beta=0.5, alpha=2), "mv": lambda a, b, w: w @ a[0, 0, 0],
            "baddbmm": lambda a, b, w: torch.baddbmm(torch.ones(4, 6), a[0], b), "dot": lambda a, b, w: w[0] @ w[1],
            "vm": lambda a, b, w: w[0] @ b, "einsum": lambda a, b, w: torch.einsum("bhik,hkj->bhij", a, b), "outer": lambda a, b, w: torch.outer(w[0], w[1]),
            "kron": lambda a, b, w: torch.kron(w, w[:2]),
            "tensordot": lambda a, b, w: torch.tensordot(a, w, dims=([3], [1])), "cdist": lambda a, b, w: ((a[0, 0][:, None] - w[None]) ** 2).sum(-1),
            "gram": lambda a, b, w: torch.tril(w @ w.t()), "batch_of_one": lambda a, b, w: a[:, :1] @ b,
        },
        a, b, w, tolerance=1e-4,
    )  # fmt: skip


def test_matrix_vector_products_are_reductions() -> None:
    assert kinds(check(lambda w, x: w @ x, torch.randn(6, 5), torch.randn(5))) == ["Reduce"]
    assert kinds(check(nn.Linear(5, 3, bias=False), torch.randn(5))) == ["Reduce"]


def test_a_contract_keeps_its_library_call() -> None:
    captured = check(nn.Linear(5, 3), torch.randn(4, 5))
    op = captured.graph.ops[0]
    assert isinstance(op, Contract)
    assert op.library is not None
    assert op.library.target == "aten.linear.default"
    assert op.finish is not None


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_dtypes(dtype: torch.dtype) -> None:
    check(nn.Linear(24, 6, dtype=dtype), torch.randn(3, 24).to(dtype))
    check(nn.Conv2d(3, 4, 3, dtype=dtype), torch.randn(1, 3, 6, 6).to(dtype))


CONVOLUTIONS = {
    "1d": (nn.Conv1d(3, 4, 3, padding=1), (2, 3, 9)),
    "2d": (nn.Conv2d(3, 4, (3, 2), stride=(2, 1), padding=(0, 1), dilation=(1, 2)), (2, 3, 9, 8)),
    "3d": (nn.Conv3d(2, 3, 2, stride=2, padding=1, bias=False), (1, 2, 5, 4, 6)),
    "grouped": (nn.Conv2d(4, 6, 3, padding=1, groups=2), (2, 4, 5, 6)),
    "depthwise": (nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=4), (2, 4, 7, 6)),
    "pointwise": (nn.Conv2d(4, 6, 1), (2, 4, 3, 3)),
    "one_channel": (nn.Conv2d(1, 6, 3), (2, 1, 5, 5)),
    "same": (nn.Conv2d(3, 4, 4, padding="same"), (1, 3, 6, 6)),
    "circular": (nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (1, 3, 6, 6)),
    "transposed": (nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 3, 4, 5)),
    "transposed_plain": (nn.ConvTranspose1d(3, 4, 3, bias=False), (2, 3, 6)),
    "transposed_grouped": (nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2), (1, 4, 3, 3)),
    "transposed_depthwise": (nn.ConvTranspose2d(4, 4, 3, dilation=2, groups=4), (1, 4, 4, 4)),
    "transposed_3d": (nn.ConvTranspose3d(2, 3, 2, stride=2), (1, 2, 3, 3, 2)),
}


class Several(nn.Module):
    """Several modules, each on its own input."""

    def __init__(self, modules: list[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(m(x) for m, x in zip(self.parts, inputs, strict=True))


def test_convolutions() -> None:
    inputs = [torch.randn(shape) for _, shape in CONVOLUTIONS.values()]
    captured = check(Several([m for m, _ in CONVOLUTIONS.values()]), *inputs, tolerance=1e-4)
    depthwise = sum("depthwise" in name for name in CONVOLUTIONS)
    assert sum(isinstance(op, Reduce) for op in captured.graph.ops) == depthwise
    assert sum(isinstance(op, Contract) for op in captured.graph.ops) == len(CONVOLUTIONS) - depthwise


def test_pooling() -> None:
    x = torch.randn(2, 3, 12, 8)
    check_all(
        {
            "max": lambda x: F.max_pool2d(x, 2), "max_pad": lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1)), "max1": lambda x: F.max_pool1d(x[0], 3, 2),
            "max_dilated": lambda x: F.max_pool2d(x, 2, 1, dilation=2), "max3": lambda x: F.max_pool3d(x, 2), "avg": lambda x: F.avg_pool2d(x, 2),
            "avg_pad": lambda x: F.avg_pool2d(x, 3, 2, 1), "avg_in": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            "avg_ceil": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), "avg_divisor": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
            "avg1": lambda x: F.avg_pool1d(x[0], 3, 2), "avg3": lambda x: F.avg_pool3d(x, 2), "adaptive": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
            "global": lambda x: F.adaptive_avg_pool2d(x, 1), "adaptive1": lambda x: F.adaptive_avg_pool1d(x[0], 4), "unbatched": lambda x: F.max_pool2d(x[0], 2),
            "adaptive_odd": lambda x: F.adaptive_avg_pool2d(x, (5, 3)), "global_max": lambda x: F.adaptive_max_pool2d(x, 1), "adaptive_max": lambda x: F.adaptive_max_pool2d(x, (5, 4)),
            "max_ceil": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), "adaptive_index": lambda x: F.adaptive_max_pool2d(x, (5, 4), return_indices=True)[1], "lp": lambda x: F.lp_pool2d(x.abs(), 2.0, 2),
        },
        x,
    )  # fmt: skip


def test_resizing() -> None:
    x = torch.randn(2, 3, 6, 5)
    check_all(
        {
            "nearest": lambda x: F.interpolate(x, scale_factor=2), "nearest_size": lambda x: F.interpolate(x, size=(9, 7)),
            "nearest_down": lambda x: F.interpolate(x, scale_factor=0.5), "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
            "bilinear_aligned": lambda x: F.interpolate(x, size=(9, 7), mode="bilinear", align_corners=True),
            "linear": lambda x: F.interpolate(x[0], size=8, mode="linear"), "bilinear_down": lambda x: F.interpolate(x, size=(3, 4), mode="bilinear"),
            "nearest1d": lambda x: F.interpolate(x[0], scale_factor=3.0), "odd_factor": lambda x: F.interpolate(x, scale_factor=1.7),
        },
        x,
    )  # fmt: skip
