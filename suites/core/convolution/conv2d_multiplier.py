"""Depthwise convolution with two outputs a channel."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(64, 128, 3, padding=1, groups=64)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 64, 72, 72)]


def get_init_inputs():
    return []
