"""Bilinear resizing with aligned corners."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(101, 89), mode="bilinear", align_corners=True)


def get_inputs():
    return [torch.randn(4, 32, 48, 48)]


def get_init_inputs():
    return []
