"""What a run may spend: seconds and evaluations.

What it does: counts. It raises nothing: who spends asks `exhausted` first and ends with what it has. What it does not do: stop
anything by itself. Made by optimize, spent by the Lab, read by proposers.
"""

from __future__ import annotations

from collections.abc import Callable


class Budget:
    """Seconds since its start, and evaluations. Known evaluations (found in the archive) cost nothing."""

    def __init__(self, seconds: float, evaluations: int | None, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._evaluations = evaluations
        self._clock = clock
        self._started = clock()
        self._used = 0

    def start(self, seconds: float) -> None:
        """Begin to count now, with `seconds` to spend: what came before (capture, limits) is not the search's."""
        self._started = self._clock()
        self._seconds = seconds

    def stop(self) -> None:
        """Spend what is left: the user wants an end (Ctrl-C)."""
        self._seconds = 0.0

    def charge(self) -> None:
        """Count one evaluation."""
        self._used += 1

    @property
    def seconds_spent(self) -> float:
        return self._clock() - self._started

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._seconds - self.seconds_spent)

    @property
    def evaluations_spent(self) -> int:
        return self._used

    @property
    def evaluations_left(self) -> int | None:
        """None where evaluations are not limited."""
        return None if self._evaluations is None else max(0, self._evaluations - self._used)

    @property
    def exhausted(self) -> bool:
        return self.seconds_left <= 0.0 or self.evaluations_left == 0
