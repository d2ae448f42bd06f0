"""The Lab on real processes: right candidates are accepted, each kind of wrong one gets its verdict and says why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from small_lab import COLUMNS, KERNEL, REFERENCE, ROWS, kernel, make_lab

from kernelwright.lab.lab import Lab
from kernelwright.lab.protocol import Baseline
from kernelwright.records import EvidenceKind, Status, TensorSpec, Verdict

# name: (what is put into the right kernel, verdict, what the last evidence must say)
WRONG = {
    "last column": (kernel(each="if (j == columns - 1) v = 0;"), Verdict.WRONG, "axis 1: only the last of 70"),
    "tile edge": (kernel(each="if (j >= 64) continue;"), Verdict.WRONG, "only the last 6 of 70 (a tile's edge?)"),
    "never written": (kernel(before="return;"), Verdict.WRONG, "never written"),
    "one row in eight": (kernel(each="if (i % 8 == 3) v = 7;"), Verdict.WRONG, "one in 8 (index % 8 == 3)"),
    "zeros": (kernel(each="v = 0;"), Verdict.WRONG, "all of them are zero"),
    "twice": (kernel(each="v *= 2;"), Verdict.WRONG, "off by the factor 2"),
    "short float": (
        kernel(each="{unsigned b; __builtin_memcpy(&b, &v, 4); b &= 0xffff0000u; __builtin_memcpy(&v, &b, 4);}"),
        Verdict.WRONG,
        "rms error",
    ),
    "input changed": (kernel(after="x[5] = 1;"), Verdict.WRONG, "changes its input 0 in place"),
    "weight changed": (kernel(after="((float*)w)[0] = 1;"), Verdict.CRASHED, "SIGSEGV"),
    "null": (kernel(before="*(volatile int*)0 = 1;"), Verdict.CRASHED, "SIGSEGV"),
    "abort": (kernel(before="__builtin_trap();"), Verdict.CRASHED, "SIGILL"),
    "no end": (kernel(before="for (;;) __asm__ volatile(\"\");"), Verdict.TIMED_OUT, "no answer within"),
    "second call": (kernel(each="if (calls > 1) v += 1;"), Verdict.WRONG, "off by 1"),
    "only when timed": (kernel(each="if (calls > 30) v = 1;"), Verdict.WRONG, "the outputs of the timed calls"),
    "syntax": (kernel(before="this is not C++"), Verdict.NOT_COMPILED, "error"),
    "no entry": (kernel(source=KERNEL.replace("kw_run_0", "kw_walk_0")), Verdict.CRASHED, "kw_run_0"),
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One Lab for the whole file: its processes start once."""
    with make_lab(tmp_path_factory.mktemp("lab"), REFERENCE) as made:
        yield made


@pytest.mark.parametrize("name", list(WRONG))
def test_a_wrong_candidate_is_told_what_is_wrong(lab: Lab, name: str) -> None:
    candidate, verdict, said = WRONG[name]
    (evaluation,) = lab.evaluate([candidate])
    assert evaluation.verdict is verdict, evaluation.evidence
    assert said in evaluation.evidence[-1].summary
    assert evaluation.evidence[-1].status is not Status.PASS
    assert evaluation.median_ns is None


def test_a_right_candidate_is_checked_and_timed(lab: Lab) -> None:
    (evaluation,) = lab.evaluate([kernel()])
    assert evaluation.verdict is Verdict.CORRECT, evaluation.evidence
    assert [e.kind for e in evaluation.evidence] == [EvidenceKind.COMPILED, EvidenceKind.CHECKED, EvidenceKind.TIMED]
    assert all(e.status is Status.PASS for e in evaluation.evidence)
    assert evaluation.median_ns is not None
    assert evaluation.median_ns > 0
    assert evaluation.relative_error is not None
    assert evaluation.relative_error < 1e-6
    assert "seed1 (seed 1)" in evaluation.evidence[1].summary


def test_a_candidate_seen_before_costs_nothing(lab: Lab) -> None:
    candidate = kernel(before="// seen twice")
    (first,) = lab.evaluate([candidate])
    spent = lab.budget.evaluations_spent
    (second,) = lab.evaluate([candidate])
    assert second == first
    assert lab.budget.evaluations_spent == spent


def test_a_batch_is_answered_in_order(lab: Lab) -> None:
    batch = [kernel(before="// a"), kernel(before="return; // b"), kernel(before="// c")]
    found = lab.evaluate(batch)
    assert [e.candidate for e in found] == [c.digest for c in batch]
    assert [e.verdict for e in found] == [Verdict.CORRECT, Verdict.WRONG, Verdict.CORRECT]


def test_what_does_not_fit_the_reference_is_refused_before_it_is_built(lab: Lab) -> None:
    manifest = kernel().manifest
    assert manifest is not None
    cases = {
        "returns f32[48, 1]": replace(manifest, outputs=(TensorSpec("y", (ROWS, 1), "f32"),)),
        "takes f32[48, 69]": replace(manifest, inputs=(TensorSpec("x", (ROWS, COLUMNS - 1), "f32"),)),
        "needs the weight bias": replace(manifest, weights=(TensorSpec("w", (COLUMNS,), "f32", key="bias"),)),
    }
    for said, changed in cases.items():
        (evaluation,) = lab.evaluate([kernel(manifest=changed)])
        assert evaluation.verdict is Verdict.REFUSED
        assert said in evaluation.evidence[0].summary
    (without,) = lab.evaluate([kernel(manifest=None)])
    assert without.verdict is Verdict.REFUSED


def test_finals_check_thoroughly_and_race_in_fresh_processes(lab: Lab) -> None:
    # Right on what get_inputs gives, wrong where |x| is large: only the thorough cases see it.
    narrow = kernel(each="if (x[i * columns + j] > 40) v = 0;")
    assert lab.evaluate([narrow])[0].verdict is Verdict.CORRECT
    final = lab.finalists([narrow, kernel()], (Baseline.EAGER,))
    assert final.winner == kernel()
    assert any(e.verdict is Verdict.WRONG for e in final.evaluations) or len(final.evaluations) == 1
    measurement = final.measurement
    assert measurement is not None
    assert measurement.contestants == (kernel().digest, "eager", "again")
    assert len(measurement.samples) >= 12
    assert set(measurement.speedup) == {"eager"} == set(final.claims)
    assert measurement.noise_floor > 0
    checked = final.evaluations[-1].evidence[1]
    assert checked.numbers["thorough"] == 1.0
    assert f"private (seed {final.private_seed})" in checked.summary


def test_a_thoroughly_wrong_finalist_is_no_winner(lab: Lab) -> None:
    narrow = kernel(each="if (x[i * columns + j] > 41) v = 0;")
    final = lab.finalists([narrow], (Baseline.EAGER,))
    assert final.winner is None
    assert final.measurement is None
    assert "large" in final.evaluations[0].evidence[-1].summary


def test_a_baseline_that_fails_is_unavailable_with_the_reason(lab: Lab) -> None:
    (eager,) = lab.baselines((Baseline.EAGER,))
    assert eager.median_ns is not None
    assert eager.reason == ""


def test_the_budget_ends_an_evaluation_early(lab: Lab) -> None:
    from kernelwright.lab.budget import Budget

    before, lab.budget = lab.budget, Budget(600.0, 1, lambda: 0.0)
    try:
        found = lab.evaluate([kernel(before="// budget 1"), kernel(before="// budget 2"), kernel(before="// budget 3")])
        assert len(found) == 1
        assert lab.budget.exhausted
    finally:
        lab.budget = before
