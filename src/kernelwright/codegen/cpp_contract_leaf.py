"""The geometry of a packed contraction leaf: its sides, panel layouts, K blocks and the scratch it needs.

What it does: turns a Contract stage with a MicroKernel into a `Leaf`: what each side is, how its panel is laid out, how K is
cut into blocks, how many bytes everything takes. All numbers are for the widest vector, so that they hold for every ISA.
What it does not do: print (see `cpp_contract`, `cpp_contract_pack`, `cpp_contract_finish`, its only callers).
Raises ScheduleError where the leaf does not admit what the schedule asks.

Layouts of a panel, in elements (`depth` = K of a block, or all of K where the panel outlives the block):

| layout | element (row r of the side, k) at | used for |
|---|---|---|
| ROWS | `r * ld + k` | M side whose operand is contiguous along k, or along nothing |
| COLS | `k * ld + r` | M side contiguous along m; N side with several axes or with guards |
| PANELS | `(r / unit) * depth * unit + k * unit + r % unit` | PREPARED M side (unit = mr), N side with one axis (unit = NW) |
| TENSOR | where the tensor has it | DIRECT |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from kernelwright.codegen.cpp_context import Context
from kernelwright.codegen.cpp_index import Linear, guards
from kernelwright.errors import ScheduleError
from kernelwright.ir.expr import Axis, Call, DType, Expr, Fn, Load, axes_in, call, dtype_of, loads_in, walk
from kernelwright.ir.graph import Contract
from kernelwright.ir.tile import Loop, MicroKernel, Packing

LINE = 64  # bytes of a cache line and of the widest vector


class Layout(Enum):
    ROWS = "rows"
    COLS = "cols"
    PANELS = "panels"
    TENSOR = "tensor"


@dataclass(frozen=True)
class Width:
    """Elements of an axis in one tile: the largest number, and whether each tile has exactly that many."""

    most: int
    exact: bool


@dataclass(frozen=True)
class Side:
    """One operand. `axes` are its flattened axes in order (outermost first), `unit` the panel's width for the widest vector.

    `ld` is the row length of a ROWS or COLS panel, `elements` the panel's size for one tile (0 for DIRECT).
    `transpose`: the panel is packed by W x W squares because memory is contiguous along k.
    """

    name: str
    axes: tuple[str, ...]
    expr: Expr
    packing: Packing
    layout: Layout
    unit: int
    ld: int
    elements: int
    transpose: bool = False

    @property
    def hoisted(self) -> bool:
        """Packed before the nest runs."""
        return self.packing in (Packing.AHEAD, Packing.PREPARED)


@dataclass(frozen=True)
class KBlocks:
    """K cut into blocks: axes before `axes[split]` run one by one, that axis in steps of `step`, those after it wholly."""

    axes: tuple[tuple[str, int], ...]
    split: int
    step: int

    @property
    def inner(self) -> int:
        """Flattened elements of the axes after the split."""
        return prod(extent for _, extent in self.axes[self.split + 1 :])

    @property
    def depth(self) -> int:
        """The most elements in one block."""
        return self.step * self.inner

    @property
    def total(self) -> int:
        return prod(extent for _, extent in self.axes)

    @property
    def single(self) -> bool:
        return self.depth >= self.total


@dataclass(frozen=True)
class Leaf:
    """All that the printers of a Contract stage share."""

    context: Context
    op: Contract
    micro: MicroKernel
    dtype: DType  # of the accumulators and panels
    m: Side
    n: Side
    k: KBlocks
    batch: tuple[str, ...]

    @property
    def type(self) -> str:
        return "double" if self.dtype is DType.F64 else "float"

    @property
    def lanes(self) -> int:
        """Lanes of the widest vector."""
        return LINE // self.dtype.bytes

    def width(self, axis: str) -> Width:
        most, exact = self.context.width(axis)
        return Width(most, exact and axis not in limited(self.context))

    def effective(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        """The axes with more than one element in a tile (at least the last one)."""
        return tuple(a for a in axes if self.width(a).most > 1) or axes[-1:]

    def count(self, side: Side) -> Width:
        """Flattened elements of a side in one tile."""
        parts = [self.width(a) for a in side.axes]
        return Width(prod(p.most for p in parts), all(p.exact for p in parts))

    @property
    def direct_output(self) -> bool:
        """True where the micro-kernel may write whole register tiles to the output, partial sums included."""
        op, context = self.op, self.context
        if op.finish is not None or context.tensor(op.output).dtype is not self.dtype or context.stage.store.value == "stream":
            return False
        form = context.offset(op.output, tuple(Axis(a.name) for a in op.axes))
        return self.flat(form, self.n.axes, 1) and self.flat(form, self.m.axes, None)

    def flat(self, form: Linear, axes: tuple[str, ...], step: int | None) -> bool:
        """True where `form` is linear in the flattened position along `axes` (of one tile), with `step` if it is given."""
        strides = [form.coefficient(a) for a in axes]
        inner = None
        for axis, stride in reversed(list(zip(axes, strides, strict=True))):
            width = self.width(axis)
            if width.most == 1:
                continue
            if stride is None:
                return False
            if inner is None:
                if step is not None and stride != step:
                    return False
            elif not inner[2] or stride != inner[0] * inner[1]:
                return False
            inner = (stride, width.most, width.exact)
        return True

    def step(self, form: Linear, axes: tuple[str, ...]) -> int:
        """The step of a flat form along `axes`."""
        return next((form.coefficient(a) or 0 for a in reversed(axes) if self.width(a).most > 1), 1)


def limited(context: Context) -> frozenset[str]:
    """Axes that a limit of the stage shortens."""
    return frozenset(limit.axis for limit in context.stage.limits)


def leaf_of(context: Context) -> Leaf:
    """The leaf of the context's stage."""
    stage = context.stage
    op, micro = stage.contract, stage.leaf
    if op is None or micro is None or len(stage.ops) != 1:
        raise ScheduleError("a contraction leaf needs a stage with exactly one contraction and a micro-kernel")
    tiled = {loop.axis for loop in context.nest.loops} & set(micro.k_axes)
    if tiled:
        raise ScheduleError(f"{op.output}: the reduce axes {sorted(tiled)} of a micro-kernel can't be loops of its nest")
    dtype = op.accumulate if op.accumulate is DType.F64 else DType.F32
    blocks = _blocks(op, micro, limited(context))
    sides = {}
    for name, axes, expr, packing in (
        ("m", micro.m_axes, op.rhs if micro.swap else op.lhs, micro.pack_m),
        ("n", micro.n_axes, op.lhs if micro.swap else op.rhs, micro.pack_n),
    ):
        value = expr if dtype_of(expr) is dtype else call(Fn.CAST, expr, dtype=dtype)
        sides[name] = _side(context, blocks, _Wanted(name, axes, value, packing, micro.mr if name == "m" else micro.nr, dtype))
    batch = tuple(a.name for a in op.axes if a.name not in micro.m_axes + micro.n_axes)
    return Leaf(context, op, micro, dtype, sides["m"], sides["n"], blocks, batch)


