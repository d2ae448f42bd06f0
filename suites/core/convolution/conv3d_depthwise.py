"""3-d depthwise convolution."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(32, 32, 3, padding=1, groups=32)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 32, 16, 24, 24)]


def get_init_inputs():
    return []
