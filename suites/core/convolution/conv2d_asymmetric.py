"""Convolution with kernel, padding and stride that differ by axis."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 48, (3, 7), stride=(2, 1), padding=(1, 3))

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 32, 60, 52)]


def get_init_inputs():
    return []
