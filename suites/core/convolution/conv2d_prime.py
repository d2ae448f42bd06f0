"""Convolution with prime channels and sizes and no padding."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(31, 53, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(3, 31, 59, 61)]


def get_init_inputs():
    return []
