"""Dilated convolution."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(48, 48, 3, padding=4, dilation=4)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 48, 64, 64)]


def get_init_inputs():
    return []
