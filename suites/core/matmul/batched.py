"""A batch of products."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs():
    return [torch.randn(16, 192, 256), torch.randn(16, 256, 160)]


def get_init_inputs():
    return []
