"""A scaled product added to a scaled matrix."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, c, a, b):
        return torch.addmm(c, a, b, beta=0.5, alpha=1.5)


def get_inputs():
    return [torch.randn(500, 540), torch.randn(500, 480), torch.randn(480, 540)]


def get_init_inputs():
    return []
