"""Max pooling to a fixed size."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.AdaptiveMaxPool2d(8)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(16, 96, 64, 64)]


def get_init_inputs():
    return []
