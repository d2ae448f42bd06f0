"""A zygote: a sandboxed process with torch already loaded, which forks a worker in milliseconds.

What it does: starts the process under the given isolation, asks it for workers, and starts it again if it died. What it does
not do: talk to the workers (worker) or decide who may run (lab). Made by lab and optimize, one a role (reference,
candidate, comparator), because processes of one zygote share its namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.sandbox.isolation import Isolation, Mounts
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.wire import Exited
from kernelwright.sandbox.worker import Worker


class Zygote:
    """Owns the sandboxed process. Thread-safe; each Worker belongs to the thread that uses it."""

    def __init__(
        self,
        isolation: Isolation,
        mounts: Mounts = Mounts(),
        limits: Limits = Limits(),
        *,
        preload: Sequence[str] = ("torch",),
        threads: int = 1,
        environment: Mapping[str, str] | None = None,
        python: str | None = None,
    ) -> None: ...

    def worker(self, handlers: str, limits: Limits | None = None, timeout: float = 60.0) -> Worker:
        """Fork a worker that serves the module `handlers`."""
        raise NotImplementedError

    def wait_exit(self, number: int) -> Exited | None:
        raise NotImplementedError

    def close(self) -> None:
        """End the sandbox with everything in it."""
