"""2-d transposed convolution."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(48, 32, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 48, 40, 40)]


def get_init_inputs():
    return []
