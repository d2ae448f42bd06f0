"""Transposed convolution, global mean, bias, log-sum-exp."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(24, 48, 3)
        self.bias = nn.Parameter(torch.randn(48))

    def forward(self, x):
        return torch.logsumexp(self.conv(x).mean(dim=(2, 3)) + self.bias, dim=1) * 10.0


def get_inputs():
    return [torch.randn(8, 24, 32, 32)]


def get_init_inputs():
    return []
