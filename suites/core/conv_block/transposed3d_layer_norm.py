"""3-d transposed convolution, scalar sum, layer norm over width, pooling, GELU."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose3d(8, 16, 4, stride=2, padding=1)
        self.sum = nn.Parameter(torch.tensor(1.0))
        self.norm = nn.LayerNorm(28)

    def forward(self, x):
        return F.gelu(F.avg_pool3d(self.norm(self.conv(x) + self.sum), 2))


def get_inputs():
    return [torch.randn(2, 8, 8, 14, 14)]


def get_init_inputs():
    return []
