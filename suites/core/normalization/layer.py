"""Layer normalisation over the last axis."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LayerNorm(768)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(4096, 768)]


def get_init_inputs():
    return []
