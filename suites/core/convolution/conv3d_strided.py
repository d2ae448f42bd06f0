"""3-d convolution with stride and an uneven kernel."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(12, 24, (3, 5, 3), stride=(1, 2, 2), padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 12, 16, 45, 45)]


def get_init_inputs():
    return []
