"""2-d max pooling with dilation."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MaxPool2d(3, stride=1, dilation=2)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(4, 48, 64, 64)]


def get_init_inputs():
    return []
