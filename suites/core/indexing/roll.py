"""Cyclic shift along two axes."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.roll(x, (3, -5), (1, 2))


def get_inputs():
    return [torch.randn(16, 57, 57, 64)]


def get_init_inputs():
    return []
