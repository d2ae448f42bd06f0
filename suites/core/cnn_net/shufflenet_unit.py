"""A ShuffleNet unit: grouped pointwise convolutions with a channel shuffle between."""

import torch
from torch import nn


def norm(channels):
    layer = nn.BatchNorm2d(channels)
    layer.running_mean.normal_(0.0, 0.1)
    layer.running_var.uniform_(0.5, 1.5)
    return layer


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(120, 60, 1, groups=3, bias=False), norm(60), nn.ReLU())
        self.middle = nn.Sequential(nn.Conv2d(60, 60, 3, padding=1, groups=60, bias=False), norm(60))
        self.last = nn.Sequential(nn.Conv2d(60, 120, 1, groups=3, bias=False), norm(120))

    def forward(self, x):
        y = self.first(x)
        b, c, h, w = y.shape
        y = y.view(b, 3, c // 3, h, w).transpose(1, 2).reshape(b, c, h, w)
        return torch.relu(x + self.last(self.middle(y)))


def get_inputs():
    return [torch.randn(4, 120, 40, 40)]


def get_init_inputs():
    return []
