"""Linear layer, division, ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 900)

    def forward(self, x):
        return torch.relu(self.linear(x) / 2.0)


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
