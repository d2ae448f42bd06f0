"""Convolution, group norm, scale, max pooling, clamp."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 64, 3, padding=1)
        self.norm = nn.GroupNorm(8, 64)
        self.scale = nn.Parameter(torch.rand(64, 1, 1))

    def forward(self, x):
        return torch.clamp(F.max_pool2d(self.norm(self.conv(x)) * self.scale, 4), 0.0, 1.0)


def get_inputs():
    return [torch.randn(4, 32, 56, 56)]


def get_init_inputs():
    return []
