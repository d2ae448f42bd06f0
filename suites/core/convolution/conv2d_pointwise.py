"""1x1 convolution."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(128, 192, 1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 128, 41, 43)]


def get_init_inputs():
    return []
