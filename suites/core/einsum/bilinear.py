"""A bilinear form with a matrix in the middle."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, w, y):
        return torch.einsum("bi,ij,bj->b", x, w, y)


def get_inputs():
    return [torch.randn(800, 500), torch.randn(500, 400), torch.randn(800, 400)]


def get_init_inputs():
    return []
