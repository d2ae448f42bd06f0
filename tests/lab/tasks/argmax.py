"""The first place of the largest value, in rows with many ties."""

import torch


def Model(x):
    return torch.argmax(x, dim=1), torch.amax(x, dim=1)


def get_inputs():
    return [torch.randint(0, 5, (61, 40)).float()]
