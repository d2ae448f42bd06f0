import torch


class Model(torch.nn.Module):
    def forward(self, x, bias):
        return torch.tanh(x + bias)


def get_inputs():
    return [torch.randn(64, 96), torch.randn(1, 96).expand(64, 96)]
