"""Layer normalisation over a prime extent."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LayerNorm(1009)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(2003, 1009)]


def get_init_inputs():
    return []
