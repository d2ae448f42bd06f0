"""Whole references: what the examples need, captured without any library call left."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from capture_harness import check, kinds
from torch import nn

torch.manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def test_softmax() -> None:
    assert kinds(check(lambda x: torch.softmax(x, 1), rand(3, 17))) == ["Reduce", "Reduce", "Map"]


def test_layer_norm() -> None:
    assert kinds(check(nn.LayerNorm((5, 7)), rand(3, 5, 7) + 10)) == ["Reduce", "Reduce", "Map"]


def test_rms_norm_over_a_middle_dimension() -> None:
    class RMSNorm(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5)

    check(RMSNorm(), rand(2, 6, 4, 5))


def test_gelu() -> None:
    check(F.gelu, rand(33))
    check(lambda x: F.gelu(x, approximate="tanh"), rand(33))


def test_cumsum_argmax_and_cross_entropy() -> None:
    assert kinds(check(lambda x: torch.cumsum(x, 1), rand(3, 9))) == ["Scan"]
    assert kinds(check(lambda x: torch.argmax(x, 1), rand(3, 9, 2))) == ["Reduce"]
    check(F.cross_entropy, rand(6, 10), torch.randint(0, 10, (6,)))


def test_max_pool() -> None:
    assert kinds(check(nn.MaxPool2d(3, 2, 1), rand(2, 3, 9, 10))) == ["Reduce"]
    check(nn.MaxPool2d(3, 2, 1, dilation=2, return_indices=True), rand(2, 3, 19, 10))
    check(nn.MaxPool2d(3, 2, ceil_mode=True), rand(2, 3, 10, 12))


def test_linear_and_gelu() -> None:
    captured = check(nn.Sequential(nn.Linear(12, 20), nn.GELU()), rand(5, 12))
    assert kinds(captured) == ["Contract", "Map"]


def test_convolution_batch_norm_relu() -> None:
    model = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU()).eval()
    for p in model[1].buffers():
        if p.is_floating_point():
            p.copy_(torch.rand_like(p) + 0.5)
    captured = check(model, rand(2, 3, 9, 8))
    assert kinds(captured).count("Contract") == 1


def test_depthwise_convolution() -> None:
    assert kinds(check(nn.Conv2d(6, 6, 3, padding=1, groups=6), rand(2, 6, 7, 8))) == ["Reduce"]
    check(nn.Conv2d(4, 8, 3, padding=1, groups=4), rand(2, 4, 7, 8))


def test_attention() -> None:
    q, k, v = rand(2, 3, 5, 8), rand(2, 3, 5, 8), rand(2, 3, 5, 6)
    captured = check(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), q, k, v)
    assert kinds(captured) == ["Contract", "Reduce", "Reduce", "Map", "Contract"]
    check(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, scale=0.3), q, k, v)
    mask = torch.rand(5, 5) > 0.3
    mask[2] = False
    check(lambda a, b, c, m: F.scaled_dot_product_attention(a, b, c, attn_mask=m), q, k, v, mask)
    check(lambda a, b, c, m: F.scaled_dot_product_attention(a, b, c, attn_mask=m), q, k, v, rand(2, 1, 5, 5))
    check(
        lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True, enable_gqa=True),
        rand(2, 4, 5, 8), rand(2, 2, 5, 8), rand(2, 2, 5, 8),
    )  # fmt: skip


def test_attention_in_half_precision() -> None:
    q, k, v = (rand(1, 2, 6, 8).bfloat16() for _ in range(3))
    check(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), q, k, v, tolerance=5e-2)


class Attention(nn.Module):
    """Written by hand, in the manner of minGPT."""

    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.register_buffer("bias", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))
        self.heads, self.width = heads, width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.size()
        q, k, v = (
            p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.c_attn(x).split(self.width, dim=2)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


def test_attention_written_by_hand() -> None:
    captured = check(Attention(12, 3, 10), rand(2, 7, 12))
    assert kinds(captured).count("Contract") == 4


def test_mlp() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
    assert kinds(check(model, rand(5, 8))) == ["Contract", "Map", "Contract", "Map", "Contract"]


class Block(nn.Module):
    """A residual block with a projection."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, 2, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.downsample(x))


def test_residual_block() -> None:
    captured = check(Block(3, 6).eval(), rand(2, 3, 8, 8))
    assert kinds(captured).count("Contract") == 3
    assert len(captured.graph.ops) < 20


def test_transformer_block() -> None:
    layer = nn.TransformerEncoderLayer(12, 3, 24, batch_first=True, dropout=0.0)
    captured = check(layer, rand(2, 5, 12), tolerance=1e-4)
    assert kinds(captured).count("Contract") == 6


def test_depthwise_net() -> None:
    def separable(a: int, b: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(a, a, 3, padding=1, groups=a, bias=False), nn.BatchNorm2d(a), nn.ReLU6(),
            nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b),
        )  # fmt: skip

    model = nn.Sequential(separable(4, 8), separable(8, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)).eval()
    check(model, rand(2, 4, 6, 6))
