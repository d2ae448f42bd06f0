"""Hyperbolic tangent in double precision."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(1000, 2003, dtype=torch.float64)]


def get_init_inputs():
    return []
