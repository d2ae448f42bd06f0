"""Sum over the middle axis."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(64, 250, 401)]


def get_init_inputs():
    return []
