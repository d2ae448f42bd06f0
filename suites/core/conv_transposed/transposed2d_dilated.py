"""2-d transposed convolution with dilation and an uneven kernel."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(24, 24, (3, 5), dilation=(2, 1), padding=(1, 2))

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 24, 40, 44)]


def get_init_inputs():
    return []
