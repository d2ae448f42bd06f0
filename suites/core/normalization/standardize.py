"""Standardisation of rows by their own mean and deviation."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return (x - x.mean(dim=1, keepdim=True)) / (x.std(dim=1, keepdim=True) + 1e-5)


def get_inputs():
    return [torch.randn(1500, 2000)]


def get_init_inputs():
    return []
