"""Three tensors joined along the channels."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b, c):
        return torch.cat([a, b, c], dim=1)


def get_inputs():
    return [torch.randn(8, 24, 56, 56), torch.randn(8, 37, 56, 56), torch.randn(8, 16, 56, 56)]


def get_init_inputs():
    return []
