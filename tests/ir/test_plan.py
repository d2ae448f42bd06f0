"""Every plan means what its graph means: default plans and random schedules, run tile by tile."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import small_graphs as g

from kernelwright.errors import ScheduleError
from kernelwright.ir.evaluate import evaluate
from kernelwright.ir.graph import Graph
from kernelwright.ir.memory import Piece, arrange
from kernelwright.ir.plan import knobs, plan, tidy
from kernelwright.ir.run_program import evaluate_program
from kernelwright.ir.schedule import Schedule
from kernelwright.ir.tile import Nest, Packing
from kernelwright.records import Machine


def check(graph: Graph, schedule: Schedule, on: Machine, seed: int = 0) -> None:
    inputs = g.random_inputs(graph, seed)
    expected = evaluate(graph, inputs)
    found = evaluate_program(plan(graph, schedule, on), inputs)
    for name, value in expected.items():
        assert found[name].shape == value.shape
        np.testing.assert_allclose(found[name], value, rtol=2e-4, atol=1e-5, err_msg=f"{name} under\n{schedule.text()}")


@pytest.mark.parametrize("make", g.ALL, ids=lambda m: m.__name__)
@pytest.mark.parametrize("scale", [1, 0])
def test_default_plan(make: Callable[[], Graph], scale: int) -> None:
    check(make(), Schedule(), g.machine(scale=scale))


def draw(graph: Graph, on: Machine, rng: random.Random) -> Schedule:
    """A random schedule: decisions taken one by one among the knobs that are open by then."""
    decided: dict[str, int | str] = {}
    for _ in range(12):
        knob = rng.choice(knobs(graph, on, Schedule.of(decided)) or (None,))
        if knob is None:
            break
        trial = {**decided, knob.name: rng.choice(knob.options)}
        try:
            decided = tidy(graph, Schedule.of(trial), on).as_dict()
        except ScheduleError:
            continue
    return Schedule.of(decided)


@pytest.mark.parametrize("make", g.ALL, ids=lambda m: m.__name__)
def test_random_schedules(make: Callable[[], Graph]) -> None:
    graph = make()
    for seed in range(10):
        on = g.machine(scale=seed % 2)
        check(graph, draw(graph, on, random.Random(seed)), on, seed)


@pytest.mark.parametrize("parts", [2, 3, 7, 40])
@pytest.mark.parametrize(
    ("make", "tensor"), [(g.global_mean, "m"), (g.argmax, "y"), (g.batchnorm_training, "mean"), (g.cross_entropy, "loss")]
)  # fmt: skip
def test_split_reductions(make: Callable[[], Graph], tensor: str, parts: int) -> None:
    graph = make()
    extent = {"m": 40, "y": 11, "mean": 4, "loss": 7}[tensor]
    if parts > extent:
        with pytest.raises(ScheduleError, match=rf"split\.{tensor} = {parts}"):
            plan(graph, Schedule.of({f"split.{tensor}": parts}), g.machine())
        return
    program = plan(graph, Schedule.of({f"split.{tensor}": parts}), g.machine())
    inputs = g.random_inputs(graph, parts)
    found = evaluate_program(program, inputs)
    for name, value in evaluate(graph, inputs).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)


def nests(graph: Graph, **decided: int | str) -> list[Nest]:
    program = plan(graph, Schedule.of({k.replace("__", "."): v for k, v in decided.items()}), g.machine())
    return [step for step in program.steps if isinstance(step, Nest)]


def test_row_operations_are_one_nest() -> None:
    for graph in (g.softmax(512, 256), g.layernorm(8, 64, 256), g.rmsnorm_middle(8, 64, 32, 32)):
        assert len(nests(graph)) == 1


def test_attention_is_one_nest_with_causal_limits() -> None:
    (nest,) = nests(g.attention(2, 4, 128, 16))
    assert [loop.axis for loop in nest.loops][-1] == "i"
    flag, *rest = nest.stages
    assert flag.ops[0].output.endswith("_finite")
    assert all(len(stage.limits) == 1 for stage in rest)
    (free,) = nests(g.attention(2, 4, 128, 16, causal=False))
    assert not any(stage.limits for stage in free.stages)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_zero_times_not_finite_is_not_skipped(bad: float) -> None:
    graph = g.attention(2, 2, 24, 8)
    arrays = g.random_inputs(graph, 3)
    value = arrays[graph.inputs[2]]
    value[0, 1, 20, 3] = bad
    program = plan(graph, Schedule(), g.machine())
    got, expected = evaluate_program(program, arrays), evaluate(graph, arrays)
    for name in graph.outputs:
        assert np.array_equal(np.isnan(got[name]), np.isnan(expected[name]))
        assert np.isnan(expected[name]).any()
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-5)


def test_epilogue_and_packed_weights_of_a_convolution() -> None:
    (nest,) = nests(g.conv(4, 16, 32, 28, 28))
    leaf = nest.stages[-1].leaf
    assert leaf is not None
    assert (leaf.swap, leaf.n_axes[-1]) == (True, "x")
    assert (leaf.pack_m, leaf.pack_n) == (Packing.PREPARED, Packing.LOCAL)


def test_contiguous_axes_merge() -> None:
    (nest,) = nests(g.elementwise(8, 16, 32, 32))
    assert [loop.extent for loop in nest.loops] == [8 * 16 * 32 * 32]
    assert nest.stages[0].vector == nest.loops[0].axis


def test_wrong_decisions_say_why() -> None:
    graph = g.softmax(64, 64)
    with pytest.raises(ScheduleError, match=r"no such decision in this program: tile\.n_y\.q"):
        plan(graph, Schedule.of({"tile.n_y.q": 4}), g.machine())
    with pytest.raises(ScheduleError, match=r"fuse\.e = sideways: must be one of"):
        plan(graph, Schedule.of({"fuse.e": "sideways"}), g.machine())
    with pytest.raises(ScheduleError, match=r"tile\.n_y\.a = 0: must be an integer from 1 to 64"):
        plan(graph, Schedule.of({"tile.n_y.a": 0}), g.machine())
    with pytest.raises(ScheduleError, match="registers"):
        plan(g.mlp(64, 64, 64, 64), Schedule.of({"mr.a": 14, "nr.a": 2}), g.machine())
    assert tidy(graph, Schedule.of({"tile.n_y.q": 4, "fuse.e": "inline"}), g.machine()).as_dict() == {"fuse.e": "inline"}


def test_workspace_is_shared_by_lifetime() -> None:
    pieces = [Piece("a", 100, 0, 1), Piece("b", 100, 1, 2), Piece("c", 60, 2, 3), Piece("d", 10, 0, 3)]
    offsets, total = arrange(pieces)
    assert total == 128 + 128 + 64
    assert offsets["c"] == offsets["a"]
    assert all(o % 64 == 0 for o in offsets.values())
