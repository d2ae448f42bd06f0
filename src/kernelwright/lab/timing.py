"""Statistics of interleaved timings: pure functions over samples, no clock.

What it does: from rounds in which every contestant ran once in random order, the ratio of two contestants with its 95%
bootstrap interval, the noise floor of the machine from a contestant that ran twice a round (A/A), and what may be said.
What it does not do: run or time anything (`lab.race`). Called by `lab.lab` and `replay`.

A round's samples share the state of the machine (frequency, neighbours), so ratios are paired within the round: the estimate is
exp(median of log(baseline / candidate)). Neighbouring rounds are alike too, so the bootstrap draws blocks of rounds, not single
ones (moving-block bootstrap, Kuensch 1989; block length n^(1/3)). See docs/adr/0003-timing.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.records import Interval

Floats = npt.NDArray[np.floating[Any]]

RESAMPLES = 2000
LEAST_ROUNDS = 10
# Below this we do not tell kernels apart, whatever the A/A pairs say.
LEAST_FLOOR = 0.01
# The floor is this many times the far end of the A/A interval. A false win then needs the candidate's estimate about 4.9
# standard errors above 1 (1.96 for its own lower bound, 1.5 * 1.96 for the floor): one in a million sessions.
FLOOR_FACTOR = 1.5
# Above this nothing is said at all: the machine is too busy.
MOST_FLOOR = 0.25


class Claim(Enum):
    """What the samples allow to be said about candidate against baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"  # no difference beyond the noise
    TOO_NOISY = "too_noisy"  # this machine is too busy to tell


@dataclass(frozen=True)
class Noise:
    """What the A/A pairs of one session showed. `floor`: |ratio - 1| that appears without any difference."""

    floor: float
    spread: float  # half the distance of the 5th and 95th percentile of the log ratios: how much one round scatters
    rounds: int


def interval(baseline_ns: Sequence[float], candidate_ns: Sequence[float], seed: int, resamples: int = RESAMPLES) -> Interval:
    """Speed-up of candidate over baseline (> 1: the candidate is faster) over paired rounds, with its 95% bootstrap interval.

    Raises ValueError for fewer than two rounds or unequal lengths.
    """
    logs = _log_ratios(baseline_ns, candidate_ns)
    medians = _block_medians(logs, seed, resamples)
    low, high = np.quantile(medians, (0.025, 0.975))
    return Interval(float(np.exp(np.median(logs))), float(np.exp(low)), float(np.exp(high)))


def noise(first_ns: Sequence[float], second_ns: Sequence[float], seed: int) -> Noise:
    """The noise floor from one contestant's two runs in each round: the far end of the A/A interval, widened."""
    seen = interval(first_ns, second_ns, seed)
    logs = _log_ratios(first_ns, second_ns)
    floor = max(FLOOR_FACTOR * max(abs(seen.low - 1.0), abs(seen.high - 1.0)), LEAST_FLOOR)
    low, high = np.quantile(logs, (0.05, 0.95))
    return Noise(float(floor), float((high - low) / 2.0), len(logs))


def claim(speedup: Interval, floor: float, rounds: int) -> Claim:
    """What may be said. A win needs the interval's lower bound above 1 + floor."""
    if rounds < LEAST_ROUNDS or floor > MOST_FLOOR or not math.isfinite(speedup.estimate):
        return Claim.TOO_NOISY
    if speedup.low > 1.0 + floor:
        return Claim.FASTER
    if speedup.high < 1.0 - floor:
        return Claim.SLOWER
    wide = (speedup.high - speedup.low) / speedup.estimate
    return Claim.TOO_NOISY if wide > MOST_FLOOR else Claim.SAME


def median(values: Sequence[float]) -> float:
    """The middle value; for an even count the mean of the two middle ones."""
    return float(np.median(np.asarray(values, np.float64)))


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, interpolated."""
    return float(np.quantile(np.asarray(values, np.float64), share))


def _log_ratios(baseline_ns: Sequence[float], candidate_ns: Sequence[float]) -> Floats:
    if len(baseline_ns) != len(candidate_ns) or len(baseline_ns) < 2:
        raise ValueError(f"paired samples of equal length >= 2 are needed, not {len(baseline_ns)} and {len(candidate_ns)}")
    b, c = np.asarray(baseline_ns, np.float64), np.asarray(candidate_ns, np.float64)
    if not ((b > 0).all() and (c > 0).all()):
        raise ValueError("a time is not positive")
    logs: Floats = np.log(b) - np.log(c)
    return logs


def _block_medians(logs: Floats, seed: int, resamples: int) -> Floats:
    """Medians of `resamples` moving-block resamples of `logs`."""
    n = logs.size
    length = max(1, round(n ** (1 / 3)))
    blocks = math.ceil(n / length)
    random = np.random.default_rng(seed)
    starts = random.integers(0, n - length + 1, size=(resamples, blocks))
    index = (starts[:, :, None] + np.arange(length)[None, None, :]).reshape(resamples, -1)[:, :n]
    medians: Floats = np.median(logs[index], axis=1)
    return medians
