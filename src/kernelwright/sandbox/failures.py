"""How a worker can end other than by answering: one typed failure each, with one line of text.

What it does: names the ends and words them. Who raises them: worker and zygote. Who catches them: lab, which turns each
into a verdict or into a user's error; nobody else needs to know about signals.
"""

from __future__ import annotations

import signal as signals

from kernelwright.errors import KernelwrightError
from kernelwright.sandbox.limits import Usage


class SandboxError(KernelwrightError):
    """The sandbox itself could not be started (no Python in it, no torch, no memory): not the candidate's doing."""


class WorkerFailed(KernelwrightError):  # noqa: N818 - an end, named as one
    """A worker did not answer. `text` is one line; `output` the tail of what it printed; `usage` what it had used."""

    def __init__(self, text: str, output: str = "", usage: Usage | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.output = output
        self.usage = usage


class Died(WorkerFailed):
    """The process ended: by `signal`, or by itself with `exit_code`. Both None: its zygote was killed under it."""

    def __init__(self, exit_code: int | None, signal: int | None, output: str = "", usage: Usage | None = None) -> None:
        super().__init__(_how_it_died(exit_code, signal), output, usage)
        self.exit_code = exit_code
        self.signal = signal


class TimedOut(WorkerFailed):
    """It used up its wall-clock or CPU seconds (`clock` is "wall" or "cpu") and was killed."""

    def __init__(self, seconds: float, clock: str, output: str = "", usage: Usage | None = None) -> None:
        super().__init__(f"no answer within {seconds:g} s of {clock} time", output, usage)
        self.seconds = seconds
        self.clock = clock


class OutOfMemory(WorkerFailed):
    """It asked for more memory than its limit. `alive`: the allocation failed inside it, and it may be called again."""

    def __init__(self, limit_bytes: int | None, output: str = "", usage: Usage | None = None, alive: bool = False) -> None:
        limit = "its limit" if limit_bytes is None else f"its limit of {limit_bytes / 2**20:.0f} MiB"
        super().__init__(f"needs more memory than {limit}", output, usage)
        self.limit_bytes = limit_bytes
        self.alive = alive


class Garbled(WorkerFailed):
    """It wrote something to its channel that is not an answer (garbage, too large), or closed it; it was killed."""


class HandlerRaised(WorkerFailed):
    """The handler raised an ordinary exception; the worker lives on. `kind` is the exception's class name."""

    def __init__(self, kind: str, message: str, traceback: str, output: str = "") -> None:
        super().__init__(f"{kind}: {message}" if message else kind, output)
        self.kind = kind
        self.message = message
        self.traceback = traceback


def _how_it_died(exit_code: int | None, signal: int | None) -> str:
    if signal is not None:
        try:
            name = signals.Signals(signal).name
        except ValueError:
            name = f"signal {signal}"
        return f"was killed by {name}"
    if exit_code is not None:
        return f"ended by itself with exit code {exit_code} instead of answering"
    return "its sandbox was killed from inside"
