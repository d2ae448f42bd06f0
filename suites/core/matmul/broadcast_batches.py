"""Batches that broadcast against each other."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(8, 1, 96, 128), torch.randn(6, 128, 112)]


def get_init_inputs():
    return []
