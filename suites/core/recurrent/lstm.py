"""An LSTM over time."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrence = nn.LSTM(64, 96, batch_first=True)

    def forward(self, x):
        y, _ = self.recurrence(x)
        return y


def get_inputs():
    return [torch.randn(16, 48, 64)]


def get_init_inputs():
    return []
