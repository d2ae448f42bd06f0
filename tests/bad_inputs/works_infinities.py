"""An output may hold infinities, as long as it is no NaN."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.masked_fill(x < 0.0, float("-inf"))


def get_inputs():
    return [torch.randn(64, 64)]
