"""Sum of integers."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randint(-1000, 1000, (2000, 2003), dtype=torch.int32)]


def get_init_inputs():
    return []
