"""Elements written where positions say."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.scatter(x, 1, torch.flip(torch.arange(1500), (0,)).expand(800, 1500), y)


def get_inputs():
    return [torch.randn(800, 2000), torch.randn(800, 1500)]


def get_init_inputs():
    return []
