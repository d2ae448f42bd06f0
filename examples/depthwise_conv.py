"""A depthwise 3x3 convolution: each channel has its own filter, as in MobileNet."""

import torch
from torch import nn


class Model(nn.Module):
    """Conv2d with as many groups as channels."""

    def __init__(self, channels: int, kernel_size: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size, padding=kernel_size // 2, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def get_inputs():
    return [torch.randn(8, 96, 112, 112)]


def get_init_inputs():
    return [96, 3]
