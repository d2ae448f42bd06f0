"""Linear layer, batch norm with running statistics, added bias, swish."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 900)
        self.norm = nn.BatchNorm1d(900)
        self.norm.running_mean.normal_(0.0, 0.1)
        self.norm.running_var.uniform_(0.5, 1.5)
        self.bias = nn.Parameter(torch.randn(1))

    def forward(self, x):
        y = (self.norm(self.linear(x)) + self.bias) / 1.5
        return y * torch.sigmoid(y)


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return []
