"""The search on a made-up space: finds the optimum, is deterministic, stops for the right reasons, keeps the best."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from kernelwright.ir.schedule import Knob, Schedule
from kernelwright.proposers.search import SearchSettings, search
from kernelwright.proposers.space import Draft
from kernelwright.records import Candidate, Evaluation, Verdict

TILES = (1, 2, 4, 8, 16, 32, 64, 128)


class Bowl:
    """Fastest at leaf = micro, tile = 16, unroll = 4; `unroll` exists only under micro; tile 128 is illegal."""

    def knobs(self, decided: Schedule) -> tuple[Knob, ...]:
        found = [Knob("leaf.t", ("loops", "micro"), "loops"), Knob("tile.t.i", TILES, 1)]
        if decided.as_dict().get("leaf.t") == "micro":
            found.append(Knob("unroll.t", (1, 2, 4, 8), 1))
        return tuple(found)

    def draft(self, schedule: Schedule) -> Draft | None:
        if schedule.as_dict().get("tile.t.i") == 128:
            return None
        known = {k.name for k in self.knobs(schedule)}
        schedule = Schedule.of({k: v for k, v in schedule.as_dict().items() if k in known})
        seconds = true_ns(schedule) * 1e-9 * 1.3

        def build(note: str, parents: tuple[str, ...]) -> Candidate:
            return Candidate("fake", schedule.text() or "default", None, schedule=schedule.text(), note=note, parents=parents)

        return Draft(schedule, seconds, build)


def true_ns(schedule: Schedule) -> float:
    values = schedule.as_dict()
    ns = 1000.0 + 100.0 * abs(math.log2(int(values.get("tile.t.i", 1)) / 16))
    if values.get("leaf.t") == "micro":
        ns = ns / 2 + 50.0 * abs(math.log2(int(values.get("unroll.t", 1)) / 4))
    return ns


class Recorder:
    def __init__(self, limit: int, interrupt_at: int | None = None) -> None:
        self.tried: list[str] = []
        self.limit = limit
        self.interrupt_at = interrupt_at

    def evaluate(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        found = []
        for candidate in candidates:
            if self.interrupt_at is not None and len(self.tried) >= self.interrupt_at:
                raise KeyboardInterrupt
            self.tried.append(candidate.digest)
            values = Schedule.of(dict(_pairs(candidate.schedule)))
            found.append(Evaluation(candidate.digest, Verdict.CORRECT, (), true_ns(values)))
        return found

    def exhausted(self) -> bool:
        return len(self.tried) >= self.limit


def _pairs(text: str) -> list[tuple[str, int | str]]:
    rows = [line.split(" = ") for line in text.splitlines()]
    return [(name, int(value) if value.isdigit() else value) for name, value in rows]


def run(recorder: Recorder, seed: int = 0, **more: int) -> tuple[list[str], float, str]:
    reasons: list[str] = []
    stop: Callable[[str], None] = reasons.append
    found = search(Bowl(), recorder.evaluate, recorder.exhausted, SearchSettings(seed=seed, **more), stop)
    return [m.candidate.schedule for m in found], found[0].median_ns, reasons[0]


def test_finds_the_optimum_with_few_evaluations() -> None:
    recorder = Recorder(limit=40)
    schedules, best, _ = run(recorder)
    assert best == 500.0
    assert schedules[0] == "leaf.t = micro\ntile.t.i = 16\nunroll.t = 4"


def test_same_seed_same_proposals_and_no_candidate_twice() -> None:
    first, second, other = Recorder(30), Recorder(30), Recorder(30)
    run(first, seed=7), run(second, seed=7), run(other, seed=8)
    assert first.tried == second.tried
    assert first.tried != other.tried
    assert len(set(first.tried)) == len(first.tried)


@pytest.mark.parametrize("at", [2, 9])
def test_interrupt_keeps_the_best_so_far(at: int) -> None:
    schedules, best, reason = run(Recorder(100, interrupt_at=at))
    assert schedules
    assert best == min(best, 1400.0)
    assert "interrupted" in reason


def test_ends_when_all_is_tried_or_patience_is_gone() -> None:
    _, _, reason = run(Recorder(10_000), patience=10_000)
    assert "tried" in reason
    _, _, reason = run(Recorder(10_000), patience=5)
    assert "no gain" in reason
