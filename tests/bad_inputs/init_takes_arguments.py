"""The constructor wants an argument that no get_init_inputs gives."""

import torch


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = torch.nn.Linear(features, features)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(64, 64)]
