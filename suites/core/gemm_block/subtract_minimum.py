"""Linear layer, minimum with a constant, subtraction."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 900)
        self.limit = nn.Parameter(torch.tensor(0.3))

    def forward(self, x):
        return torch.minimum(self.linear(x), self.limit) - self.limit


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
