"""Depthwise 5x5 convolution with stride 2."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(120, 120, 5, stride=2, padding=2, groups=120)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 120, 57, 57)]


def get_init_inputs():
    return []
