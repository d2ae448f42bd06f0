import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.softmax(x, dim=-1) + y


def get_inputs():
    return [torch.randn(96, 64).t(), torch.randn(64, 192)[:, ::2]]
