"""Cross-entropy of class scores against integer labels, averaged over the batch."""

import torch
from torch import nn


class Model(nn.Module):
    """Mean cross-entropy loss."""

    def forward(self, scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(scores, labels)


def get_inputs():
    return [torch.randn(4096, 2000), torch.randint(0, 2000, (4096,))]


def get_init_inputs():
    return []
