"""Batch normalisation with running statistics."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.BatchNorm2d(64)
        self.layer.running_mean.normal_(0.0, 0.1)
        self.layer.running_var.uniform_(0.5, 1.5)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(8, 64, 72, 72)]


def get_init_inputs():
    return []
