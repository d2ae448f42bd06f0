"""What a run tells while it goes on: small records that the command line, MCP or a notebook may show.

What it does: names the events. Who makes them: lab, proposers and optimize. Who shows them: cli (the only module that prints).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class PhaseStarted:
    """A phase of the run begins: admit, capture, limits, baseline, search, finals, package."""

    name: str
    detail: str = ""


@dataclass(frozen=True)
class BaselineTimed:
    """The time of the reference against which the best so far is shown: a quick look, not the claim's base."""

    baseline: str
    median_ns: float


@dataclass(frozen=True)
class Evaluated:
    """One candidate was evaluated (or found in the archive: `known`)."""

    candidate: str
    verdict: str
    median_ns: float | None
    best_ns: float | None
    evaluated: int
    correct: int
    seconds_left: float
    evaluations_left: int | None
    note: str
    known: bool


@dataclass(frozen=True)
class Notice:
    """One visible line: weaker isolation, a baseline that is unavailable, why the search ended."""

    text: str


Event = PhaseStarted | BaselineTimed | Evaluated | Notice
OnEvent = Callable[[Event], None]
