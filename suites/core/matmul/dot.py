"""Inner products of pairs of long vectors."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return (a * b).sum(dim=-1)


def get_inputs():
    return [torch.randn(7, 400000), torch.randn(7, 400000)]


def get_init_inputs():
    return []
