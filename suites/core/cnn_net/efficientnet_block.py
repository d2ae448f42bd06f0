"""An EfficientNet block: expansion, depthwise, squeeze and excitation, projection, residual."""

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
        self.expand = nn.Sequential(nn.Conv2d(32, 128, 1, bias=False), norm(128), nn.SiLU())
        self.depthwise = nn.Sequential(nn.Conv2d(128, 128, 5, 1, 2, groups=128, bias=False), norm(128), nn.SiLU())
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(128, 8, 1), nn.SiLU(), nn.Conv2d(8, 128, 1), nn.Sigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(128, 32, 1, bias=False), norm(32))

    def forward(self, x):
        y = self.depthwise(self.expand(x))
        return x + self.project(y * self.squeeze(y))


def get_inputs():
    return [torch.randn(4, 32, 40, 40)]


def get_init_inputs():
    return []
