"""Ends by a signal, as a broken extension would."""

import ctypes

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        ctypes.string_at(0)
        return x


def get_inputs():
    return [torch.randn(64, 64)]
