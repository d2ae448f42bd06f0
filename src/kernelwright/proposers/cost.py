"""The analytic cost of a tile program on a measured machine: which schedule is worth compiling.

What it does: `estimate(program, machine)` gives seconds from first principles: bytes over the bandwidth of the memory that
holds them, vector operations over the issue rate, tiles over threads, fork/join. It ranks; it is never reported as a time.
What it does not do: run anything, or learn (the search scales it by what it measured). Called by `proposers.space`.

Sources: the roofline model (Williams, Waterman, Patterson, CACM 2009) with measured roofs; issue costs of the vector functions
are the operation counts of our own prelude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwright.ir.expr import Call, Expr, Fn, Load, axes_in, children
from kernelwright.ir.graph import Contract, Library, Map, Reduce, Role, Scan, Structured, all_axes, expressions_of, inputs_of
from kernelwright.ir.tile import Loop, MicroKernel, Nest, Packing, Place, Program, Stage, Store
from kernelwright.records import Bandwidth, Machine

# Vector instructions a call, as our prelude needs them for f32; what is absent costs one.
_ISSUE = {
    Fn.DIV: 5.0, Fn.SQRT: 6.0, Fn.RSQRT: 9.0, Fn.RECIPROCAL: 5.0, Fn.EXP: 14.0, Fn.EXPM1: 20.0, Fn.LOG: 20.0, Fn.LOG1P: 24.0,
    Fn.LOG2: 20.0, Fn.TANH: 24.0, Fn.SIGMOID: 22.0, Fn.ERF: 28.0, Fn.SIN: 24.0, Fn.COS: 24.0, Fn.POW: 50.0, Fn.MOD: 8.0,
    Fn.FMOD: 8.0, Fn.FLOORDIV: 8.0, Fn.MIN: 2.0, Fn.MAX: 2.0, Fn.CAST: 1.0, Fn.ATAN2: 40.0,
}  # fmt: skip

_FMA_LATENCY = 4.0  # cycles, Zen 2-4 and Skylake-X to Sapphire Rapids
_FMA_PER_CYCLE = 2.0
_CACHE_SPEEDUP = 4.0  # L2 traffic against the last level's measured bandwidth
_TILE_OVERHEAD_CYCLES = 60.0


@dataclass(frozen=True)
class StepCost:
    """One step's estimate in seconds; `bound` is "memory", "compute" or "overhead"."""

    name: str
    seconds: float
    memory_seconds: float
    compute_seconds: float
    bytes_moved: float
    flops: float
    bound: str


@dataclass(frozen=True)
class Cost:
    """The sum over steps. `unknown` counts library steps, which the model leaves at their bytes over bandwidth."""

    seconds: float
    steps: tuple[StepCost, ...]
    unknown: int


def estimate(program: Program, machine: Machine) -> Cost:
    """Seconds that `program` is expected to take on `machine`."""
    steps = tuple(
        _library_cost(step, program, machine) if isinstance(step, Library) else _nest_cost(step, program, machine)
        for step in program.steps
    )
    return Cost(sum(s.seconds for s in steps), steps, sum(isinstance(s, Library) for s in program.steps))


def compulsory_bytes(program: Program) -> int:
    """Bytes of each input, weight and constant that the graph reads and of each output, counted once."""
    graph = program.graph
    read = {name for op in graph.ops for name in inputs_of(op)}
    names = {n for n in read if graph.tensors[n].role in (Role.INPUT, Role.WEIGHT, Role.CONSTANT)} | set(graph.outputs)
    return sum(graph.tensors[n].bytes for n in names)


def flops(program: Program) -> float:
    """Arithmetic of the graph as captured: 2 a multiply-add of contractions, 1 a function call of every other element."""
    total = 0.0
    for op in program.graph.ops:
        if isinstance(op, Contract):
            total += _contract_flops(op)
        elif not isinstance(op, Library):
            points = float(math.prod(a.extent for a in all_axes(op)))
            total += points * (sum(_calls(e) for e in _per_point(op)) + isinstance(op, Reduce | Scan))
    return total


def _calls(expr: Expr) -> int:
    if isinstance(expr, Load):
        return 0  # index arithmetic is not the task's
    own = isinstance(expr, Call) and expr.fn not in (Fn.CAST, Fn.SELECT)
    return own + sum(_calls(child) for child in children(expr))


