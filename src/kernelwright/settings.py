"""What the environment says, read once: folders, threads, compiler, colour.

What it does: `load` turns environment variables into one frozen `Settings`; it is the only reader of os.environ in the package
(the runner, which is also embedded in result folders where the package is absent, reads KERNELWRIGHT_ISA for itself).
What it does not do: create folders, look for compilers or touch torch. Called by cli, api and tests; everyone else is handed
the values.

    KERNELWRIGHT_HOME      folder of the archive, measured limits and compiled code   (~/.cache/kernelwright)
    KERNELWRIGHT_ARCHIVE   the archive's file                                         (HOME/archive.sqlite)
    KERNELWRIGHT_THREADS   threads for kernels and baselines                          (the CPUs that this process may use)
    KERNELWRIGHT_CXX, CXX  the C++ compiler                                           (g++, else clang++, from PATH)
    NO_COLOR               set to anything: no colour
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelwright.errors import UserError


@dataclass(frozen=True)
class Settings:
    """The environment's say. `compiler` is a command or a path, None where the target shall look for one itself."""

    home: Path
    archive: Path
    threads: int
    compiler: str | None
    no_color: bool

    @property
    def objects(self) -> Path:
        """Folder of compiled code, by content hash; may be emptied at any time."""
        return self.home / "objects"


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of this process. Raises UserError for a value that cannot be meant."""
    env = os.environ if environment is None else environment
    home = _folder(env)
    archive = env.get("KERNELWRIGHT_ARCHIVE")
    return Settings(
        home=home,
        archive=Path(archive).expanduser() if archive else home / "archive.sqlite",
        threads=_threads(env),
        compiler=env.get("KERNELWRIGHT_CXX") or env.get("CXX") or None,
        no_color=bool(env.get("NO_COLOR")),
    )


def _folder(env: Mapping[str, str]) -> Path:
    if env.get("KERNELWRIGHT_HOME"):
        return Path(env["KERNELWRIGHT_HOME"]).expanduser()
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]).expanduser() / "kernelwright"
    try:
        return Path.home() / ".cache" / "kernelwright"
    except RuntimeError:
        raise UserError("this user has no home folder", "set KERNELWRIGHT_HOME to a folder that you may write") from None


def _threads(env: Mapping[str, str]) -> int:
    for name in ("KERNELWRIGHT_THREADS", "OMP_NUM_THREADS"):
        text = env.get(name, "").split(",")[0].strip()  # OMP_NUM_THREADS may be a list by nesting level
        if text:
            if text.isdigit() and 0 < int(text) <= 4096:
                return int(text)
            raise UserError(f"{name}={env[name]} is not a number of threads", f"unset {name}, or give a number from 1")
    return available_cpus()


def available_cpus() -> int:
    """CPUs that this process may run on: its affinity, and no more than its cgroup's quota allows."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            count = min(count, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        pass  # no cgroup 2, or not mounted: affinity alone decides
    return count
