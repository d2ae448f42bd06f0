"""Instance normalisation."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.InstanceNorm2d(48, affine=True)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(8, 48, 64, 64)]


def get_init_inputs():
    return []
