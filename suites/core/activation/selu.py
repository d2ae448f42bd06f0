"""SELU."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.selu(x)


def get_inputs():
    return [torch.randn(2000, 2003)]


def get_init_inputs():
    return []
