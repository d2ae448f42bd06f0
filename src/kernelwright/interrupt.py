"""Ctrl-C in two steps: the first asks for an end, the second is one.

What it does: while inside `with`, takes SIGINT over from Python. The first calls `stop` and lets what is under way finish, so
that no result is lost half-way; the second raises KeyboardInterrupt at once.
What it does not do: anything outside of the main thread, where signals can't be taken, or in a process that ignores SIGINT
(started with nohup or &). Called by optimize around the search.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType


class Interruption:
    """A context manager. `asked` tells whether an end was asked for."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._count = 0
        self._taken = False

    @property
    def asked(self) -> bool:
        return self._count > 0

    def __enter__(self) -> Interruption:
        ours = threading.current_thread() is threading.main_thread()
        self._taken = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._taken:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._taken:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._count > 1 and kind is None:  # it was caught inside, on the way to the best so far: that is for the first one
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            raise KeyboardInterrupt
        self._stop()
