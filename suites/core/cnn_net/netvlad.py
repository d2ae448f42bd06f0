"""NetVLAD: soft assignment to clusters, residual sums, two normalisations."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.assign = nn.Linear(128, 24, bias=False)
        self.centres = nn.Parameter(torch.randn(1, 128, 24))

    def forward(self, x):
        weight = torch.softmax(self.assign(x), dim=-1)
        total = weight.sum(dim=1, keepdim=True) * self.centres
        vlad = torch.matmul(weight.transpose(1, 2), x).transpose(1, 2) - total
        return F.normalize(F.normalize(vlad, dim=1).reshape(x.size(0), -1), dim=1)


def get_inputs():
    return [torch.randn(8, 400, 128)]


def get_init_inputs():
    return []
