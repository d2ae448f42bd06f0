"""A perceptron of three hidden layers."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(512, 768), nn.ReLU(), nn.Linear(768, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
        )

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(300, 512)]


def get_init_inputs():
    return []
