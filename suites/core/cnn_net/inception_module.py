"""An Inception module: four branches joined along the channels."""

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
        self.one = nn.Conv2d(96, 32, 1)
        self.three = nn.Sequential(nn.Conv2d(96, 48, 1), nn.Conv2d(48, 64, 3, padding=1))
        self.five = nn.Sequential(nn.Conv2d(96, 8, 1), nn.Conv2d(8, 16, 5, padding=2))
        self.pool = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), nn.Conv2d(96, 16, 1))

    def forward(self, x):
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], dim=1)


def get_inputs():
    return [torch.randn(4, 96, 28, 28)]


def get_init_inputs():
    return []
