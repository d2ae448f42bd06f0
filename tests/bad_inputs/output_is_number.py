import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum().item()


def get_inputs():
    return [torch.randn(64, 64)]
