"""Convolution in double precision."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(24, 32, 3, padding=1, dtype=torch.float64)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 24, 40, 40, dtype=torch.float64)]


def get_init_inputs():
    return []
