"""A linear layer with bias followed by GELU: the first half of a transformer's feed-forward block."""

import torch
from torch import nn


class Model(nn.Module):
    """gelu(x W^T + b)."""

    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.linear = nn.Linear(features, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return [768, 3072]
