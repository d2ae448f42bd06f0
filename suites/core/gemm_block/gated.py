"""Two linear layers, one gating the other (SwiGLU), and a third."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(512, 1000, bias=False)
        self.up = nn.Linear(512, 1000, bias=False)
        self.down = nn.Linear(1000, 512, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.randn(200, 512)]


def get_init_inputs():
    return []
