"""A shifted-window attention block: roll, windows, attention with a bias, windows back, roll back."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(96), nn.LayerNorm(96)
        self.qkv, self.out = nn.Linear(96, 288), nn.Linear(96, 96)
        self.bias = nn.Parameter(torch.randn(3, 49, 49))
        self.mlp = nn.Sequential(nn.Linear(96, 384), nn.GELU(), nn.Linear(384, 96))

    def forward(self, x):
        b, h, w, c = x.shape
        y = torch.roll(self.norm1(x), (-3, -3), (1, 2))
        y = y.view(b, h // 7, 7, w // 7, 7, c).transpose(2, 3).reshape(-1, 49, c)
        q, k, v = self.qkv(y).view(-1, 49, 3, 3, c // 3).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-2, -1) * (c // 3) ** -0.5 + self.bias, dim=-1)
        y = self.out((scores @ v).transpose(1, 2).reshape(-1, 49, c))
        y = y.view(b, h // 7, w // 7, 7, 7, c).transpose(2, 3).reshape(b, h, w, c)
        x = x + torch.roll(y, (3, 3), (1, 2))
        return x + self.mlp(self.norm2(x))


def get_inputs():
    return [torch.randn(2, 28, 28, 96)]


def get_init_inputs():
    return []
