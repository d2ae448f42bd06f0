"""Two products with sigmoid between, then a sum of each row."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(611, 701)
        self.second = nn.Linear(701, 401)

    def forward(self, x):
        return self.second(torch.sigmoid(self.first(x))).sum(dim=1)


def get_inputs():
    return [torch.randn(307, 611)]


def get_init_inputs():
    return []
