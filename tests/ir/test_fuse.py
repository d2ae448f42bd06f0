"""Each rewrite keeps the meaning of every small graph, and does what it is for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import small_graphs as g

from kernelwright.ir import fuse
from kernelwright.ir.evaluate import evaluate
from kernelwright.ir.fuse_axes import Reshaped, hoist_divisors, split_axes, split_reduction
from kernelwright.ir.fuse_share import share_bodies
from kernelwright.ir.graph import Contract, Graph, Map, Reduce, validate

REWRITES: dict[str, Callable[[Graph], Graph]] = {
    "drop_dead": fuse.drop_dead,
    "simplify_all": fuse.simplify_all,
    "inline_all": lambda graph: fuse.inline_maps(graph, lambda op, uses: True),
    "inline_worth": lambda graph: fuse.inline_maps(graph, fuse.worth_inlining),
    "absorb_epilogues": fuse.absorb_epilogues,
    "share_bodies": lambda graph: share_bodies(fuse.inline_maps(graph, lambda op, uses: True))[0],
    "hoist_divisors": hoist_divisors,
    "all": lambda graph: fuse.absorb_epilogues(hoist_divisors(fuse.inline_maps(graph, fuse.worth_inlining))),
}


def same(before: Graph, after: Graph, seed: int = 0) -> None:
    inputs = g.random_inputs(before, seed)
    shaped = {n: a.reshape(after.tensors[n].shape) for n, a in inputs.items() if n in after.tensors}
    found = evaluate(after, shaped)
    for name, value in evaluate(before, inputs).items():
        np.testing.assert_allclose(found[name].reshape(value.shape), value, rtol=2e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("make", g.ALL, ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", REWRITES)
def test_rewrites_keep_the_meaning(name: str, make: Callable[[], Graph]) -> None:
    graph = make()
    after = REWRITES[name](graph)
    validate(after)
    same(graph, after)


@pytest.mark.parametrize("make", g.ALL, ids=lambda m: m.__name__)
def test_squeeze_keeps_the_meaning(make: Callable[[], Graph]) -> None:
    graph = make()
    after = fuse.squeeze(graph)
    validate(after)
    assert not any(a.extent == 1 for op in after.ops for a in getattr(op, "axes", ()))
    same(graph, after, 1)


@pytest.mark.parametrize("parts", [2, 3, 5])
def test_split_reduction_without_views(parts: int) -> None:
    for make, name in ((g.softmax, "s"), (g.argmax, "y"), (g.maxpool, "p")):
        shaped = split_reduction(Reshaped(make()), name, parts)
        if not shaped.views:  # a view is another shape of one memory, which only a program can hold
            validate(shaped.graph)
            same(make(), shaped.graph, parts)


def test_split_reduction_looks_at_a_view() -> None:
    shaped = split_reduction(Reshaped(g.global_mean(40, 12)), "m", 8)
    assert shaped.views == {"x__8x5x12": "x"}
    assert [type(op) for op in shaped.graph.ops] == [Reduce, Reduce, Map]


def test_epilogues_follow_a_permutation() -> None:
    after = fuse.absorb_epilogues(g.batched_matmul())
    (op,) = after.ops
    assert isinstance(op, Contract)
    assert (op.output, [a.name for a in op.axes]) == ("t", ["b", "n", "m"])


def test_softmax_division_leaves_the_contraction() -> None:
    graph = hoist_divisors(g.attention())
    last = next(op for op in graph.ops if op.origin == "" and isinstance(op, Contract) and op.output == "o")
    assert last.finish is not None
    assert graph.producer("p") is None


def test_heads_become_an_axis_of_the_output() -> None:
    graph = fuse.inline_maps(g.attention(2), lambda op, uses: fuse.is_view(op.body))
    shaped = split_axes(Reshaped(graph))
    assert list(shaped.views.values()) == ["y"]
    last = fuse.absorb_epilogues(shaped.graph).ops[-1]
    assert isinstance(last, Contract)


def test_expensive_bodies_are_not_repeated() -> None:
    graph = fuse.inline_maps(g.maxpool(), fuse.worth_inlining)
    assert isinstance(graph.producer("r"), Map)  # exp would be evaluated for each of the nine window positions
