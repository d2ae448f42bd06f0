"""Layer normalisation in bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x):
        return F.layer_norm(x, (1024,))


def get_inputs():
    return [torch.randn(2048, 1024, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
