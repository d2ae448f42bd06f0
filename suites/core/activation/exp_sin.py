"""A chain of exponential, sine and square root."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sin(torch.exp(-x * x)) + torch.sqrt(torch.abs(x) + 1.0)


def get_inputs():
    return [torch.randn(2000, 2003)]


def get_init_inputs():
    return []
