"""2-D max-pooling, 3x3 windows with stride 2 and padding 1, as at the head of a ResNet."""

import torch
from torch import nn


class Model(nn.Module):
    """MaxPool2d."""

    def __init__(self, kernel_size: int, stride: int, padding: int):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride, padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


def get_inputs():
    return [torch.randn(16, 64, 112, 112)]


def get_init_inputs():
    return [3, 2, 1]
