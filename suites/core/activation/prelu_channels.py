"""PReLU with a slope a channel."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.rand(64))

    def forward(self, x):
        return F.prelu(x, self.slope)


def get_inputs():
    return [torch.randn(8, 64, 90, 90)]


def get_init_inputs():
    return []
