"""The Schedule: a frozen list of named decisions, and the knobs from which proposers choose them.

What it does: defines Decision, Schedule and Knob with one canonical text form (so that equal schedules hash equally).
What it does not do: know what a decision means; `ir.plan` interprets them. Called by plan, proposers, archive, printers.

Names are dotted paths: kind, then what it is about. `ir.plan` documents the kinds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

Value = int | str


@dataclass(frozen=True, order=True)
class Decision:
    """One choice, for instance ("tile.t7.i1", 256)."""

    name: str
    value: Value


@dataclass(frozen=True)
class Schedule:
    """Decisions in name order, each name once. What is not decided takes the plan's default."""

    decisions: tuple[Decision, ...] = ()

    def __post_init__(self) -> None:
        names = [d.name for d in self.decisions]
        if names != sorted(set(names)):
            raise ValueError("decisions must be sorted by name, without repeats")

    @staticmethod
    def of(values: dict[str, Value]) -> Schedule:
        """A schedule from a mapping."""
        return Schedule(tuple(Decision(k, values[k]) for k in sorted(values)))

    def as_dict(self) -> dict[str, Value]:
        return {d.name: d.value for d in self.decisions}

    def text(self) -> str:
        """One `name = value` a line, sorted: the form that is printed, stored and hashed."""
        return "\n".join(f"{d.name} = {d.value}" for d in self.decisions)

    def digest(self) -> str:
        """SHA-256 of `text`, 16 hex digits."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Knob:
    """A decision that is open: its options in a sensible order, and the default that the model of the machine suggests."""

    name: str
    options: tuple[Value, ...]
    default: Value
