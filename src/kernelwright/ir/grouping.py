"""Grouping: which operations share a nest.

What it does: walks the graph from its results to its sources and decides for each operation (decision `fuse.<tensor>`) whether
it lives as a stage inside its readers' nest or is stored by a nest of its own.
What it does not do: inline (see `ir.fuse`) or choose sizes. Called by `ir.plan`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.errors import ScheduleError
from kernelwright.ir.expr import Axis, loads_in
from kernelwright.ir.family import Family, unify
from kernelwright.ir.fuse import readers, sides
from kernelwright.ir.fuse_axes import Reshaped
from kernelwright.ir.graph import Contract, Graph, Library, Op, Role, Structured, all_axes, expressions_of
from kernelwright.ir.knobs import Choices
from kernelwright.ir.leaf import product
from kernelwright.records import Machine

SMALL = 1 << 15  # points of a family that needs no parallelism


@dataclass(frozen=True)
class Cut:
    """The graph as families and library calls, in execution order. `stored` results outlive their nest."""

    steps: tuple[Family | Library, ...]
    stored: frozenset[str]


def group(shaped: Reshaped, choices: Choices, machine: Machine, inlinable: frozenset[str]) -> Cut:
    """Cut the graph into families. Raises ScheduleError where a decision asks for a stage that is not legal.

    What is written or read through a view is stored: only memory gives it two shapes.
    """
    graph = shaped.graph
    uses = readers(graph)
    viewed = {*shaped.views, *shaped.views.values()}
    home: dict[str, int] = {}
    members: dict[int, tuple[Structured, ...]] = {}
    stored: set[str] = set(graph.outputs) | {n for n, t in graph.tensors.items() if t.role is Role.OUTPUT}
    for position in range(len(graph.ops) - 1, -1, -1):
        op = graph.ops[position]
        if isinstance(op, Library):
            continue
        target = None if op.output in viewed else _home(uses.get(op.output, []), home)
        family = None if target is None else unify((op, *members[target]), lambda o: o.output in stored)
        if _stays(graph, op, family, Asked(choices, machine, stored, inlinable)):
            assert target is not None
            home[op.output] = target
            members[target] = (op, *members[target])
        else:
            stored.add(op.output)
            home[op.output] = position
            members[position] = (op,)
    steps = _in_order(graph, members, stored)
    return Cut(steps, frozenset(stored))


def _in_order(graph: Graph, members: dict[int, tuple[Structured, ...]], stored: set[str]) -> tuple[Family | Library, ...]:
    steps: list[Family | Library] = []
    for position, op in enumerate(graph.ops):
        if isinstance(op, Library):
            steps.append(op)
        elif position in members:
            steps.append(unify(members[position], lambda o: o.output in stored))
    return tuple(steps)


def _home(uses: list[Op], home: dict[str, int]) -> int | None:
    """The one nest in which all readers live, if there is one."""
    if not uses or any(isinstance(u, Library) for u in uses):
        return None
    homes = {home[u.output] for u in uses if not isinstance(u, Library)}
    return homes.pop() if len(homes) == 1 else None


@dataclass(frozen=True)
class Asked:
    """Whom to ask and what is known while families grow."""

    choices: Choices
    machine: Machine
    stored: set[str]
    inlinable: frozenset[str]


def _stays(graph: Graph, op: Structured, family: Family | None, asked: Asked) -> bool:
    """Whether `op`, the first of `family`, becomes a stage of its readers' nest (`family` None: they share no nest)."""
    name = f"fuse.{op.output}"
    why = "its readers do not share one nest"
    if family is not None:
        refused = refusal(graph, family, asked.machine, asked.stored)
        if refused is None:
            options = ("inline", "stage", "store") if op.output in asked.inlinable else ("stage", "store")
            default = "stage" if profitable(graph, family, asked.machine, asked.stored) else "store"
            return asked.choices.word(name, options, default) == "stage"
        why = refused
    if asked.choices.decided(name) == "stage":
        raise ScheduleError(f"{name} = stage: {why}")
    if op.output in asked.inlinable or asked.choices.decided(name) == "store":
        asked.choices.word(name, ("inline", "store") if op.output in asked.inlinable else ("store",), "store")
    return False


def refusal(graph: Graph, family: Family, machine: Machine, stored: set[str]) -> str | None:
    """Why these operations cannot share a nest (too large a tile, no common loop), or None."""
    points = max(product(all_axes(op)) for op in family.ops)
    if not family.loops and points > SMALL:
        return "producer and reader share no axis over which a nest could loop"
    area = tile_bytes(graph, family, stored)
    if area > machine.l2_bytes * 2:
        return f"its smallest tile needs {area} bytes, more than the caches hold"
    return None


def profitable(graph: Graph, family: Family, machine: Machine, stored: set[str]) -> bool:
    """The default: stay in one nest if enough parallel tiles remain, tiles fit the cache and contractions keep their shape."""
    points = max(product(all_axes(op)) for op in family.ops)
    parallel = 1
    for a in family.loops:
        parallel *= a.extent
    if points > SMALL and parallel < 2 * machine.threads:
        return False
    if tile_bytes(graph, family, stored) > machine.l2_bytes // 2:
        return False
    return all(_keeps_shape(op, family, machine) for op in family.ops if isinstance(op, Contract)) and (
        not isinstance(family.ops[0], Contract) or _plainly_read(family)
    )


def _plainly_read(family: Family) -> bool:
    """Whether every reader of the first operation uses whole axes as indices."""
    name = family.ops[0].output
    loads = [load for op in family.ops for e in expressions_of(op) for load in loads_in(e) if load.tensor == name]
    return all(isinstance(e, Axis) for load in loads for e in load.index)


def _keeps_shape(op: Contract, family: Family, machine: Machine) -> bool:
    """Whether tiles leave the contraction efficient: batch axes looped, and what each tile reads whole stays in L2."""
    if len(family.ops) == 1:
        return True
    loops = {a.name for a in family.loops}
    m, n, batch = sides(op)
    if any(a.name not in loops and a.extent > 1 for a in batch):
        return False
    for side in (m, n):
        whole = product(op.reduce_axes)
        for a in side:
            whole *= 1 if a.name in loops else a.extent
        if any(a.name not in loops for a in side) and whole * 4 > machine.l2_bytes:
            return False
    return any(a.name in loops for a in (*m, *n))


def tile_bytes(graph: Graph, family: Family, stored: set[str]) -> int:
    """Bytes of the tile-local results at the smallest sensible tile (16 rows a contraction, else single rows)."""
    rows = max(1, 16 * sum(isinstance(op, Contract) for op in family.ops))
    loops = [a.name for a in family.loops]
    total = 0
    for op in family.ops[:-1]:
        if op.output not in stored:
            size = graph.tensors[op.output].dtype.bytes
            for a in op.axes:
                size *= a.extent if a.name not in loops else min(rows, a.extent) if a.name == loops[-1] else 1
            total += size
    return total
