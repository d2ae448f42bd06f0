"""The fake target: deterministic, with a known optimum, and able to fail in each way."""

from __future__ import annotations

from pathlib import Path

from kernelwright.ir.schedule import Knob, Schedule
from kernelwright.records import Candidate, Evidence, Status, Verdict
from kernelwright.targets.base import Compiled, Estimates, Target
from kernelwright.targets.fake import BASE_NS, FakeTarget, optimum, parse_schedule, time_ns

KNOBS = (
    Knob("tile.a.i", (8, 16, 32, 64, 128, 256, 512), 8),
    Knob("tile.a.j", (4, 8, 512), 4),
    Knob("store.a", ("cached", "stream"), "cached"),
)


def candidate(source: str = "", schedule: Schedule | None = None) -> Candidate:
    return Candidate("fake", source, None, schedule=(schedule or Schedule()).text())


def test_it_is_a_target_that_estimates() -> None:
    target: Target = FakeTarget()
    assert isinstance(target, Estimates)
    assert target.machine().threads == 2
    assert {e.status for e in target.capabilities()} == {Status.PASS, Status.UNSUPPORTED}


def test_time_follows_from_the_schedule_alone() -> None:
    schedule = Schedule.of({"tile.a.i": 32, "store.a": "stream"})
    assert time_ns(Schedule()) == BASE_NS
    assert time_ns(schedule) == time_ns(parse_schedule(schedule.text())) > BASE_NS
    (evaluation,) = FakeTarget().evaluate([candidate(schedule=schedule)])
    assert evaluation.median_ns == time_ns(schedule)


def test_optimum_is_the_best_of_all() -> None:
    best = time_ns(optimum(KNOBS))
    everything = [
        time_ns(Schedule.of({"tile.a.i": i, "tile.a.j": j, "store.a": s}))
        for i in KNOBS[0].options
        for j in KNOBS[1].options
        for s in KNOBS[2].options
    ]
    assert best == min(everything) < max(everything)


def test_schedule_text_is_read_back() -> None:
    schedule = Schedule.of({"a": -3, "b": "word", "c.d": 64})
    assert parse_schedule(schedule.text()) == schedule


def test_failures_on_demand(tmp_path: Path) -> None:
    target = FakeTarget()
    sources = ("fine", "x\n#error no", "FAKE wrong", "FAKE crash", "FAKE hang")
    verdicts = [e.verdict for e in target.evaluate([candidate(s) for s in sources])]
    assert verdicts == [Verdict.CORRECT, Verdict.NOT_COMPILED, Verdict.WRONG, Verdict.CRASHED, Verdict.TIMED_OUT]
    assert isinstance(target.compile(candidate(sources[0]), tmp_path), Compiled)
    failed = target.compile(candidate(sources[1]), tmp_path)
    assert isinstance(failed, Evidence)
    assert failed.summary == "kernel.cpp:2:2: error: #error no"
