"""Rules that move elements: values against PyTorch, and the simplicity of their indices."""

# ruff: noqa: E501 (tables)

from __future__ import annotations

import torch
import torch.nn.functional as F
from capture_harness import check, check_all

from kernelwright.capture.export import capture
from kernelwright.capture.rules_view import regrouped
from kernelwright.ir.expr import Axis, Call, Fn, index, walk
from kernelwright.ir.graph import Map

torch.manual_seed(2)
I = tuple(Axis(f"i{d}") for d in range(5))


def test_a_view_divides_only_where_it_splits_or_merges() -> None:
    assert regrouped((2, 12, 5), (2, 3, 4, 5), I[:4]) == (
        I[0], Call(Fn.ADD, (Call(Fn.MUL, (I[1], index(4)), I[1].__class__ and index(0).dtype), I[2]), index(0).dtype), I[3],
    )  # fmt: skip
    merged = regrouped((2, 3, 4, 5), (2, 12, 5), I[:3])
    assert merged[0] == I[0]
    assert merged[3] == I[2]
    assert [e.fn for e in merged[1:3] if isinstance(e, Call)] == [Fn.FLOORDIV, Fn.MOD]
    assert regrouped((4, 1, 3), (4, 3), I[:2]) == (I[0], index(0), I[1])
    assert regrouped((1, 4, 3), (4, 3, 1), I[:3]) == (index(0), I[0], I[1])


def test_moves() -> None:
    x = torch.randn(4, 6, 8)
    check_all(
        {
            "view": lambda x: x.view(24, 8), "view_split": lambda x: x.view(4, 2, 3, 8), "view_mixed": lambda x: x.reshape(8, 3, 8),
            "view_odd": lambda x: x.reshape(16, 12), "flatten": lambda x: x.flatten(), "unsqueeze": lambda x: x.unsqueeze(1),
            "squeeze": lambda x: x[:, :1].squeeze(1), "permute": lambda x: x.permute(2, 0, 1), "t": lambda x: x[0].t(),
            "transpose": lambda x: x.transpose(-1, 0), "expand": lambda x: x[:, :1].expand(4, 5, 8), "repeat": lambda x: x.repeat(2, 1, 3),
            "slice": lambda x: x[:, 1:5:2], "slice_neg": lambda x: x[..., -3:], "select": lambda x: x[:, -2],
            "split": lambda x: x.split([1, 2, 3], 1)[2], "chunk": lambda x: x.chunk(3, 2)[1], "unbind": lambda x: x.unbind(1)[4],
            "cat": lambda x: torch.cat([x, x[:, :2] * 2, x[:, 1:2]], 1), "stack": lambda x: torch.stack([x, x + 1, x * 2], 1),
            "pad": lambda x: F.pad(x, (1, 2, 3, 0), value=1.5), "crop": lambda x: F.pad(x, (-1, 2, -2, -1)),
            "reflect": lambda x: F.pad(x, (2, 3), mode="reflect"), "replicate": lambda x: F.pad(x, (2, 3), mode="replicate"),
            "reflect2": lambda x: F.pad(x[None], (2, 3, 1, 2), mode="reflect"), "circular": lambda x: F.pad(x, (2, 1), mode="circular"),
            "flip": lambda x: x.flip(0, 2), "roll": lambda x: x.roll((1, -3), (0, 2)), "roll_flat": lambda x: x.roll(5),
            "unfold": lambda x: x.unfold(2, 3, 2), "tril": lambda x: x.tril(1), "triu": lambda x: x.triu(-1),
            "diagonal": lambda x: x.diagonal(1, 0, 2), "movedim": lambda x: x.movedim(0, 2), "narrow": lambda x: x.narrow(1, 2, 3),
            "pixel_shuffle": lambda x: F.pixel_shuffle(x[:, None].expand(4, 8, 6, 8), 2), "diag_embed": lambda x: torch.diag_embed(x[0]),
            "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2), "rot90": lambda x: x.rot90(1, (0, 1)),
            "channel_shuffle": lambda x: F.channel_shuffle(x[None], 2), "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
            "arange": lambda x: x + torch.arange(8), "arange_float": lambda x: x * torch.arange(0, 4, 0.5), "eye": lambda x: x[:, :, :6] * torch.eye(6),
            "full_like": lambda x: torch.full_like(x, 3), "zeros": lambda x: torch.zeros(3) + x[0, 0, :3], "meshgrid": lambda x: torch.meshgrid(x[0, 0], x[0, 1], indexing="ij")[1],
            "linspace": lambda x: x * torch.linspace(0, 1, 8), "unfold2d": lambda x: F.unfold(x[None], (2, 3), padding=1, stride=2),
            "cat_promotes": lambda x: torch.cat([x[0], torch.ones(1, 8, dtype=torch.int64)], 0), "hstack": lambda x: torch.hstack([x, x]),
            "slice_scatter": lambda x: torch.cat([x[:, :1], torch.zeros(4, 1, 8), x[:, 2:]], 1), "clone": lambda x: x.clone(),
        },
        x,
    )  # fmt: skip


def test_a_module_of_views_has_only_maps_of_one_load() -> None:
    captured = capture(lambda x: x.view(2, 3, 4, 5).permute(0, 2, 1, 3).reshape(8, 15), (torch.randn(6, 20),), "views")
    for op in captured.graph.ops:
        assert isinstance(op, Map)
        assert sum(1 for e in walk(op.body) if isinstance(e, Call) and e.fn in (Fn.FLOORDIV, Fn.MOD)) <= 4


def test_outputs_may_be_inputs_repeat_or_be_constants() -> None:
    captured = check(lambda x: (x, x + 1, x), torch.randn(3))
    assert captured.graph.outputs[0] == captured.graph.inputs[0]
    assert captured.graph.outputs[0] == captured.graph.outputs[2]
    constant = torch.ones(2)
    assert len(check(lambda x: [x * 2, constant], torch.randn(2)).graph.ops) == 2
