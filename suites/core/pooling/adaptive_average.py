"""Average pooling to a size that does not divide."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AdaptiveAvgPool2d((7, 5))

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(16, 96, 61, 59)]


def get_init_inputs():
    return []
