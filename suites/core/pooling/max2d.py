"""2-d max pooling with overlap and padding."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MaxPool2d(3, stride=2, padding=1)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(8, 64, 80, 80)]


def get_init_inputs():
    return []
