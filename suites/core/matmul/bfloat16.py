"""Product in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(256, 320, dtype=torch.bfloat16), torch.randn(320, 256, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
