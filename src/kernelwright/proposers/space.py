"""The space of schedules of one graph: what the search may choose, what a choice becomes, what it should cost.

What it does: joins `ir.plan` (knobs, plan), `codegen.cpp` (print) and `proposers.cost` behind one small protocol, so that the
search knows nothing of graphs. What it does not do: evaluate. Called by `proposers.search` and `optimize`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kernelwright.codegen.cpp import print_program
from kernelwright.errors import ScheduleError, UnsupportedError
from kernelwright.ir.graph import Graph
from kernelwright.ir.plan import explore
from kernelwright.ir.schedule import Knob, Schedule
from kernelwright.ir.tile import Program
from kernelwright.proposers.cost import estimate
from kernelwright.records import Candidate, Machine


@dataclass(frozen=True)
class Draft:
    """A legal schedule with its modelled seconds, not yet printed."""

    schedule: Schedule
    modelled_seconds: float
    build: Callable[[str, tuple[str, ...]], Candidate]  # (note, parents) -> Candidate


class Space(Protocol):
    """What the search chooses from."""

    def knobs(self, decided: Schedule) -> tuple[Knob, ...]:
        """The open decisions, given those already taken."""
        ...

    def draft(self, schedule: Schedule) -> Draft | None:
        """The schedule's draft (without decisions that became stale), or None where the graph does not admit it."""
        ...


class GraphSpace:
    """The schedules of a captured graph on the CPU target."""

    def __init__(self, graph: Graph, machine: Machine) -> None:
        self._graph = graph
        self._machine = machine
        self._knobs: dict[Schedule, tuple[Knob, ...]] = {}

    def knobs(self, decided: Schedule) -> tuple[Knob, ...]:
        if decided not in self._knobs:
            self._explore(decided)
        return self._knobs[decided]

    def draft(self, schedule: Schedule) -> Draft | None:
        program = self._explore(schedule)
        if program is None:
            return None
        cost = estimate(program, self._machine)
        return Draft(program.schedule, cost.seconds, lambda note, parents: _print(program, note, parents))

    def _explore(self, schedule: Schedule) -> Program | None:
        """The tile program of `schedule` (None where it is illegal); its knobs are kept, under the tidied one too."""
        try:
            program, found = explore(self._graph, schedule, self._machine)
        except ScheduleError:
            self._knobs[schedule] = ()
            return None
        self._knobs[schedule] = self._knobs[program.schedule] = found
        return program


def _print(program: Program, note: str, parents: tuple[str, ...]) -> Candidate:
    """Print `program`. Raises ScheduleError or UnsupportedError where the printer has no form for it."""
    printed = print_program(program)
    return Candidate(
        target="cpu",
        source=printed.source,
        manifest=printed.manifest,
        schedule=program.schedule.text(),
        parents=parents,
        note=note,
    )


def try_build(draft: Draft, note: str, parents: tuple[str, ...]) -> Candidate | None:
    """The draft's candidate, or None where the printer refuses it."""
    try:
        return draft.build(note, parents)
    except (ScheduleError, UnsupportedError):
        return None
