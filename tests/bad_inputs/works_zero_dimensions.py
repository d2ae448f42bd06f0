import torch


class Model(torch.nn.Module):
    def forward(self, x, scale):
        return torch.relu(x) * scale


def get_inputs():
    return [torch.randn(64, 64), torch.tensor(2.5)]
