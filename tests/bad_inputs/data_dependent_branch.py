import torch


class Model(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0.0:
            return x * 2.0
        return x * 3.0


def get_inputs():
    return [torch.randn(64, 64)]
