"""Layer normalisation over three axes."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LayerNorm((32, 40, 40))

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(32, 32, 40, 40)]


def get_init_inputs():
    return []
