"""Softmax in float16."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(1024, 1500, dtype=torch.float16)]


def get_init_inputs():
    return []
