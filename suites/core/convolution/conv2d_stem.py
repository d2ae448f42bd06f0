"""7x7 convolution with stride 2 on an image, as in a stem."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, stride=2, padding=3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 3, 160, 160)]


def get_init_inputs():
    return []
