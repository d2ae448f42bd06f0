"""A vector times a matrix."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, a):
        return x @ a


def get_inputs():
    return [torch.randn(2500), torch.randn(2500, 2047)]


def get_init_inputs():
    return []
