"""Product in double precision."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(400, 420, dtype=torch.float64), torch.randn(420, 380, dtype=torch.float64)]


def get_init_inputs():
    return []