def _blocks(op: Contract, micro: MicroKernel, limits: frozenset[str]) -> KBlocks:
    extents = {a.name: a.extent for a in op.reduce_axes}
    axes = tuple((a, extents[a]) for a in micro.k_axes)
    if sorted(extents) != sorted(micro.k_axes):
        raise ScheduleError(f"{op.output}: k_axes {micro.k_axes} are not the reduce axes {sorted(extents)}")
    limit = next((i for i, (a, _) in enumerate(axes) if a in limits), None)
    split = next((i for i in range(len(axes)) if prod(e for _, e in axes[i + 1 :]) <= max(1, micro.kc)), len(axes) - 1)
    if limit is not None and limit != split:
        raise ScheduleError(f"{op.output}: the limited reduce axis {axes[limit][0]} must be the one that kc splits")
    inner = prod(e for _, e in axes[split + 1 :])
    blocks = max(1, -(-axes[split][1] * inner // max(1, micro.kc)))  # as even as possible
    return KBlocks(axes, split, max(1, -(-axes[split][1] // blocks)))


@dataclass(frozen=True)
class _Wanted:
    """What the micro-kernel asks of one side; `unit` in rows (m) or vectors (n)."""

    name: str
    axes: tuple[str, ...]
    expr: Expr
    packing: Packing
    unit: int
    dtype: DType


def _side(context: Context, blocks: KBlocks, wanted: _Wanted) -> Side:
    name, axes, expr, packing = wanted.name, wanted.axes, wanted.expr, wanted.packing
    lanes = LINE // wanted.dtype.bytes
    unit = wanted.unit if name == "m" else wanted.unit * lanes
    if packing is Packing.DIRECT:
        return Side(name, axes, expr, packing, Layout.TENSOR, unit, 0, 0)
    count = prod(context.width(a)[0] for a in axes)
    depth = blocks.depth if packing is Packing.LOCAL else blocks.total
    wide = [a for a in axes if context.width(a)[0] > 1]
    inner_k = next((a for a, extent in reversed(blocks.axes) if extent > 1), blocks.axes[-1][0])
    along_k, along = _contiguous(context, expr, inner_k), _contiguous(context, expr, (wide or axes)[-1])
    plain = len(wide) <= 1 and not conditions(context, expr)
    transpose = False
    if name == "m":
        loose = Layout.COLS if along and not along_k else Layout.ROWS
        layout = Layout.PANELS if packing is Packing.PREPARED else loose
    else:
        layout = Layout.PANELS if plain else Layout.COLS
        transpose = plain and along_k and not along
    if layout is Layout.PANELS:
        return Side(name, axes, expr, packing, layout, unit, 0, _round(count, unit) * depth, transpose)
    rows, cols = (count, depth) if layout is Layout.ROWS else (depth, count)
    ld = _odd_lines(cols + lanes, lanes)
    return Side(name, axes, expr, packing, layout, unit, ld, rows * ld)


def _contiguous(context: Context, expr: Expr, axis: str) -> bool:
    """True where the loads that vary with `axis` are mostly contiguous along it."""
    steps = [context.offset(load.tensor, load.index).coefficient(axis) for load in loads_in(expr) if axis in axes_in(load)]
    return bool(steps) and sum(s == 1 for s in steps) * 2 > len(steps)


def conditions(context: Context, expr: Expr) -> list[Call]:
    """The conditions of the selects in `expr` that guard loads which may be out of bounds."""
    found = []
    for e in walk(expr):
        if isinstance(e, Call) and e.fn is Fn.SELECT and not (context.safe(e.args[1]) and context.safe(e.args[2])):
            condition = e.args[0]
            if isinstance(condition, Call) and condition not in found:
                found.append(condition)
    return found


def peelable(context: Context, expr: Expr) -> bool:
    """True where all guards of `expr` are affine, so that they hold on one interval of each axis."""
    return all(guards(c) is not None for c in conditions(context, expr))


def _round(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _odd_lines(value: int, lanes: int) -> int:
    """`value` rounded up to an odd number of cache lines, so that rows do not fall on the same cache sets."""
    lines = -(-value // lanes)
    return (lines + 1 - lines % 2) * lanes


def side_loops(leaf: Leaf, side: Side) -> tuple[Loop, ...]:
    """The nest's loops that choose a hoisted panel's tile, outermost first (batch axes are not among them)."""
    return tuple(loop for loop in leaf.context.nest.loops if loop.axis in side.axes)


def side_batch(leaf: Leaf, side: Side) -> tuple[str, ...]:
    """The batch axes on which a side's operand depends."""
    return tuple(a for a in leaf.batch if a in axes_in(side.expr))


def direct_load(leaf: Leaf, side: Side) -> tuple[Load, Linear]:
    """The load of a DIRECT operand and its address; raises ScheduleError where the micro-kernel can't read it in place."""
    expr = side.expr
    if not isinstance(expr, Load):
        raise ScheduleError(f"{leaf.op.output}: the {side.name} operand is not a plain load; it can't be read directly")
    form = leaf.context.offset(expr.tensor, expr.index)
    step = 1 if side.name == "n" else None
    k_axes = tuple(a for a, _ in leaf.k.axes)
    opaque = {a for _, e in form.opaque for a in axes_in(e)} & set(side.axes + k_axes)
    if opaque or not leaf.flat(form, side.axes, step) or not leaf.flat(form, k_axes, None):
        raise ScheduleError(f"{leaf.op.output}: the {side.name} side can't read {expr.tensor} directly as it is laid out")
    return expr, form
