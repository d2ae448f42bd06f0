import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return (x + y).sum(dim=-1)


def get_inputs():
    return [torch.randint(-9, 9, (64, 96)), torch.randint(-9, 9, (64, 96))]
