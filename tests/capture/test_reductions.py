"""Reductions, scans, normalisations, losses and indexing, against PyTorch."""

# ruff: noqa: E501 (tables)

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from capture_harness import check, check_all, kinds, library_targets
from torch import nn

torch.manual_seed(3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_reductions(dtype: torch.dtype) -> None:
    check_all(
        {
            "sum": lambda x: x.sum(), "sum1": lambda x: x.sum(1), "sum_keep": lambda x: x.sum((0, 2), keepdim=True),
            "mean": lambda x: x.mean(), "mean1": lambda x: x.mean(-2), "prod": lambda x: x.prod(2), "prod_all": lambda x: x[0].prod(),
            "amax": lambda x: x.amax(1), "amin": lambda x: x.amin((0, 1)), "max": lambda x: x.max(), "max_dim": lambda x: x.max(1)[0],
            "max_index": lambda x: x.max(1)[1], "min_index": lambda x: x.min(-1, keepdim=True)[1], "argmax": lambda x: x.argmax(1),
            "argmax_all": lambda x: x.argmax(), "argmin_keep": lambda x: x.argmin(0, keepdim=True), "var": lambda x: x.var(1),
            "std": lambda x: x.std(), "var0": lambda x: x.var((0, 2), correction=0), "norm": lambda x: x.norm(dim=1),
            "norm1": lambda x: x.norm(1, dim=1), "norm_inf": lambda x: x.norm(float("inf"), dim=1), "norm3": lambda x: x.norm(3.0, dim=(0, 1)),
            "frobenius": lambda x: torch.linalg.matrix_norm(x), "any": lambda x: (x > 1).any(1), "all": lambda x: (x > -9).all(),
            "count": lambda x: (x > 0).sum(1), "logsumexp": lambda x: x.logsumexp(1), "softmax": lambda x: x.softmax(1),
            "log_softmax": lambda x: x.log_softmax(-1), "softmin": lambda x: F.softmin(x, 0), "normalize": lambda x: F.normalize(x, dim=1),
            "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(2), "nansum": lambda x: x.nansum(0),
            "reverse_cumsum": lambda x: x.flip(1).cumsum(1).flip(1), "cosine": lambda x: F.cosine_similarity(x, x + 1, dim=1),
            "exclusive_cumsum": lambda x: torch.cat([torch.zeros_like(x[:, :1]), x.cumsum(1)[:, :-1]], 1),
            "pdist": lambda x: (x[:, None] - x[None]).pow(2).sum(-1).sqrt(), "softmax_f32": lambda x: x.softmax(1, dtype=torch.float32),
        },
        torch.randn(3, 5, 7).to(dtype), tolerance=5e-2 if dtype is torch.bfloat16 else None,
    )  # fmt: skip


def test_two_passes_keep_the_variance_of_shifted_data() -> None:
    check(nn.LayerNorm(64), torch.randn(4, 64) + 3000, tolerance=2e-3)
    check(lambda x: x.var(1), torch.randn(4, 64) + 3000, tolerance=2e-3)


def test_argmax_of_ties_and_nan() -> None:
    x = torch.tensor([[1.0, 3, 3, 2], [0, float("nan"), 5, float("nan")]])
    check_all({"argmax": lambda x: x.argmax(1), "max": lambda x: x.max(1)[0], "argmin": lambda x: x.argmin(1)}, x)


def test_normalisations() -> None:
    x = torch.randn(2, 6, 4, 5)
    weight, bias = torch.rand(6), torch.rand(6)
    check_all(
        {
            "group": lambda x, w, b: F.group_norm(x, 3, w, b), "instance": lambda x, w, b: F.instance_norm(x),
            "layer": lambda x, w, b: F.layer_norm(x, (4, 5)), "rms": lambda x, w, b: F.rms_norm(x, (5,)),
            "group_plain": lambda x, w, b: F.group_norm(x, 2), "instance_affine": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
            "batch_eval": lambda x, w, b: F.batch_norm(x, b, w + 1, w, b), "batch_train": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
            "lrn": lambda x, w, b: F.local_response_norm(x, 3),
        },
        x, weight, bias, tolerance=1e-4,
    )  # fmt: skip
    check(nn.LayerNorm(8, dtype=torch.bfloat16), torch.randn(3, 8).bfloat16())
    check(nn.BatchNorm1d(6).eval(), torch.randn(4, 6))


def test_losses() -> None:
    check_all(
        {
            "ce": lambda x, y, t: F.cross_entropy(x, t), "ce_smooth": lambda x, y, t: F.cross_entropy(x, t, label_smoothing=0.1),
            "nll": lambda x, y, t: F.nll_loss(x.log_softmax(1), t), "mse": lambda x, y, t: F.mse_loss(x, y), "l1": lambda x, y, t: F.l1_loss(x, y),
            "smooth_l1": lambda x, y, t: F.smooth_l1_loss(x, y), "huber": lambda x, y, t: F.huber_loss(x, y, delta=0.5),
            "kl": lambda x, y, t: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"), "hinge": lambda x, y, t: torch.mean(torch.clamp(1 - x * y, min=0)),
            "bce": lambda x, y, t: F.binary_cross_entropy_with_logits(x, y.sigmoid()), "ce_soft": lambda x, y, t: F.cross_entropy(x, y.softmax(1)),
            "triplet": lambda x, y, t: F.triplet_margin_loss(x, y, x + 1), "ce_none": lambda x, y, t: F.cross_entropy(x, t, reduction="none"),
            "ce_ignore": lambda x, y, t: F.cross_entropy(x, t, ignore_index=3),
        },
        torch.randn(5, 7), torch.randn(5, 7), torch.randint(0, 7, (5,)),
    )  # fmt: skip


def test_indexing_by_tensors() -> None:
    at = torch.tensor([[2, 0], [1, 3]])
    check_all(
        {
            "gather": lambda x, k: x.gather(1, k[:, :, None].expand(2, 2, 5)[:1].repeat(4, 1, 1)), "embedding": lambda x, k: F.embedding(k, x[0]),
            "index_select": lambda x, k: x.index_select(1, k[0]), "index": lambda x, k: x[:, k], "negative": lambda x, k: x[:, -1 - k],
            "two": lambda x, k: x[k, :, k], "adjacent": lambda x, k: x[k, k[0]], "take": lambda x, k: torch.take_along_dim(x, k[:1, :, None], 1),
            "one_hot": lambda x, k: F.one_hot(k, 5), "last": lambda x, k: x[..., k],
            "bucketize": lambda x, k: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5])),
            "bucketize_right": lambda x, k: torch.bucketize(k, torch.tensor([0, 1, 2]), right=True),
        },
        torch.randn(4, 4, 5), at,
    )  # fmt: skip


def test_what_has_no_rule_stays_a_library_call() -> None:
    captured = check(lambda x: torch.sort(x * 2, dim=1)[0] + 1, torch.randn(3, 5), generated=False)
    assert library_targets(captured) == ["aten.sort.default"]
    assert kinds(captured) == ["Map", "Library", "Map"]
    check(lambda x: torch.topk(x, 2), torch.randn(3, 5), generated=False)
    check(lambda x, k: torch.zeros(3, 5).scatter_add(1, k, x), torch.randn(3, 5), torch.randint(0, 5, (3, 5)), generated=False)


def test_recurrences_stay_whole() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru = nn.LSTM(4, 6, 2, batch_first=True), nn.GRU(6, 5)
            self.head = nn.Linear(5, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.gru(self.lstm(x)[0])[0][:, -1])

    captured = check(Net().eval(), torch.randn(2, 7, 4), generated=False)
    assert library_targets(captured) == ["aten.lstm.input", "aten.gru.input"]
