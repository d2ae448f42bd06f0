"""A Lab around a small task: the real sandbox and compiler, but made-up limits of the machine, since measuring takes long."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright.archive.store import Archive
from kernelwright.events import Event
from kernelwright.lab.budget import Budget
from kernelwright.lab.lab import Lab, LabSettings
from kernelwright.records import Bandwidth, Candidate, GeneratedStep, Machine, Manifest, TensorSpec
from kernelwright.sandbox.isolation import detect
from kernelwright.sandbox.limits import Limits
from kernelwright.targets.cpu import CpuTarget
from kernelwright.targets.machine import host_isa
from kernelwright.task.load import load_task

TASKS = Path(__file__).parent / "tasks"
THREADS = 2
QUICK = LabSettings(
    folder=Path(), threads=THREADS, rounds=12, least_rounds=10, race_seconds=4.0, limits=Limits(memory_bytes=1 << 30)
)  # fmt: skip


class QuickTarget(CpuTarget):
    """The real target with made-up limits."""

    def machine(self, again: bool = False) -> Machine:
        rates = Bandwidth(1 << 20, 100.0, 100.0, 100.0)
        return Machine(
            "test", host_isa(), 32, THREADS, 32 << 10, 512 << 10, 1 << 20, 100.0, 50.0, None, (rates,), 1.0,
            self.compiler.version, "never",
        )  # fmt: skip


@dataclass(frozen=True)
class Solution:
    """A source in tasks/NAME/right or wrong, and what its first lines say of it. `raced`: only the finals find it out."""

    task: str
    path: Path
    verdict: str
    says: str
    thorough: bool
    raced: bool

    @property
    def candidate(self) -> Candidate:
        preamble = (TASKS / self.task / "preamble.cpp").read_text()
        return Candidate("cpu", preamble + self.path.read_text(), MANIFESTS[self.task], note=self.path.stem)

    def __str__(self) -> str:
        return f"{self.task}-{self.path.stem}"


def f32(name: str, *shape: int, key: str | None = None) -> TensorSpec:
    return TensorSpec(name, shape, "f32", key)


def manifest(
    inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...], weights: tuple[TensorSpec, ...] = (), workspace: int = 0
) -> Manifest:
    """Of one generated step; the pointers are inputs, weights, outputs."""
    names = tuple(s.name for s in (*inputs, *weights, *outputs))
    returns = tuple(s.name for s in outputs)
    tree = "tensor" if len(outputs) == 1 else "tuple"
    return Manifest(inputs, weights, (), outputs, (), names, returns, tree, (GeneratedStep("kw_run_0"),), workspace, 0, 0)


MANIFESTS = {
    "softmax": manifest((f32("x", 96, 130),), (f32("y", 96, 130),), workspace=1024),
    "linear": manifest(
        (f32("x", 33, 47),),
        (f32("y", 33, 29),),
        (f32("w", 29, 47, key="layer.weight"), f32("b", 29, key="layer.bias")),
    ),
    "argmax": manifest((f32("x", 61, 40),), (TensorSpec("at", (61,), "i64"), f32("top", 61))),
}


def solutions(kind: str, task: str = "*") -> list[Solution]:
    """The sources in tasks/*/`kind`, with the verdict that their comments promise."""
    found = []
    for path in sorted(TASKS.glob(f"{task}/{kind}/*.cpp")):
        said = dict(re.findall(r"^// (verdict|says): (.*)$", path.read_text(), re.MULTILINE))
        thorough, raced = (f"\n// {word}\n" in path.read_text() for word in ("thorough", "raced"))
        verdict, says = said.get("verdict", "correct"), said.get("says", "")
        found.append(Solution(path.parts[-3], path, verdict, says, thorough, raced))
    return found


@dataclass(frozen=True)
class Bench:
    """A Lab and what it told. `close` ends its processes."""

    lab: Lab
    events: list[Event]
    archive: Archive

    def close(self) -> None:
        self.lab.close()
        self.archive.close()


def make_bench(home: Path, reference: Path, settings: LabSettings = QUICK) -> Bench:
    """A Lab on the reference in a file. `home` keeps its archive and objects."""
    archive = Archive(home / "archive.sqlite")
    task = load_task(str(reference))
    run = archive.begin_run(task, "cpu", {}, 0, ())
    events: list[Event] = []
    lab = Lab(
        task, QuickTarget(home, THREADS), archive, detect(), replace(settings, folder=home / "objects"), run=run,
        budget=Budget(600.0, None, time.monotonic), on_event=events.append,
    )  # fmt: skip
    return Bench(lab, events, archive)
