"""Depthwise convolution, then pointwise, each with ReLU6."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(64, 64, 3, padding=1, groups=64)
        self.pointwise = nn.Conv2d(64, 128, 1)

    def forward(self, x):
        return F.relu6(self.pointwise(F.relu6(self.depthwise(x))))


def get_inputs():
    return [torch.randn(4, 64, 56, 56)]


def get_init_inputs():
    return []
