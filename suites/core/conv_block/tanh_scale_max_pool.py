"""Convolution, tanh, scale, bias, max pooling."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 64, 3, padding=1)
        self.bias = nn.Parameter(torch.randn(64, 1, 1))

    def forward(self, x):
        return F.max_pool2d(torch.tanh(self.conv(x)) * 2.0 + self.bias, 2)


def get_inputs():
    return [torch.randn(4, 32, 56, 56)]


def get_init_inputs():
    return []
