import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def get_inputs():
    return [torch.randn(64, 64)]
