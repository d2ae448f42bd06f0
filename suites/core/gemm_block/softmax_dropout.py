"""Linear layer, dropout (inactive), softmax."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 900)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return torch.softmax(self.drop(self.linear(x)), dim=1)


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
