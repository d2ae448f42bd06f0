"""2-d transposed convolution in groups."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(64, 64, 3, stride=2, groups=4)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 64, 24, 24)]


def get_init_inputs():
    return []
