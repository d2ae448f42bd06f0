"""2-d average pooling that does not count the padding."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AvgPool2d(5, stride=2, padding=2, count_include_pad=False)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(4, 64, 75, 75)]


def get_init_inputs():
    return []
