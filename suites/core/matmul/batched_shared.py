"""A 4-d tensor times one matrix for all its batches."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(8, 12, 128, 96), torch.randn(96, 160)]


def get_init_inputs():
    return []
