"""The errors that cross module borders.

What it does: names the two kinds of failure that are not verdicts. A candidate's failure is an `Evaluation`, never an
exception; a user's mistake is a `UserError`; anything else is our own bug and stays a traceback. Everyone raises these;
only `cli` turns `UserError` into a line and exit code 2.
"""

from __future__ import annotations


class KernelwrightError(Exception):
    """Base of the errors that Kernelwright raises on purpose."""


class UserError(KernelwrightError):
    """The user's mistake: `message` says what is wrong, `hint` what to do next."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n  {hint}")
        self.message = message
        self.hint = hint


class ScheduleError(KernelwrightError):
    """A schedule that the graph does not admit. The search prunes it; the agent reads the message."""


class UnsupportedError(KernelwrightError):
    """A construct that a layer has no form for (a dtype, an operator); the caller falls back to a library call."""
