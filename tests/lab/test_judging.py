"""Verdicts on hand-written kernels: what is right is accepted in any order of summation, what is wrong is told where.

Each source in tasks/*/wrong names its verdict and what the evidence must say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench import TASKS, Bench, Solution, make_bench, solutions
from kernelwright.events import Notice
from kernelwright.lab.protocol import Baseline
from kernelwright.records import Bandwidth, Evaluation, Verdict
from kernelwright.sandbox.isolation import Strength, detect

pytestmark = pytest.mark.skipif(detect().strength is not Strength.BUBBLEWRAP, reason="needs bubblewrap")


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Bench]]:
    """A Lab a task, made at its first use: its processes start once."""
    home = tmp_path_factory.mktemp("home")
    made = {name: make_bench(home, TASKS / f"{name}.py") for name in ("softmax", "linear", "argmax")}
    yield made
    for bench in made.values():
        bench.close()


def said(evaluation: Evaluation) -> str:
    last = evaluation.evidence[-1]
    return f"{last.summary}\n{last.log}"


@pytest.mark.parametrize("solution", solutions("right"), ids=str)
def test_right(benches: dict[str, Bench], solution: Solution) -> None:
    for thorough in (False, True):
        (evaluation,) = benches[solution.task].lab.evaluate([solution.candidate], thorough)
        assert evaluation.verdict is Verdict.CORRECT, said(evaluation)
        assert evaluation.median_ns
        assert evaluation.median_ns > 0
        assert evaluation.relative_error is not None
        assert evaluation.relative_error < 1e-5


@pytest.mark.parametrize("solution", [s for s in solutions("wrong") if not s.raced], ids=str)
def test_wrong(benches: dict[str, Bench], solution: Solution) -> None:
    lab = benches[solution.task].lab
    (evaluation,) = lab.evaluate([solution.candidate], solution.thorough)
    assert evaluation.verdict.value == solution.verdict, said(evaluation)
    assert solution.says in said(evaluation)
    assert evaluation.median_ns is None


@pytest.mark.parametrize("solution", [s for s in solutions("wrong") if s.raced], ids=str)
def test_what_only_the_race_finds(benches: dict[str, Bench], solution: Solution) -> None:
    final = benches[solution.task].lab.finalists([solution.candidate], (Baseline.EAGER,))
    assert final.winner is None
    assert final.claims == {}
    assert final.evaluations[-1].verdict.value == solution.verdict
    assert solution.says in said(final.evaluations[-1])


def test_a_right_one_wins_the_finals_with_every_case_told(benches: dict[str, Bench]) -> None:
    wrong = next(s for s in solutions("wrong", "softmax") if s.path.stem == "remembers_inputs")
    right = [s.candidate for s in solutions("right", "softmax")[:2]]
    final = benches["softmax"].lab.finalists([wrong.candidate, *right], (Baseline.EAGER, Baseline.EAGER_DEFAULT))
    assert final.winner in right
    assert final.measurement is not None
    assert final.measurement.contestants[0] == final.winner.digest
    assert set(final.claims) == {"eager", "eager_default_allocator"}
    names = [c.case for c in final.cases]
    assert {"seed1", "private", "large", "special"} <= set(names)
    assert all(c.passed for c in final.cases)
    assert all(c.error is not None and c.budget is not None and c.error <= c.budget for c in final.cases)


def test_faster_than_the_memory_is_examined_again(benches: dict[str, Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benches["softmax"]
    slow = replace(bench.lab.machine, bandwidth=(Bandwidth(1 << 20, 1e-3, 1e-3, 1e-3),))
    monkeypatch.setitem(bench.lab.__dict__, "machine", slow)
    right = solutions("right", "softmax")[0].candidate
    assert bench.lab.finalists([right], (Baseline.EAGER,)).winner == right
    assert any(isinstance(e, Notice) and "faster than this machine moves" in e.text for e in bench.events)
