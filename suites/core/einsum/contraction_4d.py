"""A 4-d tensor contracted with a matrix."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.einsum("bijl,lk->bijk", a, b)


def get_inputs():
    return [torch.randn(4, 32, 40, 128), torch.randn(128, 192)]


def get_init_inputs():
    return []
