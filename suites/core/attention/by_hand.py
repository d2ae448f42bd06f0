"""Attention written as product, softmax, product."""

import math

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        return torch.softmax(scores, dim=-1) @ v


def get_inputs():
    return [torch.randn(2, 8, 256, 64), torch.randn(2, 8, 256, 64), torch.randn(2, 8, 256, 64)]


def get_init_inputs():
    return []
