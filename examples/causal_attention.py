"""Scaled dot-product attention under a causal mask, heads already split."""

import torch
from torch import nn


class Model(nn.Module):
    """softmax(q k^T / sqrt(d) + causal mask) v."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [torch.randn(2, 8, 512, 64) for _ in range(3)]


def get_init_inputs():
    return []
