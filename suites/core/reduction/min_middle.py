"""Least element over the middle axis."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.amin(x, dim=1)


def get_inputs():
    return [torch.randn(64, 250, 401)]


def get_init_inputs():
    return []
