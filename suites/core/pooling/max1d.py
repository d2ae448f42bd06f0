"""1-d max pooling."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MaxPool1d(5, stride=2, padding=2)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(16, 64, 4001)]


def get_init_inputs():
    return []
