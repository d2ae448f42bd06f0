"""A basic residual block: two 3x3 convolutions with batch normalisation, a projected shortcut, ReLU."""

import torch
from torch import nn


class Model(nn.Module):
    """ResNet's basic block with stride 2 and a 1x1 projection, in eval mode."""

    def __init__(self, channels_in: int, channels_out: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.project = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)
        self.bn3 = nn.BatchNorm2d(channels_out)
        for bn in (self.bn1, self.bn2, self.bn3):
            bn.running_mean.normal_(0.0, 0.1)
            bn.running_var.uniform_(0.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + self.bn3(self.project(x)))


def get_inputs():
    return [torch.randn(8, 64, 56, 56)]


def get_init_inputs():
    return [64, 128, 2]
