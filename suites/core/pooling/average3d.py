"""3-d average pooling."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AvgPool3d(2, stride=2)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(2, 32, 24, 48, 48)]


def get_init_inputs():
    return []
