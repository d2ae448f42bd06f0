"""Linear layer, residual, layer norm."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 768)
        self.norm = nn.LayerNorm(768)

    def forward(self, x):
        return self.norm(x + self.linear(x))


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
