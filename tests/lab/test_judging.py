"""Verdicts on hand-written kernels: what is right is accepted in any order of summation, what is wrong is told where.

Each source in tasks/*/wrong names its verdict and what the evidence must say.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench import TASKS, Bench, Solution, make_bench, solutions

from kernelwright.records import Evaluation, Verdict
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


@pytest.mark.parametrize("solution", solutions("wrong"), ids=str)
def test_wrong(benches: dict[str, Bench], solution: Solution) -> None:
    lab = benches[solution.task].lab
    (evaluation,) = lab.evaluate([solution.candidate], solution.thorough)
    assert evaluation.verdict.value == solution.verdict, said(evaluation)
    assert solution.says in said(evaluation)
    assert evaluation.median_ns is None
