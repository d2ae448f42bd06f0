"""Batch normalisation with the batch's own statistics, as in training; no buffer changes."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(64))
        self.bias = nn.Parameter(torch.randn(64))

    def forward(self, x):
        return F.batch_norm(x, None, None, self.weight, self.bias, training=True)


def get_inputs():
    return [torch.randn(16, 64, 56, 56)]


def get_init_inputs():
    return []
