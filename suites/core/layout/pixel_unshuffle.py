"""Space moved to channels."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.pixel_unshuffle(x, 3)


def get_inputs():
    return [torch.randn(8, 16, 81, 81)]


def get_init_inputs():
    return []
