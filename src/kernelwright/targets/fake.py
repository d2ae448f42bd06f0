"""The `fake` target: compiles at once and knows how fast each schedule is, by a formula. No compiler, no clock, no device.

What it does: lets search, lab, archive and optimize be exercised exactly and deterministically. A candidate's time follows from
its schedule text alone, has one known optimum among a set of knobs, and candidates that fail can be made at will.
What it does not do: run anything; its times are modelled, and its evidence says so. Called by tests and `--target fake`.

The formula. Each decision d = v costs a factor 1 + 0.25 * distance(d, v): for integers |log2(v) - log2(best(d))|, where best(d)
is a power of two from 4 to 512 that follows from the decision's name; for words a number in [0, 1) that follows from name and
word. The factors multiply, times 1 ms. Failing candidates say so in their source: `#error` does not compile; `FAKE wrong`,
`FAKE crash` and `FAKE hang` end in that verdict.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path

from kernelwright.ir.schedule import Knob, Schedule, Value
from kernelwright.records import Bandwidth, Candidate, Evaluation, Evidence, EvidenceKind, Machine, Status, Verdict
from kernelwright.targets.base import Compiled

BASE_NS = 1e6
_WEIGHT = 0.25
_VERDICTS = {"FAKE wrong": Verdict.WRONG, "FAKE crash": Verdict.CRASHED, "FAKE hang": Verdict.TIMED_OUT}
_MIB = 1 << 20


class FakeTarget:
    """See the module. `flags` of a candidate are ignored; `isa` is always "fake"."""

    name = "fake"

    def capabilities(self) -> tuple[Evidence, ...]:
        """It can compile (pretend to) and estimate; that is all that it claims."""
        compiled = Evidence(EvidenceKind.COMPILED, Status.PASS, "fake", "accepts every source without #error", tool="fake")
        ran = Evidence(EvidenceKind.RAN, Status.UNSUPPORTED, "fake", "has no device: times come from a formula", tool="fake")
        return compiled, ran

    def machine(self) -> Machine:
        """A round-numbered machine: 2 threads of 100 GFLOP/s, 50 GB/s in cache and 20 GB/s in memory."""
        sizes = ((_MIB, 50.0), (32 * _MIB, 20.0), (512 * _MIB, 20.0))
        return Machine(
            cpu="fake",
            isa="avx2",
            vector_bytes=32,
            threads=2,
            l1_bytes=32 << 10,
            l2_bytes=512 << 10,
            l3_bytes=16 * _MIB,
            fma_gflops=200.0,
            fma_gflops_core=100.0,
            amx_bf16_gflops=None,
            bandwidth=tuple(Bandwidth(size, rate, rate, rate) for size, rate in sizes),
            fork_join_us=2.0,
            compiler="fake",
            measured_at="2000-01-01T00:00:00+00:00",
        )

    def compile(self, candidate: Candidate, folder: Path, isa: str | None = None) -> Compiled | Evidence:
        """Write the source where an object would be; `#error` in it is a failure, with the line as a compiler would show it."""
        for number, line in enumerate(candidate.source.splitlines(), start=1):
            if line.lstrip().startswith("#error"):
                log = f"kernel.cpp:{number}:2: error: {line.strip()}"
                return Evidence(EvidenceKind.COMPILED, Status.FAIL, "fake", log, tool="fake", log=log)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{candidate.digest}.fake"
        path.write_text(candidate.source)
        return Compiled(path, "fake", Evidence(EvidenceKind.COMPILED, Status.PASS, "fake", "compiled", tool="fake"))

    def estimate(self, candidate: Candidate) -> Evidence:
        """The candidate's time by the formula, as a model's number."""
        ns = time_ns(parse_schedule(candidate.schedule))
        return Evidence(EvidenceKind.MODELLED, Status.PASS, "fake", f"{ns:.0f} ns by formula", tool="fake", numbers={"ns": ns})

    def evaluate(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """What a Lab would say about each: the verdict that its source asks for, and the formula's time where it is correct."""
        return [_evaluation(candidate, self.estimate(candidate)) for candidate in candidates]


def time_ns(schedule: Schedule) -> float:
    """The formula of the module's docstring."""
    return BASE_NS * math.prod(1.0 + _WEIGHT * _distance(d.name, d.value) for d in schedule.decisions)


def optimum(knobs: Sequence[Knob]) -> Schedule:
    """The fastest schedule among the knobs' options: knobs are independent in the formula."""
    return Schedule.of({knob.name: min(knob.options, key=lambda v: (_distance(knob.name, v), str(v))) for knob in knobs})


def parse_schedule(text: str) -> Schedule:
    """The schedule whose `text()` this is; words that are whole numbers become integers."""
    pairs = (line.partition(" = ") for line in text.splitlines() if line)
    return Schedule.of({name: int(word) if word.lstrip("-").isdecimal() else word for name, _, word in pairs})


def _evaluation(candidate: Candidate, estimate: Evidence) -> Evaluation:
    if "#error" in candidate.source:
        failed = Evidence(EvidenceKind.COMPILED, Status.FAIL, "fake", "#error", tool="fake")
        return Evaluation(candidate.digest, Verdict.NOT_COMPILED, (failed,))
    for word, verdict in _VERDICTS.items():
        if word in candidate.source:
            return Evaluation(candidate.digest, verdict, (Evidence(EvidenceKind.RAN, Status.FAIL, "fake", word, tool="fake"),))
    return Evaluation(candidate.digest, Verdict.CORRECT, (estimate,), median_ns=estimate.numbers["ns"], relative_error=0.0)


def _distance(name: str, value: Value) -> float:
    if isinstance(value, str):
        return _hash(f"{name}={value}") / 2**32
    best = 2 + _hash(name) % 8
    return abs(math.log2(max(1, value)) - best)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
