"""Three inverted residual blocks as in MobileNetV2."""

import torch
from torch import nn


def norm(channels):
    layer = nn.BatchNorm2d(channels)
    layer.running_mean.normal_(0.0, 0.1)
    layer.running_var.uniform_(0.5, 1.5)
    return layer


class Block(nn.Module):
    def __init__(self, width, wider) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, wider, 1, bias=False),
            norm(wider),
            nn.ReLU6(),
            nn.Conv2d(wider, wider, 3, 1, 1, groups=wider, bias=False),
            norm(wider),
            nn.ReLU6(),
            nn.Conv2d(wider, width, 1, bias=False),
            norm(width),
        )

    def forward(self, x):
        return x + self.layers(x)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(24, 96) for _ in range(3)))

    def forward(self, x):
        return self.blocks(x)


def get_inputs():
    return [torch.randn(2, 24, 48, 48)]


def get_init_inputs():
    return []
