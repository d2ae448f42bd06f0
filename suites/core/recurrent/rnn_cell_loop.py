"""An Elman recurrence written as a loop over time."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(64, 128)
        self.hidden = nn.Linear(128, 128, bias=False)

    def forward(self, x, h):
        for step in range(x.size(1)):
            h = torch.tanh(self.input(x[:, step]) + self.hidden(h))
        return h


def get_inputs():
    return [torch.randn(64, 16, 64), torch.randn(64, 128)]


def get_init_inputs():
    return []
