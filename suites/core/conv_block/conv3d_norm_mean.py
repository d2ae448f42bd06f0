"""3-d convolution, group norm, mean of each sample."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(4, 24, 3)
        self.norm = nn.GroupNorm(8, 24)

    def forward(self, x):
        return self.norm(self.conv(x)).sigmoid().mean(dim=(1, 2, 3, 4))


def get_inputs():
    return [torch.randn(4, 4, 16, 32, 32)]


def get_init_inputs():
    return []
