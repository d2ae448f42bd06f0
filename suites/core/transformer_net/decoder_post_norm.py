"""A post-norm block with self-attention and cross-attention by nn.MultiheadAttention."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.own = nn.MultiheadAttention(128, 4, batch_first=True)
        self.cross = nn.MultiheadAttention(128, 4, batch_first=True)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(128), nn.LayerNorm(128), nn.LayerNorm(128)
        self.up, self.down = nn.Linear(128, 384), nn.Linear(384, 128)

    def forward(self, x, memory):
        x = self.norm1(x + self.own(x, x, x, need_weights=False)[0])
        x = self.norm2(x + self.cross(x, memory, memory, need_weights=False)[0])
        return self.norm3(x + self.down(torch.relu(self.up(x))))


def get_inputs():
    return [torch.randn(2, 100, 128), torch.randn(2, 140, 128)]


def get_init_inputs():
    return []
