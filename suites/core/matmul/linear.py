"""A linear layer with a bias."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(777, 1111)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(333, 777)]


def get_init_inputs():
    return []
