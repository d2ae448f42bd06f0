"""Replay: measure a certificate's claim again and say whether it holds.

What it does: checks that the files are those that were measured, has them measured once more through the Lab (the callable is
handed in, since the Lab is a layer's business of the caller), and compares the two intervals.
What it does not do: measure by itself. Called by cli.

The rule. The interval of a measurement covers the scatter within one session only; sessions differ more (frequency, memory
layout, neighbours), hence TOLERANCE. With the measured interval [low, high] and the session's noise floor f:
    holds          low > 1 + f (still a win)  and  high * (1 + f) >= claimed low * (1 - TOLERANCE)
    does not hold  high * (1 + f) is below that bound, on the same kind of machine
    cannot tell    everything else: too noisy, [low, high] reaches no win, another machine, the baseline is not there
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from kernelwright.records import Interval, Machine, Measurement
from kernelwright.result.certificate import FILE, Certificate, read_certificate, verify_files

TOLERANCE = 0.10
MOST_NOISE = 0.25

Measure = Callable[[Certificate, Path], tuple[Measurement, Machine]]
"""Measure the candidate in this result folder against the baselines once more: the measurement, and the machine it ran on."""


class ReplayVerdict(Enum):
    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class ReplayOutcome:
    """What a replay found. `measured` is None where nothing was measured (the files are not those of the claim)."""

    verdict: ReplayVerdict
    baseline: str
    claimed: Interval
    measured: Interval | None
    reasons: tuple[str, ...]  # at least one, for people
    measurement: Measurement | None = None


def replay(certificate_path: Path, measure: Measure) -> ReplayOutcome:
    """Check the files of a certificate, measure again, and compare. Raises UserError where there is no certificate."""
    certificate = read_certificate(certificate_path)
    folder = certificate_path if certificate_path.is_dir() else certificate_path.parent
    if certificate_path.name != FILE and not certificate_path.is_dir():
        problems = [f"the certificate must be called {FILE} and lie in its result folder"]
    else:
        problems = verify_files(folder)
    if problems:
        claim = certificate.claim
        return ReplayOutcome(ReplayVerdict.DOES_NOT_HOLD, claim.baseline, claim.speedup, None, tuple(problems))
    measurement, machine = measure(certificate, folder)
    return judge(certificate, measurement, machine)


def judge(certificate: Certificate, measurement: Measurement, machine: Machine) -> ReplayOutcome:
    """Compare a new measurement with the claim by the rule above."""
    claim = certificate.claim
    found = measurement.speedup.get(claim.baseline)
    verdict, reason = ReplayVerdict.CANNOT_TELL, ""
    if found is None:
        why = measurement.unavailable.get(claim.baseline, "it was not measured")
        reason = f"the baseline {claim.baseline} is not there now: {why}"
    elif measurement.noise_floor > MOST_NOISE:
        reason = f"this machine is too busy: two runs of the same code differ by {measurement.noise_floor:.0%}"
    else:
        verdict, reason = _compare(claim.speedup, found, measurement.noise_floor)
    differences = _differences(certificate, measurement, machine)
    if differences and verdict is ReplayVerdict.DOES_NOT_HOLD:
        verdict, reason = ReplayVerdict.CANNOT_TELL, f"{reason}, but it was claimed for something else"
    return ReplayOutcome(verdict, claim.baseline, claim.speedup, found, (reason, *differences), measurement)


def _compare(claimed: Interval, found: Interval, floor: float) -> tuple[ReplayVerdict, str]:
    least = max(claimed.low * (1 - TOLERANCE), 1.0)
    if found.high * (1 + floor) < least:
        return ReplayVerdict.DOES_NOT_HOLD, f"measured at most {found.high:.2f}x, where at least {claimed.low:.2f}x was claimed"
    if found.low <= 1 + floor:
        return ReplayVerdict.CANNOT_TELL, f"the measured interval reaches down to {found.low:.2f}x, which is within the noise"
    return ReplayVerdict.HOLDS, f"measured {found.low:.2f}x to {found.high:.2f}x against {claimed.low:.2f}x claimed at least"


def _differences(certificate: Certificate, measurement: Measurement, machine: Machine) -> tuple[str, ...]:
    was, claimed = certificate.machine, certificate.measurements[0]
    pairs = (
        ("processor", was.cpu, machine.cpu),
        ("instruction set", was.isa, machine.isa),
        ("threads", str(claimed.threads), str(measurement.threads)),
        ("allocator", claimed.allocator, measurement.allocator),
    )
    return tuple(f"{name}: claimed on {then}, measured on {now}" for name, then, now in pairs if then != now)
