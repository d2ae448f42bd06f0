"""Convolution with reflected borders."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 32, 3, padding=1, padding_mode="reflect")

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 32, 64, 64)]


def get_init_inputs():
    return []
