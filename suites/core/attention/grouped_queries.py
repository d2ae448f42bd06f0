"""Attention whose keys and values are shared by groups of query heads."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def get_inputs():
    return [torch.randn(2, 12, 192, 64), torch.randn(2, 3, 192, 64), torch.randn(2, 3, 192, 64)]


def get_init_inputs():
    return []