def _library_cost(step: Library, program: Program, machine: Machine) -> StepCost:
    moved = float(sum(program.tensors[n].bytes for n in step.outputs if n is not None)) * 2.0
    seconds = moved / bandwidth(machine, moved, stream=False)
    return StepCost(step.call.target, seconds, seconds, 0.0, moved, 0.0, "memory")


def _nest_cost(nest: Nest, program: Program, machine: Machine) -> StepCost:
    tiles = _tiles(nest.loops)
    shared = _tiles(nest.loops[: nest.parallel])
    threads = min(nest.threads or machine.threads, machine.threads)
    grabs = math.ceil(shared / max(1, nest.chunk))
    speedup = shared / (math.ceil(grabs / min(threads, grabs)) * max(1, nest.chunk)) if shared > 1 else 1.0
    speedup = max(1.0, min(speedup, threads))

    cycle = 2.0 * _lanes(machine) * _FMA_PER_CYCLE / (machine.fma_gflops_core * 1e9)
    cycles = sum(_stage_cycles(stage, nest, machine) for stage in nest.stages) + tiles * _TILE_OVERHEAD_CYCLES
    compute = cycles * cycle / speedup
    moved, streaming = _traffic(nest, program, machine)
    memory = moved / bandwidth(machine, moved, streaming) * (threads / speedup if speedup < threads * 0.75 else 1.0)
    fork = machine.fork_join_us * 1e-6 if speedup > 1.0 else 0.0
    seconds = max(compute, memory) + 0.25 * min(compute, memory) + fork
    bound = "overhead" if fork > 0.5 * seconds else "compute" if compute > memory else "memory"
    flops = sum(_contract_flops(op) for stage in nest.stages for op in stage.ops if isinstance(op, Contract))
    return StepCost(nest.name, seconds, memory, compute, moved, flops, bound)


def _tiles(loops: tuple[Loop, ...]) -> int:
    return math.prod(max(1, math.ceil(loop.extent / loop.step)) for loop in loops)


def _stage_cycles(stage: Stage, nest: Nest, machine: Machine) -> float:
    """Issue cycles of one stage over the whole nest on one core."""
    contract = stage.contract
    if contract is not None and stage.leaf is not None:
        return _leaf_cycles(contract, stage.leaf, nest, machine) * _limit_share(stage)
    lanes = float(_lanes(machine))
    total = 0.0
    for op in stage.ops:
        points = _points(op, nest)
        width = lanes if stage.vector is not None else 1.0
        issue = sum(_issue(expr, stage.vector, lanes) for expr in _per_point(op))
        vectors = points / width
        reducing = isinstance(op, Reduce) and stage.vector in {a.name for a in op.reduce_axes}
        if reducing:
            issue = max(issue + 1.0, _FMA_LATENCY * _FMA_PER_CYCLE / max(1, stage.unroll))
        if isinstance(op, Scan):
            issue += 14.0 if stage.vector == op.axis else 2.0
        total += vectors * issue / _FMA_PER_CYCLE
    return total * _limit_share(stage)


def _leaf_cycles(op: Contract, leaf: MicroKernel, nest: Nest, machine: Machine) -> float:
    lanes = _lanes(machine)
    extents = {a.name: a.extent for a in all_axes(op)}
    steps = {loop.axis: min(loop.step, loop.extent) for loop in nest.loops}
    m = math.prod(steps.get(a, extents[a]) for a in leaf.m_axes)
    n = math.prod(steps.get(a, extents[a]) for a in leaf.n_axes)
    k = math.prod(extents[a] for a in leaf.k_axes)
    registers = leaf.mr * leaf.nr
    waste = (math.ceil(m / leaf.mr) * leaf.mr / m) * (math.ceil(n / (leaf.nr * lanes)) * leaf.nr * lanes / n)
    latency = max(1.0, _FMA_LATENCY * _FMA_PER_CYCLE / registers)
    loads = max(1.0, (leaf.mr + leaf.nr) / registers)  # two loads a cycle against two FMA a cycle
    spill = 1.5 if registers + leaf.nr + 1 > _registers(machine) else 1.0
    start = 1.0 + 24.0 / max(1, min(k, leaf.kc))  # prologue and finish of each register tile
    fma = _contract_flops(op) / 2.0 / lanes / _FMA_PER_CYCLE * waste * latency * loads * spill * start
    panel = (min(k, leaf.kc) * leaf.nr * lanes) * 4.0
    if panel > machine.l1_bytes * 0.75:
        fma *= 1.08
    if min(k, leaf.kc) * min(m, 4096) * 4.0 > machine.l2_bytes * 0.75:
        fma *= 1.10
    total = _contract_flops(op) / 2.0
    packing = 0.0
    if leaf.pack_n is Packing.LOCAL:
        packing += total / m
    if leaf.pack_m is Packing.LOCAL:
        packing += total / n
    return fma + packing * 0.5


