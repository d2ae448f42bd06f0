import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.relu(x) + y.to(torch.bfloat16)


def get_inputs():
    return [torch.randn(64, 64, dtype=torch.bfloat16), torch.randn(64, 64, dtype=torch.float16)]
