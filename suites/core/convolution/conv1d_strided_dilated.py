"""1-d convolution with stride and dilation."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(64, 96, 3, stride=3, dilation=4)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(8, 64, 3001)]


def get_init_inputs():
    return []
