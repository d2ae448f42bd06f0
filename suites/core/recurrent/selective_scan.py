"""A Mamba-like selective recurrence: the decay and the input weights depend on the input; a loop over time."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.rand(96, 8) + 0.5)
        self.step = nn.Linear(96, 96)
        self.project = nn.Linear(96, 16)

    def forward(self, x):
        delta = F.softplus(self.step(x))
        write, read = self.project(x).chunk(2, dim=-1)
        state = torch.zeros(x.size(0), 96, 8)
        rows = []
        for step in range(x.size(1)):
            d = delta[:, step, :, None]
            state = state * torch.exp(-d * self.decay) + d * write[:, step, None, :] * x[:, step, :, None]
            rows.append((state * read[:, step, None, :]).sum(dim=-1))
        return torch.stack(rows, dim=1)


def get_inputs():
    return [torch.randn(4, 24, 96)]


def get_init_inputs():
    return []
