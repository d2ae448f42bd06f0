"""What a target is: one chip family with its toolchain.

What it does: defines the `Target` protocol, the optional abilities, and `Compiled`. One file a target implements it.
What it does not do: judge or time a candidate (the Lab does). Called by lab, proposers (`machine`), optimize and cli
(`capabilities`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from kernelwright.records import Candidate, Evidence, Machine


@dataclass(frozen=True)
class Compiled:
    """A built candidate: `so_path` can be loaded by a worker on a machine that has `isa`. `evidence` is always a pass."""

    so_path: Path
    isa: str
    evidence: Evidence


class Target(Protocol):
    """What every target offers."""

    @property
    def name(self) -> str:
        """The name that `--target` and `Candidate.target` use."""
        ...

    def capabilities(self) -> tuple[Evidence, ...]:
        """What this machine can truly do for the target, each seen on a known-good and a known-bad kernel."""
        ...

    def machine(self) -> Machine:
        """The limits of the device, measured once and kept."""
        ...

    def compile(self, candidate: Candidate, folder: Path, isa: str | None = None) -> Compiled | Evidence:
        """Build `candidate` into `folder`; a failure is an Evidence (fail or timeout), never an exception."""
        ...


@runtime_checkable
class Emulates(Protocol):
    """A target that can run a candidate without its device. What an emulator needs in time is never a speedup."""

    def emulate(self, candidate: Candidate, folder: Path) -> Evidence: ...


@runtime_checkable
class Sanitizes(Protocol):
    """A target whose toolchain can check a candidate's memory accesses."""

    def sanitize(self, candidate: Candidate, folder: Path) -> Compiled | Evidence: ...


@runtime_checkable
class Estimates(Protocol):
    """A target with a static model of a candidate's resources or time; the evidence is labelled as a model's."""

    def estimate(self, candidate: Candidate) -> Evidence: ...
