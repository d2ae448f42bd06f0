"""Choices: how the plan asks for a decision, and how the open decisions become knobs.

What it does: `Choices` looks each decision up in a Schedule, checks it, falls back to the plan's default, and remembers what
was asked; so `knobs` is a plan made under the decisions taken so far, and never disagrees with `plan`.
What it does not do: know what a decision means. Called by `ir.plan` and its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.errors import ScheduleError
from kernelwright.ir.schedule import Knob, Schedule, Value


class Choices:
    """The decisions of one schedule while a plan is made."""

    def __init__(self, schedule: Schedule) -> None:
        self._decided = schedule.as_dict()
        self._asked: dict[str, Knob] = {}

    def decided(self, name: str) -> Value | None:
        """The schedule's own word on `name`, without making it a knob."""
        return self._decided.get(name)

    def word(self, name: str, options: Sequence[str], default: str) -> str:
        """One of `options`. Raises ScheduleError for another value."""
        self._asked[name] = Knob(name, tuple(options), default)
        value = self._decided.get(name, default)
        if value not in options:
            raise ScheduleError(f"{name} = {value}: must be one of {', '.join(options)}")
        return str(value)

    def number(self, name: str, options: Sequence[int], default: int, low: int = 1, high: int | None = None) -> int:
        """An integer in [low, high]; `options` are the values worth trying, others in the range are legal too."""
        tried = sorted({*options, default})
        self._asked[name] = Knob(name, tuple(tried), default)
        value = self._decided.get(name, default)
        if not isinstance(value, int) or value < low or (high is not None and value > high):
            raise ScheduleError(f"{name} = {value}: must be an integer from {low} to {high if high is not None else 'any'}")
        return value

    def asked(self) -> tuple[Knob, ...]:
        """Every decision that the plan asked for, in name order, without those that have one option only."""
        return tuple(self._asked[name] for name in sorted(self._asked) if len(self._asked[name].options) > 1)

    def unknown(self) -> list[str]:
        """Decisions of the schedule that the plan never asked for."""
        return sorted(self._decided.keys() - self._asked.keys())
