"""3-d transposed convolution, swish, group norm, hard swish."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(8, 16, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, x):
        return F.hardswish(self.norm(F.silu(self.conv(x))))


def get_inputs():
    return [torch.randn(2, 8, 8, 14, 14)]


def get_init_inputs():
    return []
