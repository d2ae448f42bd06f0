"""3-d convolution, leaky ReLU, added tensor, clamp, GELU."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(8, 32, 3)
        self.sum = nn.Parameter(torch.randn(32, 1, 1, 1))

    def forward(self, x):
        y = F.leaky_relu(self.conv(x), 0.2) + self.sum
        return F.gelu(torch.clamp(y, -1.0, 1.0))


def get_inputs():
    return [torch.randn(2, 8, 14, 32, 32)]


def get_init_inputs():
    return []
