"""Two layers of tanh recurrence over time."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrence = nn.RNN(64, 128, num_layers=2, batch_first=True)

    def forward(self, x):
        y, _ = self.recurrence(x)
        return y


def get_inputs():
    return [torch.randn(16, 48, 64)]


def get_init_inputs():
    return []
