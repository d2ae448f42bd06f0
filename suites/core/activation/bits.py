"""Shifts, masks and comparisons of integers."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return ((x >> 3) & 255) ^ (x << 1)


def get_inputs():
    return [torch.randint(-100000, 100000, (2000, 2003), dtype=torch.int32)]


def get_init_inputs():
    return []
