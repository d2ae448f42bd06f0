"""How many elements of a row are positive."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return (x > 0).sum(dim=1)


def get_inputs():
    return [torch.randn(2000, 3001)]


def get_init_inputs():
    return []
