"""Depthwise convolution."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(96, 96, 3, padding=1, groups=96)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 96, 64, 64)]


def get_init_inputs():
    return []
