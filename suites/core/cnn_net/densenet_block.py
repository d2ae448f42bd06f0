"""A dense block of four layers and its transition."""

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
        widths = [32 + 16 * n for n in range(4)]
        self.layers = nn.ModuleList(
            nn.Sequential(norm(w), nn.ReLU(), nn.Conv2d(w, 16, 3, padding=1, bias=False)) for w in widths
        )
        self.transition = nn.Sequential(norm(96), nn.ReLU(), nn.Conv2d(96, 48, 1, bias=False), nn.AvgPool2d(2))

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return self.transition(x)


def get_inputs():
    return [torch.randn(4, 32, 40, 40)]


def get_init_inputs():
    return []
