"""Mean over two separate axes."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=(0, 2))


def get_inputs():
    return [torch.randn(64, 100, 700)]


def get_init_inputs():
    return []
