"""Mixer block: a perceptron over tokens, then one over channels."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(192) for _ in range(2))
        self.tokens = nn.Sequential(nn.Linear(196, 256), nn.GELU(), nn.Linear(256, 196))
        self.channels = nn.Sequential(nn.Linear(192, 512), nn.GELU(), nn.Linear(512, 192))

    def forward(self, x):
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


def get_inputs():
    return [torch.randn(4, 196, 192)]


def get_init_inputs():
    return []
