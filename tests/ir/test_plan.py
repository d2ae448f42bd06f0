"""Every plan means what its graph means: default plans and random schedules, run tile by tile."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from kernelwright.errors import ScheduleError
from kernelwright.ir.evaluate import evaluate
from kernelwright.ir.graph import Graph
from kernelwright.ir.plan import knobs, plan, tidy
from kernelwright.ir.run_program import evaluate_program
from kernelwright.ir.schedule import Schedule
from kernelwright.records import Machine
import small_graphs as g


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
