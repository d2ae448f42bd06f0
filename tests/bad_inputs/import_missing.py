import a_package_that_is_not_there
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return a_package_that_is_not_there.twice(x)


def get_inputs():
    return [torch.randn(64, 64)]
