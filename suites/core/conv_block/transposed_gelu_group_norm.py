"""Transposed convolution, GELU, group norm."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(32, 32, 3, stride=2)
        self.norm = nn.GroupNorm(8, 32)

    def forward(self, x):
        return self.norm(F.gelu(self.conv(x)))


def get_inputs():
    return [torch.randn(4, 32, 28, 28)]


def get_init_inputs():
    return []
