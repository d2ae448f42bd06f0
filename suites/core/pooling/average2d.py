"""2-d average pooling whose padding counts."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AvgPool2d(3, stride=2, padding=1)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(8, 64, 80, 80)]


def get_init_inputs():
    return []
