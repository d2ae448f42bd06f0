"""What a module must define to be served inside a worker.

What it does: the two records of the worker-side seam. A handler module has one function

    def handlers() -> dict[str, Handler]

which a worker calls once after the fork, so that state made there belongs to that worker alone. A handler's function gets
the decoded request and the file descriptors that came with it, and returns any msgspec-able object or an `Answer`. The
descriptors it is given are closed when it returns (a mapping stays valid; `os.dup` keeps one); those of an `Answer` are
closed when they have been sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A reply that carries file descriptors (memfds)."""

    payload: object
    fds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Handler:
    """`kind` is the type that the request is decoded to (msgspec); `function(request, fds)` answers it."""

    kind: Any
    function: Callable[[Any, tuple[int, ...]], object]
