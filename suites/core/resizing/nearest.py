"""Nearest-neighbour doubling."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.interpolate(x, scale_factor=2, mode="nearest")


def get_inputs():
    return [torch.randn(4, 32, 64, 64)]


def get_init_inputs():
    return []
