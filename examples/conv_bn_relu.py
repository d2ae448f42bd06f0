"""A 3x3 convolution, batch normalisation with running statistics, ReLU: the unit of convolutional nets at inference."""

import torch
from torch import nn


class Model(nn.Module):
    """relu(bn(conv(x))) in eval mode."""

    def __init__(self, channels_in: int, channels_out: int):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels_out)
        nn.init.uniform_(self.bn.weight, 0.5, 1.5)
        nn.init.normal_(self.bn.bias, 0.0, 0.1)
        self.bn.running_mean.normal_(0.0, 0.1)
        self.bn.running_var.uniform_(0.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.bn(self.conv(x)))


def get_inputs():
    return [torch.randn(8, 64, 56, 56)]


def get_init_inputs():
    return [64, 64]
