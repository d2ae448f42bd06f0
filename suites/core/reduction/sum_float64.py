"""Sum in double precision."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=(1, 2))


def get_inputs():
    return [torch.randn(64, 200, 301, dtype=torch.float64)]


def get_init_inputs():
    return []
