"""How strongly this machine can isolate a process, and what a sandbox may see of its files.

What it does: tries bubblewrap once for real, then Landlock and seccomp, and says in one line what was found.
What it does not do: start workers (zygote) or decide who may run under which strength (lab).
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from kernelwright.sandbox import lockdown

INSTALL_BUBBLEWRAP = "apt-get install bubblewrap"
PROBE_SECONDS = 10.0
NOBODY = 65534


class Strength(Enum):
    """From strong to none; FOREIGN code needs BUBBLEWRAP (see records.Origin)."""

    BUBBLEWRAP = "bubblewrap"
    KERNEL_LIMITS = "kernel_limits"  # Landlock + seccomp + rlimits, no namespaces
    NONE = "none"


@dataclass(frozen=True)
class Isolation:
    """What `detect` found. `statement` is one line for people; `bwrap` the command's fixed first part (BUBBLEWRAP only)."""

    strength: Strength
    statement: str
    bwrap: tuple[str, ...] = ()

    @property
    def drops_root(self) -> bool:
        """The zygote itself leaves root for uid 65534 once its mounts stand (no user namespace in between)."""
        return "--cap-add" in self.bwrap


@dataclass(frozen=True)
class Mounts:
    """Files and folders of the host that the sandbox sees at the same path, besides Python, torch and the system's libraries."""

    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
