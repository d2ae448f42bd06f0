"""Product of 32-bit integers."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [
        torch.randint(-50, 50, (192, 256), dtype=torch.int32),
        torch.randint(-50, 50, (256, 160), dtype=torch.int32),
    ]


def get_init_inputs():
    return []