def _contract_flops(op: Contract) -> float:
    return 2.0 * math.prod(a.extent for a in all_axes(op))


def _limit_share(stage: Stage) -> float:
    """A limit stands for a causal triangle: on average half the work remains."""
    return 0.55 if stage.limits else 1.0


def _points(op: Structured, nest: Nest) -> float:
    """How often the body runs over the whole nest: its own domain times the loops that it does not share."""
    names = {a.name for a in all_axes(op)}
    repeats = math.prod(math.ceil(loop.extent / loop.step) for loop in nest.loops if loop.axis not in names)
    return float(math.prod(a.extent for a in all_axes(op)) * repeats)


def _per_point(op: Structured) -> tuple[Expr, ...]:
    return (op.body,) if isinstance(op, Map | Reduce | Scan) else expressions_of(op)


def _issue(expr: Expr, vector: str | None, lanes: float) -> float:
    """Vector instructions to evaluate `expr` once along `vector`; parts that do not vary along it are hoisted and free."""
    if vector is not None and vector not in axes_in(expr):
        return 0.0
    own = 0.0
    if isinstance(expr, Load):
        last = expr.index[-1] if expr.index else None
        contiguous = last is not None and _unit(last, vector) and not any(vector in axes_in(i) for i in expr.index[:-1])
        return 1.0 if contiguous or vector is None else 2.0 * lanes
    if isinstance(expr, Call):
        own = _ISSUE.get(expr.fn, 1.0)
    return own + sum(_issue(child, vector, lanes) for child in children(expr))


def _unit(index: Expr, vector: str | None) -> bool:
    """True where the index moves by one with the vector axis: the axis itself, or a sum in which it stands bare."""
    if isinstance(index, Call) and index.fn in (Fn.ADD, Fn.SUB):
        first, second = index.args
        return _unit(first, vector) or (index.fn is Fn.ADD and _unit(second, vector))
    return axes_in(index) == {vector} and not children(index)


def _traffic(nest: Nest, program: Program, machine: Machine) -> tuple[float, bool]:
    """Bytes that the nest moves to and from memory beyond L2, and whether its stores are non-temporal."""
    reads: dict[str, int] = {}
    writes: dict[str, float] = {}
    streaming = False
    for stage in nest.stages:
        for op in stage.ops:
            for expr in expressions_of(op):
                for name in {e.tensor for e in _loads(expr)}:
                    if program.buffers[name].place in (Place.ARGUMENT, Place.WORKSPACE):
                        reads[name] = reads.get(name, 0) + 1
            if program.buffers[op.output].place in (Place.ARGUMENT, Place.WORKSPACE):
                streaming = streaming or stage.store is Store.STREAM
                factor = 1.0 if stage.store is Store.STREAM else 1.5  # an ordinary store reads the line first
                writes[op.output] = program.tensors[op.output].bytes * factor
    tiles = _tiles(nest.loops)
    moved = 0.0
    for name, passes in reads.items():
        size = float(program.tensors[name].bytes)
        fits = size / max(1, tiles) <= machine.l2_bytes * 0.6
        moved += size * (1.0 + (passes - 1) / _CACHE_SPEEDUP if fits else passes)
    return moved + sum(writes.values()), streaming


def _loads(expr: Expr) -> list[Load]:
    found = [expr] if isinstance(expr, Load) else []
    for child in children(expr):
        found += _loads(child)
    return found


def bandwidth(machine: Machine, moved: float, stream: bool) -> float:
    """Measured bytes a second (read plus write) for `moved` bytes in all, from the nearest measured buffer size."""
    table: tuple[Bandwidth, ...] = machine.bandwidth
    nearest = min(table, key=lambda b: abs(math.log(max(1.0, moved / 2.0) / b.bytes)))
    return max(nearest.stream_gbps if stream else nearest.copy_gbps, 0.1) * 1e9


def _lanes(machine: Machine) -> int:
    return max(1, machine.vector_bytes // 4)


def _registers(machine: Machine) -> int:
    return 32 if machine.isa == "avx512" else 16
