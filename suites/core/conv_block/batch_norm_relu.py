"""Convolution, batch norm with running statistics, ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(32, 64, 3, padding=1)
        self.norm = nn.BatchNorm2d(64)
        self.norm.running_mean.normal_(0.0, 0.1)
        self.norm.running_var.uniform_(0.5, 1.5)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(4, 32, 56, 56)]


def get_init_inputs():
    return []
