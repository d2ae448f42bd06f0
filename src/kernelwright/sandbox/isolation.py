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
    """Files and folders that the sandbox sees at their own path, besides Python, torch and the system's libraries."""

    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()


@functools.cache
def detect() -> Isolation:
    """What this machine offers, tried for real once a process."""
    program = shutil.which("bwrap")
    problem = f"bubblewrap is not installed ({INSTALL_BUBBLEWRAP})"
    if program is not None:
        for arguments in _bwrap_variants():
            problem = _try_bwrap((program, *arguments))
            if not problem:
                return Isolation(Strength.BUBBLEWRAP, f"sandbox: bubblewrap ({program})", (program, *arguments))
        problem = f"bubblewrap does not work here: {problem}"
    return _without_bwrap(problem)


def without_bubblewrap() -> Isolation:
    """The strongest isolation that needs no bubblewrap, for machines without it and for tests."""
    return _without_bwrap("bubblewrap is not used")


def unconfined() -> Isolation:
    """No isolation but process limits: what the user asked for with --no-sandbox."""
    return Isolation(Strength.NONE, "sandbox: none (--no-sandbox): candidates can read and write what you can")


def _bwrap_variants() -> tuple[tuple[str, ...], ...]:
    """As root the sandbox's processes truly become another user where the kernel lets us; else a user namespace maps them."""
    shared = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    mapped = ("--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY), *shared)
    if os.geteuid() != 0:
        return (mapped,)
    return (("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", *shared), mapped)


def mapped_user(isolation: Isolation) -> Isolation:
    """The same bubblewrap with a user namespace: files that only root may read stay readable inside."""
    if not isolation.drops_root:
        return isolation
    return Isolation(isolation.strength, isolation.statement, (isolation.bwrap[0], *_bwrap_variants()[-1]))


def _try_bwrap(command: tuple[str, ...]) -> str:
    """Empty when a command runs under it, else what it said."""
    probe = (*command, "--die-with-parent", "--new-session", "--as-pid-1", "--ro-bind", "/", "/", "--proc", "/proc")
    try:
        done = subprocess.run(
            (*probe, "--dev", "/dev", "--tmpfs", "/tmp", "--", "/bin/true"),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PROBE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.returncode == 0 else (said[-1] if said else f"exit code {done.returncode}")


def _without_bwrap(problem: str) -> Isolation:
    seccomp = lockdown.seccomp_problem()
    version = lockdown.landlock_version()
    if version > 0 and seccomp is None:
        statement = f"sandbox: Landlock {version} and seccomp only, weaker than bubblewrap: {problem}"
        return Isolation(Strength.KERNEL_LIMITS, statement)
    missing = "the kernel has no Landlock" if version == 0 else f"no seccomp: {seccomp}"
    return Isolation(Strength.NONE, f"sandbox: none but process limits: {problem}; {missing}")
