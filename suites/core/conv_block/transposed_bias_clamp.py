"""Transposed convolution, bias, clamp, scale, clamp."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(32, 32, 3, stride=2, padding=1, output_padding=1)
        self.bias = nn.Parameter(torch.randn(32, 1, 1))

    def forward(self, x):
        y = torch.clamp(self.conv(x) + self.bias, 0.0, 1.0) * 2.0
        return torch.clamp(y, 0.0, 1.0) / 2.0


def get_inputs():
    return [torch.randn(4, 32, 32, 32)]


def get_init_inputs():
    return []
