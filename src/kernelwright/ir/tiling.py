"""Tiling: the loops of a nest, how many of them threads share, and in which portions.

What it does: turns a family's loopable axes into tile loops with steps seeded from the machine's caches (decisions
`tile.<nest>.<axis>`, `parallel.<nest>`, `chunk.<nest>`, `threads.<nest>`).
What it does not do: order statements or choose leaves. Called by `ir.plan`.
"""

from __future__ import annotations

from kernelwright.ir.expr import loads_in
from kernelwright.ir.family import Family
from kernelwright.ir.fuse import cost, sides
from kernelwright.ir.graph import AxisDef, Contract, Map, Structured, Tensor, all_axes, expressions_of
from kernelwright.ir.knobs import Choices
from kernelwright.ir.leaf import Roles, needs_all_rows, product, register_tile, roles
from kernelwright.ir.tile import Loop
from kernelwright.records import Machine

Steps = dict[str, int]
MOST_ROWS = 512  # of a tile whose N side is packed with it (docs/adr/0002-contraction-leaf.md)


def ceil(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


def steps_of(
    family: Family, micro: frozenset[str], vector: str | None, tensors: dict[str, Tensor], machine: Machine
) -> Steps:
    """The default step of each loopable axis."""
    contracts = [op for op in family.ops if isinstance(op, Contract) and op.output in micro]
    if contracts:
        return _contract_steps(family, contracts, tensors, machine)
    return _row_steps(family, vector, tensors, machine)


def _row_steps(family: Family, vector: str | None, tensors: dict[str, Tensor], machine: Machine) -> Steps:
    """One row a tile, rows joined where they are short, a long contiguous axis cut so that a tile fits half of L2."""
    lanes = machine.vector_bytes // 4
    steps = {a.name: 1 for a in family.loops}
    loops = {a.name: a.extent for a in family.loops}
    inner = _tile_bytes(family, steps, tensors)
    budget = machine.l2_bytes // 4
    parallel = 1
    for extent in loops.values():
        parallel *= extent
    if vector in loops and vector is not None:
        extent = loops[vector]
        parallel //= max(extent, 1)
        step = min(16384, max(16 * lanes, budget // max(inner, 1)))
        while step > 16 * lanes and parallel * ceil(extent, step) < 4 * machine.threads:
            step //= 2
        even = ceil(extent, max(1, ceil(extent, step)))
        unit = 4 * lanes if even >= 16 * lanes else lanes
        steps[vector] = max(1, min(extent, ceil(even, unit) * unit))
    for a in reversed(family.loops):
        if a.name == vector:
            continue
        size = _tile_bytes(family, steps, tensors)
        tiles = _tiles(loops, steps)
        rows = min(a.extent, max(1, 16384 // max(size, 1)), max(1, tiles // (8 * machine.threads)))
        steps[a.name] = max(1, rows)
        if rows < a.extent:
            break
    return steps


def _contract_steps(family: Family, contracts: list[Contract], tensors: dict[str, Tensor], machine: Machine) -> Steps:
    rows, vectors = register_tile(machine)
    columns = vectors * machine.vector_bytes // 4
    steps = {a.name: 1 for a in family.loops}
    loops = {a.name: a.extent for a in family.loops}
    found = roles(contracts[-1])
    assert found is not None
    local = len(family.ops) > 1
    m_target, n_target = rows * (16 if rows < 8 else 10), columns * 16
    if not local and needs_all_rows(found, tensors):
        m_target = max(m_target, min(product(found.m), MOST_ROWS))
    while True:
        _fill(steps, found, loops, (m_target, rows), (n_target, columns))
        few = _tiles(loops, steps) < 4 * machine.threads
        large = local and _local_bytes(family, steps, tensors) > machine.l2_bytes // 2
        if not (few or large) or (m_target <= 2 * rows and n_target <= 2 * columns):
            return steps
        if large or m_target // rows >= n_target // columns or n_target <= 2 * columns:
            m_target = max(2 * rows, m_target // 2)
            if large and m_target == 2 * rows:
                n_target = max(2 * columns, n_target // 2)
        else:
            n_target = max(2 * columns, n_target // 2)


def _fill(steps: Steps, found: Roles, loops: dict[str, int], m: tuple[int, int], n: tuple[int, int]) -> None:
    for axes, (target, unit) in ((found.m, m), (found.n, n)):
        left = target
        for a in reversed(axes):
            if a.name not in loops:
                left = max(1, left // max(a.extent, 1))
                continue
            if a.extent <= left:
                steps[a.name] = a.extent
            else:
                even = -(-a.extent // -(-a.extent // left))
                steps[a.name] = min(a.extent, -(-even // unit) * unit) if left >= unit and a is axes[-1] else even
            left = max(1, left // max(a.extent, 1))


def _tiles(loops: dict[str, int], steps: Steps) -> int:
    n = 1
    for axis, extent in loops.items():
        n *= -(-extent // max(1, steps[axis]))
    return n


def _tile_points(op: Structured, steps: Steps, axes: tuple[AxisDef, ...]) -> int:
    n = 1
    for a in axes:
        n *= min(a.extent, steps.get(a.name, a.extent))
    return n


def _tile_bytes(family: Family, steps: Steps, tensors: dict[str, Tensor]) -> int:
    """Bytes that one tile reads and writes, each tensor counted once by its largest use."""
    sizes: dict[str, int] = {}
    for op in family.ops:
        points = _tile_points(op, steps, op.axes) * tensors[op.output].dtype.bytes
        sizes[op.output] = max(sizes.get(op.output, 0), points)
        whole = _tile_points(op, steps, all_axes(op))
        for load in (load for e in expressions_of(op) for load in loads_in(e)):
            used = min(whole, tensors[load.tensor].size) * load.dtype.bytes
            sizes[load.tensor] = max(sizes.get(load.tensor, 0), used)
    return sum(sizes.values())


def _local_bytes(family: Family, steps: Steps, tensors: dict[str, Tensor]) -> int:
    """Bytes of the tile-local results; element-wise ones work in place."""
    made = [op for op in family.ops[:-1] if not isinstance(op, Map)]
    return sum(_tile_points(op, steps, op.axes) * tensors[op.output].dtype.bytes for op in made)


def choose_loops(nest: str, family: Family, defaults: Steps, choices: Choices, lanes: int) -> tuple[Loop, ...]:
    """The tile loops, outermost first (batch axes of contractions lead); an axis that one tile covers is no loop."""
    loops: list[Loop] = []
    batch = {a.name for op in family.ops if isinstance(op, Contract) for a in sides(op)[2]}
    for a in sorted(family.loops, key=lambda a: a.name not in batch):
        if a.extent <= 1:
            continue
        step = min(a.extent, max(1, defaults[a.name]))
        tried = {max(1, step // 4), max(1, step // 2), min(a.extent, step * 2), min(a.extent, step * 4), a.extent}
        tried.add(1 if step == 1 else min(a.extent, lanes))
        step = choices.number(f"tile.{nest}.{a.name}", sorted(tried), step, 1, a.extent)
        if step < a.extent:
            loops.append(Loop(a.name, a.extent, step))
    return tuple(loops)


def choose_parallel(
    nest: str, family: Family, loops: tuple[Loop, ...], choices: Choices, machine: Machine
) -> tuple[int, int, int]:
    """(parallel, chunk, threads): all loops are shared by default, in portions of about 20 microseconds of work."""
    tiny = work(family) < 1 << 16
    threads = choices.number(f"threads.{nest}", (0, 1), 1 if tiny or not loops else 0, 0, 1)
    if not loops:
        return 0, 1, threads
    parallel = choices.number(f"parallel.{nest}", range(1, len(loops) + 1), len(loops), 0, len(loops))
    tiles = 1
    for loop in loops[:parallel]:
        tiles *= -(-loop.extent // loop.step)
    per_tile = max(1.0, work(family) / max(1, tiles))
    chunk = int(max(1, min((1 << 17) / per_tile, tiles // (4 * machine.threads))))
    return parallel, choices.number(f"chunk.{nest}", (1, 2, 4, 8, 16, 32, 64), chunk), threads


def work(family: Family) -> float:
    """A rough count of operations and element accesses."""
    total = 0.0
    for op in family.ops:
        per = sum(cost(e) + len(loads_in(e)) for e in expressions_of(op)) + 1.0
        n = 1.0
        for a in all_axes(op):
            n *= a.extent
        total += n * per
    return total
