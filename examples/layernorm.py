"""Layer normalisation with an affine transform over the features of a token batch."""

import torch
from torch import nn


class Model(nn.Module):
    """LayerNorm over the last dimension."""

    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, 1.0, 0.1)
        nn.init.normal_(self.norm.bias, 0.0, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(8, 512, 1024)]


def get_init_inputs():
    return [1024]
