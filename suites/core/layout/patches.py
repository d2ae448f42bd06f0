"""An image cut into patches."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.unfold(2, 8, 8).unfold(3, 8, 8).permute(0, 2, 3, 1, 4, 5).reshape(8, -1, 768)


def get_inputs():
    return [torch.randn(8, 12, 128, 128)]


def get_init_inputs():
    return []
