"""Product with a huge inner extent: the inputs dominate."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(48, 65536), torch.randn(65536, 40)]


def get_init_inputs():
    return []
