"""A decoder block with RMS norm, rotary positions, shared key heads and SwiGLU."""

import torch
from torch import nn
from torch.nn import functional as F


def rms(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight


def rotate(x, cosine, sine):
    a, b = x.chunk(2, dim=-1)
    return x * cosine + torch.cat([-b, a], dim=-1) * sine


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale1, self.scale2 = nn.Parameter(torch.rand(256)), nn.Parameter(torch.rand(256))
        self.q, self.k = nn.Linear(256, 256, bias=False), nn.Linear(256, 64, bias=False)
        self.v, self.out = nn.Linear(256, 64, bias=False), nn.Linear(256, 256, bias=False)
        self.gate, self.up = nn.Linear(256, 688, bias=False), nn.Linear(256, 688, bias=False)
        self.down = nn.Linear(688, 256, bias=False)

    def forward(self, x, cosine, sine):
        b, n, d = x.shape
        y = rms(x, self.scale1)
        q = rotate(self.q(y).view(b, n, 8, 32).transpose(1, 2), cosine, sine)
        k = rotate(self.k(y).view(b, n, 2, 32).transpose(1, 2), cosine, sine)
        v = self.v(y).view(b, n, 2, 32).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        y = rms(x, self.scale2)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def get_inputs():
    return [torch.randn(2, 128, 256), torch.randn(128, 32), torch.randn(128, 32)]


def get_init_inputs():
    return []
