"""Linear layer, group norm, row minimum, added bias."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 896)
        self.norm = nn.GroupNorm(16, 896)
        self.bias = nn.Parameter(torch.randn(1, 64))

    def forward(self, x):
        y = self.norm(self.linear(x))
        return torch.min(y, dim=1, keepdim=True)[0] + self.bias


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
