"""The plan: Graph + Schedule + Machine -> Program.

What it does: runs the fusion rewrites under the schedule's decisions, cuts the graph into nests, tiles them, merges statements
into stages, chooses leaves and places, and plans the memory. The empty schedule gives the defaults that the machine suggests.
What it does not do: print or measure. Called by proposers (search, agent), by tests and by the result's writer.

Decisions (`<t>` is a tensor, `<nest>` a nest's name: `n_` and its root's output; `<s>` a stage, named after its last output):

| decision | values | meaning |
|---|---|---|
| `leaf.<t>` | micro, loops, library | how a contraction (named by its own output) is run |
| `fuse.<t>` | inline, stage, store | its body goes into its readers; it is a stage of their nest; it is stored |
| `split.<t>` | parts >= 1 | a reduction in two levels: so many partial results, then their combination |
| `tile.<nest>.<axis>` | 1..extent | step of the tile loop over that axis (the extent: no loop) |
| `parallel.<nest>` | 0..loops | how many leading loops threads share |
| `chunk.<nest>` | >= 1 | tiles that a thread takes at once |
| `threads.<nest>` | 0, 1 | all threads, or run serially |
| `vector.<s>` | an axis, none | the vectorised axis |
| `unroll.<s>` | 1, 2, 4, 8 | vectors a step (independent accumulators of a reduction) |
| `store.<s>` | normal, stream | ordinary or non-temporal stores of the stage's stored results |
| `mr.<t>`, `nr.<t>`, `kc.<t>` | numbers | the micro-kernel's register tile (rows, vectors) and K block |
| `pack_m.<t>`, `pack_n.<t>` | direct, local, ahead, prepared | how the micro-kernel reads each side |

`ScheduleError` says which decision the graph does not admit. A decision that the plan never asks for is an error too; `tidy`
drops such decisions (a crossover of two schedules leaves some behind).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from kernelwright.errors import ScheduleError
from kernelwright.ir.expr import Axis, DType, loads_in
from kernelwright.ir.family import Family, merge_axes, rename_tensors
from kernelwright.ir.fuse import (
    absorb_epilogues,
    drop_dead,
    fresh,
    inline_maps,
    is_view,
    nodes,
    simplify_all,
    squeeze,
    worth_inlining,
)
from kernelwright.ir.fuse_axes import Reshaped, hoist_divisors, outermost, split_axes, split_reduction
from kernelwright.ir.fuse_share import share_bodies
from kernelwright.ir.graph import (
    Contract,
    Graph,
    Library,
    Map,
    Op,
    Reduce,
    Role,
    Structured,
    Tensor,
    all_axes,
    expressions_of,
    inputs_of,
    outputs_of,
)
from kernelwright.ir.grouping import Cut, group
from kernelwright.ir.knobs import Choices
from kernelwright.ir.leaf import choose_leaves, micro_kernel, product
from kernelwright.ir.limits import causal_limits, with_limits
from kernelwright.ir.places import place
from kernelwright.ir.schedule import Knob, Schedule
from kernelwright.ir.stages import loop_order, merge_stages, strides, vector_axis
from kernelwright.ir.tile import Nest, Program, Stage, Step, Store
from kernelwright.ir.tiling import choose_loops, choose_parallel, steps_of
from kernelwright.records import Machine


def plan(graph: Graph, schedule: Schedule, machine: Machine) -> Program:
    """The program of `graph` under `schedule`. Raises ScheduleError where a decision is unknown or not admitted."""
    choices = Choices(schedule)
    program = _build(graph, schedule, machine, choices)
    unknown = choices.unknown()
    if unknown:
        raise ScheduleError(f"no such decision in this program: {', '.join(unknown)}")
    return program


def knobs(graph: Graph, machine: Machine, decided: Schedule) -> tuple[Knob, ...]:
    """The open decisions under those already `decided` (which are listed too); stale decisions are ignored."""
    choices = Choices(decided)
    _build(graph, decided, machine, choices)
    return choices.asked()


def explore(graph: Graph, schedule: Schedule, machine: Machine) -> tuple[Program, tuple[Knob, ...]]:
    """The program under `schedule` less its stale decisions, and the decisions that are open there: one plan for both."""
    choices = Choices(schedule)
    program = _build(graph, schedule, machine, choices)
    unknown = set(choices.unknown())
    kept = Schedule(tuple(d for d in schedule.decisions if d.name not in unknown))
    return replace(program, schedule=kept), choices.asked()


def tidy(graph: Graph, schedule: Schedule, machine: Machine) -> Schedule:
    """`schedule` without the decisions that its own program never asks for."""
    choices = Choices(schedule)
    _build(graph, schedule, machine, choices)
    unknown = set(choices.unknown())
    return Schedule(tuple(d for d in schedule.decisions if d.name not in unknown))


def _build(graph: Graph, schedule: Schedule, machine: Machine, choices: Choices) -> Program:
    graph, micro = choose_leaves(graph, choices, machine)
    fused, names, inlinable = fuse(graph, choices, machine, micro)
    shaped = split_axes(Reshaped(fused))
    shaped = replace(shaped, graph=absorb_epilogues(shaped.graph, lambda old, new: _rename(names, old, new)))
    shaped = _split_reductions(shaped, choices, machine)
    cut = group(shaped, choices, machine, inlinable)
    tensors = dict(shaped.graph.tensors)
    aliases = dict(shaped.views)
    steps: list[Step] = []
    for step in cut.steps:
        if isinstance(step, Library):
            steps.append(step)
            continue
        family, views = merge_axes(step, tensors, _private(step, cut), aliases)
        tensors.update(views.tensors)
        for view, base in views.bases.items():
            aliases[view] = aliases.get(base, base)
            if base in names:
                names[view] = names[base]
        roots = {n: aliases.get(n, n) for n in tensors}
        steps.append(_nest(family, _Setting(tensors, roots, names, cut.stored, choices, machine)))
    steps, tensors, aliases = _without_needless_views(steps, tensors, aliases)
    buffers, workspace, local = place(tuple(steps), tensors, aliases)
    return Program(graph, schedule, tensors, tuple(steps), buffers, workspace, local)


def fuse(
    graph: Graph, choices: Choices, machine: Machine, micro: frozenset[str]
) -> tuple[Graph, dict[str, str], frozenset[str]]:
    """The rewritten graph; micro-kernel contractions by output -> name of their decisions; maps that could be inlined."""
    names = {name: name for name in micro}
    open_maps: set[str] = set()

    def renamed(old: str, new: str) -> None:
        _rename(names, old, new)

    def views_only(op: Map, uses: list[Op]) -> bool:
        return choices.decided(f"fuse.{op.output}") is None and is_view(op.body) and worth_inlining(op, uses)

    def decide(op: Map, uses: list[Op]) -> bool:
        name = f"fuse.{op.output}"
        if _occurrences(op, uses) * nodes(op.body) > 200:
            return False
        open_maps.add(op.output)
        if choices.decided(name) in ("stage", "store"):
            return False
        if op.output in shared:
            again = graph.tensors[op.output].bytes > machine.l2_bytes // 4 and _row_bytes(op, uses) > machine.l2_bytes // 4
            return choices.word(name, ("inline", "stage", "store"), "inline" if again else "stage") == "inline"
        if choices.decided(name) is None and not worth_inlining(op, uses, reduced):
            return False
        return choices.word(name, ("inline", "stage", "store"), "inline") == "inline"

    graph = squeeze(drop_dead(simplify_all(graph)))
    graph = inline_maps(graph, views_only)
    graph, shared = share_bodies(absorb_epilogues(graph, renamed))
    graph = hoist_divisors(graph)
    reduced = frozenset(op.output for op in graph.ops if isinstance(op, Reduce))
    graph = inline_maps(graph, decide)
    graph = absorb_epilogues(graph, renamed)
    return graph, names, frozenset(open_maps)


def _rename(names: dict[str, str], old: str, new: str) -> None:
    if old in names:
        names[new] = names.pop(old)


def _split_reductions(shaped: Reshaped, choices: Choices, machine: Machine) -> Reshaped:
    """Settle `split.<tensor>` for the reductions that have few results: by default enough parts for all threads."""
    for op in shaped.graph.ops:
        if not isinstance(op, Reduce):
            continue
        results, points, outer = product(op.axes), product(all_axes(op)), outermost(op).extent
        needless = results >= 8 * machine.threads or points < 1 << 15 or outer < 4
        if needless and choices.decided(f"split.{op.output}") is None:
            continue
        target = -(-8 * machine.threads // max(1, results))
        default = 1
        if results < 2 * machine.threads and points >= 1 << 17:
            even = [d for d in range(target, min(outer, 4 * target) + 1) if outer % d == 0]
            default = min(even[0] if even else target, outer)
        tried = [1, *(n for n in (target // 2, target, 2 * target, 4 * target) if 1 < n <= outer)]
        parts = choices.number(f"split.{op.output}", tried, default, 1, max(outer, 1))
        shaped = split_reduction(shaped, op.output, parts)
    return shaped


def _row_bytes(op: Map, uses: list[Op]) -> int:
    """Bytes of one row of `op`: the part that a reduction among its readers reduces."""
    return max((product(u.reduce_axes) * 4 for u in uses if isinstance(u, Reduce)), default=0)


def _occurrences(op: Map, uses: list[Op]) -> int:
    return sum(
        load.tensor == op.output
        for u in uses if not isinstance(u, Library)
        for e in expressions_of(u)
        for load in loads_in(e)
    )  # fmt: skip


def _private(family: Family, cut: Cut) -> Callable[[str], bool]:
    own = {op.output for op in family.ops} - cut.stored
    return lambda name: name in own


@dataclass(frozen=True)
class _Setting:
    """What the nests of one program are made from. `roots`: tensor or view -> whose memory; `names`: see `fuse`."""

    tensors: dict[str, Tensor]
    roots: dict[str, str]
    names: dict[str, str]
    stored: frozenset[str]
    choices: Choices
    machine: Machine


def _nest(family: Family, at: _Setting) -> Nest:
    """One family as a nest."""
    micro = frozenset(op.output for op in family.ops if isinstance(op, Contract) and op.output in at.names)
    name = "n_" + re.sub(r"\W", "_", at.roots[family.root.output])
    vector = None if family.root.output in micro else vector_axis((family.root,), at.tensors, {})
    defaults = steps_of(family, micro, vector, at.tensors, at.machine)
    loops = choose_loops(name, family, defaults, at.choices, at.machine.vector_bytes // 4)
    parallel, chunk, threads = choose_parallel(name, family, loops, at.choices, at.machine)
    steps = {loop.axis: loop.step for loop in loops}
    stages: list[Stage] = []
    for ops in merge_stages(family, micro):
        first = ops[0]
        if isinstance(first, Contract) and first.output in micro:
            leaf = micro_kernel(first, at.names[first.output], at.tensors, at.choices, at.machine, alone=len(family.ops) == 1)
            stages.append(Stage(ops, leaf=leaf))
        else:
            stages.append(_stage(ops, steps, at))
    private = frozenset(op.output for op in family.ops if at.roots[op.output] not in at.stored)
    limits = causal_limits(stages, loops, private, lambda wanted: fresh(wanted, at.tensors))
    if limits is not None:
        stages = with_limits(stages, limits)
        if limits.finite is not None:
            shape = tuple(a.extent for a in limits.finite.axes)
            flag = limits.finite.output
            at.tensors[flag] = Tensor(flag, shape, DType.BOOL, Role.TEMP)
            at.roots[flag] = flag
            stages.insert(0, _stage((limits.finite,), steps, at))
    return Nest(name, loops, parallel, chunk, tuple(stages), threads)


def _stage(ops: tuple[Structured, ...], steps: dict[str, int], at: _Setting) -> Stage:
    """Statements of one domain with their vector axis, loop order, unrolling and stores."""
    label = at.roots[ops[-1].output]
    best = vector_axis(ops, at.tensors, steps)
    axes = dict.fromkeys(a.name for op in ops for a in all_axes(op) if a.extent > 1)
    vector: str | None = at.choices.word(f"vector.{label}", (*axes, "none"), best or "none") if axes else None
    vector = None if vector == "none" else vector
    unroll = at.choices.number(f"unroll.{label}", (1, 2, 4, 8), 1 if vector is None else 4, 1, 16)
    store = Store.NORMAL
    if vector is not None and at.tensors[ops[-1].output].role is Role.OUTPUT and _streams(ops[-1], at.tensors, vector):
        large = at.tensors[ops[-1].output].bytes >= max(at.machine.l3_bytes, at.machine.l2_bytes * 8)
        store = Store(at.choices.word(f"store.{label}", ("normal", "stream"), "stream" if large else "normal"))
    return Stage(ops, vector, loop_order(ops, vector), unroll, store)


def _streams(op: Structured, tensors: dict[str, Tensor], vector: str) -> bool:
    """Whether the stage writes whole vectors to neighbouring addresses."""
    index = tuple(Axis(a.name) for a in op.axes)
    return strides(index, tensors[op.output].shape, vector) == 1 and tensors[op.output].bytes >= 1 << 20


def _without_needless_views(
    steps: list[Step], tensors: dict[str, Tensor], aliases: dict[str, str]
) -> tuple[list[Step], dict[str, Tensor], dict[str, str]]:
    """Where all nests agree on one view of a tensor, the tensor takes its shape and the view goes."""
    used: dict[str, None] = {}
    library: set[str] = set()
    for step in steps:
        if isinstance(step, Library):
            library |= {*inputs_of(step), *outputs_of(step)}
        else:
            used.update((n, None) for stage in step.stages for op in stage.ops for n in (*inputs_of(op), *outputs_of(op)))
    views: dict[str, list[str]] = {}
    for view, base in aliases.items():
        if view in used:
            views.setdefault(base, []).append(view)
    plain = {v[0]: base for base, v in views.items() if len(v) == 1 and base not in used and base not in library}
    out = {n: t for n, t in tensors.items() if n in used or n not in aliases}
    for view, base in plain.items():
        out[base] = replace(out.pop(view), name=base)
    kept = {v: b for v, b in aliases.items() if v in out}
    new_steps: list[Step] = []
    for step in steps:
        if isinstance(step, Nest):
            stages = tuple(replace(s, ops=tuple(rename_tensors(op, plain) for op in s.ops)) for s in step.stages)
            new_steps.append(replace(step, stages=stages))
        else:
            new_steps.append(step)
    return new_steps, out, kept


__all__ = ["fuse", "knobs", "plan", "tidy"]
