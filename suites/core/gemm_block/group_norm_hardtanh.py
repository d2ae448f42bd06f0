"""Linear layer, group norm, hard tanh."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 900)
        self.norm = nn.GroupNorm(18, 900)

    def forward(self, x):
        return F.hardtanh(self.norm(self.linear(x)), -2.0, 2.0)


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
