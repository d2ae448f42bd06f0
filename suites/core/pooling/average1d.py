"""1-d average pooling."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AvgPool1d(7, stride=3)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(16, 64, 6001)]


def get_init_inputs():
    return []
