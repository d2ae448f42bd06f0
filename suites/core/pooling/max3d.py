"""3-d max pooling."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MaxPool3d(3, stride=2, padding=1)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(2, 32, 24, 40, 40)]


def get_init_inputs():
    return []
