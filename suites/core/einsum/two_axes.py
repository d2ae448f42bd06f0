"""Contraction over two axes at once."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.einsum("bhik,jhk->bij", a, b)


def get_inputs():
    return [torch.randn(6, 16, 128, 24), torch.randn(100, 16, 24)]


def get_init_inputs():
    return []
