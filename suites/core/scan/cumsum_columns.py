"""Running sum along columns."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=0)


def get_inputs():
    return [torch.randn(2001, 1024)]


def get_init_inputs():
    return []
