"""Triplet margin loss."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, a, p, n):
        return F.triplet_margin_loss(a, p, n, margin=1.0)


def get_inputs():
    return [torch.randn(1024, 1000), torch.randn(1024, 1000), torch.randn(1024, 1000)]


def get_init_inputs():
    return []
