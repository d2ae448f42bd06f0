"""A small ResNet: a stem, three residual stages, mean, linear head."""

import torch
from torch import nn


def norm(channels):
    layer = nn.BatchNorm2d(channels)
    layer.running_mean.normal_(0.0, 0.1)
    layer.running_var.uniform_(0.5, 1.5)
    return layer


class Block(nn.Module):
    def __init__(self, width, wider, stride) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(width, wider, 3, stride, 1, bias=False),
            norm(wider),
            nn.ReLU(),
            nn.Conv2d(wider, wider, 3, 1, 1, bias=False),
            norm(wider),
        )
        self.short = nn.Sequential(nn.Conv2d(width, wider, 1, stride, bias=False), norm(wider))

    def forward(self, x):
        return torch.relu(self.main(x) + self.short(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), norm(16), nn.ReLU())
        self.stages = nn.Sequential(Block(16, 32, 2), Block(32, 64, 2), Block(64, 96, 2))
        self.head = nn.Linear(96, 10)

    def forward(self, x):
        return self.head(self.stages(self.stem(x)).mean(dim=(2, 3)))


def get_inputs():
    return [torch.randn(4, 3, 64, 64)]


def get_init_inputs():
    return []
