"""Sum of absolute values over the middle axis."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.vector_norm(x, ord=1, dim=1)


def get_inputs():
    return [torch.randn(64, 250, 401)]


def get_init_inputs():
    return []
