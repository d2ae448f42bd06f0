"""Convolution, subtraction, hard swish, max pooling, mish; prime sizes."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(31, 61, 3)

    def forward(self, x):
        return F.mish(F.max_pool2d(F.hardswish(self.conv(x) - 0.5), 2))


def get_inputs():
    return [torch.randn(3, 31, 61, 53)]


def get_init_inputs():
    return []
