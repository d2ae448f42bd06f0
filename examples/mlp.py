"""A three-layer perceptron with ReLU between the layers."""

import torch
from torch import nn


class Model(nn.Module):
    """Linear, ReLU, linear, ReLU, linear."""

    def __init__(self, features: int, hidden: int, classes: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def get_inputs():
    return [torch.randn(256, 784)]


def get_init_inputs():
    return [784, 1024, 10]
