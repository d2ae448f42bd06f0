"""A small VGG: pairs of 3x3 convolutions and pooling."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers, width = [], 3
        for wider in (16, 32, 64):
            layers += [nn.Conv2d(width, wider, 3, padding=1), nn.ReLU(), nn.Conv2d(wider, wider, 3, padding=1), nn.ReLU()]
            layers += [nn.MaxPool2d(2)]
            width = wider
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(64 * 64, 10)

    def forward(self, x):
        return self.head(torch.flatten(self.features(x), 1))


def get_inputs():
    return [torch.randn(4, 3, 64, 64)]


def get_init_inputs():
    return []
