"""Attention under a boolean mask that leaves each row something."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def get_inputs():
    return [
        torch.randn(2, 8, 200, 64),
        torch.randn(2, 8, 200, 64),
        torch.randn(2, 8, 200, 64),
        (torch.rand(200, 200) > 0.4) | torch.eye(200, dtype=torch.bool),
    ]


def get_init_inputs():
    return []
