"""2-d max pooling whose last window may be partial."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.MaxPool2d(3, stride=2, ceil_mode=True)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(8, 48, 79, 83)]


def get_init_inputs():
    return []
