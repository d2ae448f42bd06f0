"""Batched product, scale, bias, tanh."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, c, a, b):
        return torch.tanh(torch.baddbmm(c, a, b) * 0.1)


def get_inputs():
    return [torch.randn(16, 1, 160), torch.randn(16, 192, 256), torch.randn(16, 256, 160)]


def get_init_inputs():
    return []
