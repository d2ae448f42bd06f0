"""A small UNet: two steps down, two up by transposed convolution, with joins."""

import torch
from torch import nn
from torch.nn import functional as F


def norm(channels):
    layer = nn.BatchNorm2d(channels)
    layer.running_mean.normal_(0.0, 0.1)
    layer.running_var.uniform_(0.5, 1.5)
    return layer


def double(width, wider):
    return nn.Sequential(
        nn.Conv2d(width, wider, 3, padding=1),
        norm(wider),
        nn.ReLU(),
        nn.Conv2d(wider, wider, 3, padding=1),
        norm(wider),
        nn.ReLU(),
    )


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = double(3, 8), double(8, 16), double(16, 32)
        self.up2, self.up1 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.join2, self.join1 = double(32, 16), double(16, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        b = self.join2(torch.cat([self.up2(c), b], dim=1))
        a = self.join1(torch.cat([self.up1(b), a], dim=1))
        return self.head(a)


def get_inputs():
    return [torch.randn(2, 3, 96, 96)]


def get_init_inputs():
    return []
