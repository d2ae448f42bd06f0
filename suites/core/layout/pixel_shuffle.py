"""Channels moved to space."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.pixel_shuffle(x, 2)


def get_inputs():
    return [torch.randn(8, 128, 40, 40)]


def get_init_inputs():
    return []
