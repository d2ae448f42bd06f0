"""Hinge loss."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return torch.clamp(1 - x * y, min=0).mean()


def get_inputs():
    return [torch.randn(1500, 2001), torch.randint(0, 2, (1500, 2001)).float() * 2 - 1]


def get_init_inputs():
    return []
