"""Timing from outside: frames of calls in worker processes, on the Lab's clock.

What it does: times a contestant (a worker that runs its function n times when asked) by the wall time of the call as the Lab
sees it, less the cost of an empty call; screens one contestant quickly; races several, interleaved in random order.
What it does not do: statistics (`lab.timing`), or trust any number that a worker says. Called by `lab.lab`.

Why frames: a call across a process border costs some 50 us, so short operators run many times in one frame (at least
FRAME_SECONDS). Why unclocked calls: the threads of the contestant before spin for some milliseconds after its last parallel
region (OpenMP's active wait) and take a core away. See docs/adr/0003-timing.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelwright.lab.timing import quantile
from kernelwright.records import Sample

FRAME_SECONDS = 0.010
SETTLE_SECONDS = 0.006
EMPTY_FRAMES = 7
MOST_CALLS = 100_000
SCREEN_SECONDS = 0.08
SCREEN_FRAMES = 15
LEAST_SCREEN_FRAMES = 5
HOPELESS = 2.0  # times the best known: such a candidate is screened with one frame

Frame = Callable[[int], float]


class Contestant:
    """Something that can be timed. `frame(n)` runs it n times in its own process and returns the wall seconds seen here.

    Raises sandbox.failures.WorkerFailed through `frame`.
    """

    def __init__(self, name: str, frame: Frame) -> None:
        self.name = name
        self._frame = frame
        self._overhead: float | None = None
        self._calls = 1

    def seconds(self, calls: int) -> float:
        """Seconds a call, over one frame of `calls`, the empty frame's cost taken off."""
        if self._overhead is None:
            self._overhead = min(self._frame(0) for _ in range(EMPTY_FRAMES))
        wall = self._frame(calls)
        return max(wall - self._overhead, wall * 0.01, 1e-9) / calls

    def calibrate(self) -> float:
        """Find how many calls make a frame; the last estimate of the seconds a call."""
        self.seconds(1)
        calls = 1
        estimate = self.seconds(1)
        while estimate * calls < FRAME_SECONDS and calls < MOST_CALLS:
            calls = min(MOST_CALLS, max(calls * 2, round(1.3 * FRAME_SECONDS / estimate)))
            estimate = self.seconds(calls)
        self._calls = calls
        return estimate

    def settle(self, estimate: float) -> None:
        """Run unclocked until the contestant before has stopped spinning."""
        self._frame(max(1, min(MOST_CALLS, round(SETTLE_SECONDS / max(estimate, 1e-9)))))

    def sample(self) -> float:
        """Nanoseconds a call over one frame. `calibrate` must have run."""
        return self.seconds(self._calls) * 1e9


@dataclass(frozen=True)
class Screening:
    """A quick look at one contestant: good enough to rank candidates, not to claim anything.

    `ns` is the lower quartile of the frames: on a shared machine one frame in two may be disturbed, and never to the better.
    """

    ns: float
    frames: int


def screen(contestant: Contestant, best_ns: float | None, seconds: float = SCREEN_SECONDS) -> Screening:
    """Some `seconds` worth of frames; fewer where it is hopeless against `best_ns`."""
    estimate = contestant.calibrate() * 1e9
    if best_ns is not None and estimate > HOPELESS * best_ns:
        return Screening(min(estimate, contestant.sample()), 2)
    wanted = round(seconds * 1e9 / max(estimate, FRAME_SECONDS * 1e9))
    frames = max(LEAST_SCREEN_FRAMES, min(SCREEN_FRAMES, wanted))
    return Screening(quantile([contestant.sample() for _ in range(frames)], 0.25), frames)


def race(
    contestants: Sequence[Contestant], rounds: int, seed: int, on_round: Callable[[int], bool] = lambda _: True
) -> tuple[Sample, ...]:
    """Rounds in which every contestant runs one frame, in an order drawn anew each round. `on_round` may end it by False."""
    order_source = random.Random(seed)
    estimates = [contestant.calibrate() for contestant in contestants]
    samples: list[Sample] = []
    for number in range(rounds):
        order = list(range(len(contestants)))
        order_source.shuffle(order)
        ns = [0.0] * len(contestants)
        for index in order:
            contestants[index].settle(estimates[index])
            ns[index] = contestants[index].sample()
        samples.append(Sample(number, tuple(ns)))
        if not on_round(number):
            break
    return tuple(samples)
