"""What a worker may use, and what it used.

What it does: two small records that travel between the parent, the zygote and the worker. It enforces nothing: the worker
sets them on itself (`lockdown`) and the parent watches the rest (`worker`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of one worker. `memory_bytes` counts what it takes beyond its zygote (torch itself is shared)."""

    memory_bytes: int | None = 8 << 30
    cpu_seconds: int | None = None  # of all threads together, over the worker's life
    processes: int = 64  # processes and threads that its sandbox may hold at once, OpenMP's included
    file_bytes: int = 8 << 30  # the largest file or memfd that it may write
    open_files: int = 512
    may_fork: bool = True  # False: it may start threads but no process


@dataclass(frozen=True)
class Usage:
    """What a worker used so far; exact once it has ended, read from /proc before."""

    cpu_seconds: float
    max_rss_bytes: int
