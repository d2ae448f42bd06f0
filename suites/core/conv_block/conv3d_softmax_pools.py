"""3-d convolution, softmax over channels, max pooling twice."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(3, 16, 3)

    def forward(self, x):
        return F.max_pool3d(F.max_pool3d(torch.softmax(self.conv(x), dim=1), 2), 2)


def get_inputs():
    return [torch.randn(4, 3, 18, 34, 34)]


def get_init_inputs():
    return []
