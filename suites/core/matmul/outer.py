"""Outer product of two vectors."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.outer(a, b)


def get_inputs():
    return [torch.randn(1500), torch.randn(1999)]


def get_init_inputs():
    return []
