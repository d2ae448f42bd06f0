"""The packed register-tile leaf of a Contract stage: matrix products, convolutions and attention's two contractions.

What it does: prints, for one tile of a nest, the K blocks, the packing of operands, the loops over register tiles (the
micro-kernel `kw_dot` of prelude/contract.cpp) and the finish; says how much scratch and how large panels it needs; prints the
packing that runs ahead (once a call, or once at load).
What it does not do: choose tiles, kc, packing (`ir.plan` does; docs/adr/0002-contraction-leaf.md gives what was measured).
Called by `cpp`; see `cpp_context` for the names in scope. Raises ScheduleError where operand and packing do not fit.

    for each block of K:                      kc flattened elements
      pack N, pack M                          where they are LOCAL
      for each panel of N, of M:              nr vectors, mr rows
        c (+)= a * b                          kw_dot
        in the last block: finish(c)          from the partial tile, which is still in L1
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kernelwright.codegen.cpp_context import Context, Panel, Used, identifier
from kernelwright.codegen.cpp_contract_finish import print_finish
from kernelwright.codegen.cpp_contract_leaf import (
    LINE,
    Layout,
    Leaf,
    Side,
    direct_load,
    leaf_of,
    side_batch,
    side_loops,
)
from kernelwright.codegen.cpp_contract_pack import Packing as Pack
from kernelwright.codegen.cpp_contract_pack import Span, block, indent, print_pack, size_of
from kernelwright.codegen.cpp_expr import Emitter, Scope
from kernelwright.codegen.cpp_index import Linear
from kernelwright.errors import ScheduleError
from kernelwright.ir.expr import Axis, loads_in
from kernelwright.ir.graph import Role
from kernelwright.ir.tile import Nest, Packing, Place, Program, Stage


def print_contract_stage(stage: Stage, nest: Nest, context: Context) -> list[str]:
    """The statements of one tile."""
    leaf = leaf_of(context)
    spans = _spans(leaf)
    lines = _declarations(leaf, spans)
    body = _k_blocks(leaf, spans, frozenset(leaf.batch))
    for axis in reversed(leaf.batch):
        span = spans[axis]
        body = block(f"for (long {span.name} = {span.low}; {span.name} < {span.high}; ++{span.name})", body)
    return [_comment(leaf), *lines, *body]


def scratch_bytes(stage: Stage, nest: Nest, program: Program) -> int:
    """Bytes of `scratch` for the widest ISA."""
    leaf = leaf_of(Context(program, nest, stage, Used()))
    return sum(size for _, size in _scratch(leaf))


def packed_layout(stage: Stage, nest: Nest, program: Program) -> tuple[Panel, ...]:
    """The panels that are packed before the nest runs. A slice is one tile of the side (and one point of its batch axes)."""
    leaf = leaf_of(Context(program, nest, stage, Used()))
    panels = []
    for side in (leaf.m, leaf.n):
        if side.hoisted:
            slices = prod(count for _, count in _slices(leaf, side))
            panels.append(Panel(side.name, side.packing, slices * _tile_elements(leaf, side) * leaf.dtype.bytes, slices))
    return tuple(panels)


def print_prepare(stage: Stage, nest: Nest, context: Context, panel: Panel) -> list[str]:
    """The statements that pack slice `slice` of a panel."""
    leaf = leaf_of(context)
    side = leaf.m if panel.side == "m" else leaf.n
    _check_hoisted(leaf, side)
    lines = [
        f"// pack the {side.name.upper()} side of {leaf.op.output}: {_layout_words(leaf, side)}",
        *_constants(leaf),
        "long rest = slice;",
    ]
    declared = []
    for axis, count in reversed(_slices(leaf, side)):
        name = identifier(axis)
        step = next((loop.step for loop in side_loops(leaf, side) if loop.axis == axis), None)
        if step is None:
            declared += [f"const long {name} = rest % {count};"]
        else:
            extent = leaf.context.extent(axis)
            least = context.use("kw_least")
            declared += [f"const long {name}_0 = rest % {count} * {step}, {name}_end = {least}({name}_0 + {step}, {extent});"]
        declared += [f"rest /= {count};"]
    rows = tuple(Span(a, *leaf.context.bounds(a), leaf.context.width(a)[0]) for a in side.axes)
    k = tuple(Span(a, "0", str(extent), extent) for a, extent in leaf.k.axes)
    to = context.fresh("panel_")
    base = f"{leaf.type}* {to} = ({leaf.type}*){context.panels[side.name]} + slice * {_tile_elements(leaf, side)};"
    pack = Pack(leaf, side, rows, k, to, leaf.k.total, frozenset(side_batch(leaf, side)))
    return [*lines, *declared[:-1], base, *print_pack(pack)]


print_ahead = print_prepare


# -- sizes ------------------------------------------------------------------------------------------------------------


def _tile_elements(leaf: Leaf, side: Side) -> int:
    """Elements of one slice of a hoisted panel, whole cache lines."""
    return -(-side.elements // leaf.lanes) * leaf.lanes


def _slices(leaf: Leaf, side: Side) -> list[tuple[str, int]]:
    """(axis, number of tiles) of what numbers the slices, outermost first."""
    batch = [(a, leaf.context.extent(a)) for a in side_batch(leaf, side)]
    return batch + [(loop.axis, -(-leaf.context.extent(loop.axis) // loop.step)) for loop in side_loops(leaf, side)]


def _scratch(leaf: Leaf) -> list[tuple[str, int]]:
    """(name, bytes) of the parts of `scratch`, in order."""
    columns = leaf.micro.nr * leaf.lanes
    rows = -(-leaf.count(leaf.m).most // leaf.micro.mr) * leaf.micro.mr
    parts = [(f"{s.name}_panel", s.elements) for s in (leaf.m, leaf.n) if s.packing is Packing.LOCAL]
    if _has_tail(leaf):
        parts.append(("n_tail", leaf.k.depth * columns))
    if not leaf.k.single:
        across = 1 if leaf.direct_output else -(-leaf.count(leaf.n).most // columns)
        parts.append(("partial", rows * columns * across))
    else:
        parts.append(("partial", leaf.micro.mr * columns))
    return [(name, -(-elements * leaf.dtype.bytes // LINE) * LINE) for name, elements in parts]


def _has_tail(leaf: Leaf) -> bool:
    """True where a DIRECT N side may end within a vector, so that its last columns are copied first."""
    count = leaf.count(leaf.n)
    return leaf.n.packing is Packing.DIRECT and (not count.exact or count.most % leaf.lanes != 0)


def _check_hoisted(leaf: Leaf, side: Side) -> None:
    for load in loads_in(side.expr):
        place, role = leaf.context.buffer(load.tensor).place, leaf.context.tensor(load.tensor).role
        if place not in (Place.ARGUMENT, Place.WORKSPACE):
            raise ScheduleError(f"{leaf.op.output}: {load.tensor} does not exist before the nest; it can't be packed ahead")
        if side.packing is Packing.PREPARED and role not in (Role.WEIGHT, Role.CONSTANT):
            raise ScheduleError(f"{leaf.op.output}: {load.tensor} is no weight; the {side.name} side can't be packed at load")
    for limit in leaf.context.stage.limits:
        if limit.axis in side.axes and limit.axis != leaf.effective(side.axes)[0]:
            raise ScheduleError(f"{leaf.op.output}: a limit on the inner axis {limit.axis} does not fit a side packed ahead")


# -- one tile ---------------------------------------------------------------------------------------------------------


def _comment(leaf: Leaf) -> str:
    micro, k = leaf.micro, leaf.k
    blocks = "in one block" if k.single else f"in blocks of {k.depth}"
    m, n = ", ".join(micro.m_axes), ", ".join(micro.n_axes)
    return (
        f"// {leaf.op.output}: M = ({m}) {leaf.count(leaf.m).most}, N = ({n}) {leaf.count(leaf.n).most}, "
        f"K = ({', '.join(a for a, _ in k.axes)}) {k.total} {blocks}; register tile {micro.mr} x {micro.nr} vectors; "
        f"M {micro.pack_m.value}, N {micro.pack_n.value}"
    )


def _layout_words(leaf: Leaf, side: Side) -> str:
    if side.layout is Layout.PANELS:
        unit = "MR rows" if side.name == "m" else "NW columns"
        return f"panels of {unit}, [panel][k][{unit.split(maxsplit=1)[0]}]"
    return f"[{'row][k' if side.layout is Layout.ROWS else 'k][row'}], rows of {side.ld}"


def _constants(leaf: Leaf) -> list[str]:
    return [
        f"constexpr int W = kw_bytes / {leaf.dtype.bytes}, MR = {leaf.micro.mr}, NR = {leaf.micro.nr}, NW = NR * W;",
        "(void)MR, (void)NW;",
    ]


def _spans(leaf: Leaf) -> dict[str, Span]:
    """The range of every output axis and reduce axis in this tile, limits included."""
    context = leaf.context
    limits = {limit.axis for limit in context.stage.limits}
    spans = {}
    for axis in (*leaf.micro.m_axes, *leaf.micro.n_axes, *leaf.batch, *leaf.micro.k_axes):
        low, high = context.bounds(axis)
        spans[axis] = Span(axis, low, f"{identifier(axis)}_stop" if axis in limits else high, context.width(axis)[0])
    return spans


def _declarations(leaf: Leaf, spans: dict[str, Span]) -> list[str]:
    """Constants, limits, the sizes of the tile and the scratch's parts."""
    context = leaf.context
    lines = _constants(leaf)
    least = context.use("kw_least")
    for limit in context.stage.limits:
        name = identifier(limit.axis)
        emitter = Emitter(context, [Scope(lines, frozenset(leaf.batch))])
        emitter.rename = {loop.axis: f"{identifier(loop.axis)}_0" for loop in context.nest.loops}
        low, high = context.bounds(limit.axis)
        upper = emitter.value(limit.upper).text
        if limit.when is not None:
            upper = f"({emitter.value(limit.when).text} ? (long)({upper}) : (long){high})"
        lines.append(f"const long {name}_stop = {low} > {upper} ? {low} : {least}({high}, {upper});")
    m, n = (tuple(spans[a] for a in side.axes) for side in (leaf.m, leaf.n))
    lines.append(f"const long m_count = {size_of(m)}, n_count = {size_of(n)};")
    offset = 0
    for name, size in _scratch(leaf):
        at = f" + {offset}" if offset else ""
        lines.append(f"{leaf.type}* const {name} = ({leaf.type}*)(scratch{at});")
        offset += size
    return lines


def _k_blocks(leaf: Leaf, spans: dict[str, Span], scope: frozenset[str]) -> list[str]:
    """The loops over blocks of K around the packing and the register tiles."""
    k = leaf.k
    axes = [a for a, _ in k.axes]
    outer, inner = [spans[a] for a in axes[: k.split]], [spans[a] for a in axes[k.split + 1 :]]
    span = spans[axes[k.split]]
    name = span.name
    limit = axes[k.split] in {limit.axis for limit in leaf.context.stage.limits}
    if k.single:
        head = ["constexpr bool first = true;", f"const long k_at = 0, k_count = {size_of((span, *inner))};"]
        return ["{", *indent([*head, "(void)k_at;", *_pack_and_multiply(leaf, spans, (*outer, span, *inner), scope)]), "}"]
    block_span = Span(span.axis, f"{name}_block", f"{name}_last", k.step)
    least = leaf.context.use("kw_least")
    position = "0"
    for axis, extent in k.axes[: k.split]:
        position = identifier(axis) if position == "0" else f"({position} * {extent} + {identifier(axis)})"
    start = f"{name}_block" if position == "0" else f"({position} * {k.axes[k.split][1]} + {name}_block)"
    at_start = " && ".join([f"{s.name} == 0" for s in outer] + [f"{name}_block == 0"])
    at_end = " && ".join([f"{s.name} == {s.high} - 1" for s in outer] + [f"{name}_last >= {span.high}"])
    body = [
        f"const long {name}_last = {least}({name}_block + {k.step}, {span.high});",
        f"const long k_at = {start}{f' * {k.inner}' if k.inner > 1 else ''}, k_count = {size_of((block_span, *inner))};",
        "(void)k_at;",
        f"const bool first = {at_start}, last = {at_end};",
        *_pack_and_multiply(leaf, spans, (block_span, *inner), scope | {s.axis for s in outer}),
    ]
    more = f"{name}_block == 0 || " if limit else ""
    lines = block(f"for (long {name}_block = 0; {more}{name}_block < {span.high}; {name}_block += {k.step})", body)
    for s in reversed(outer):
        lines = block(f"for (long {s.name} = 0; {s.name} < {s.high}; ++{s.name})", lines)
    return lines


def _pack_and_multiply(leaf: Leaf, spans: dict[str, Span], k: tuple[Span, ...], scope: frozenset[str]) -> list[str]:
    """One block of K: LOCAL panels are filled, then all register tiles take their part of the sum."""
    lines = []
    for side in (leaf.n, leaf.m):
        if side.packing is Packing.LOCAL:
            rows = tuple(spans[a] for a in side.axes)
            pack = Pack(leaf, side, rows, k, f"{side.name}_panel", leaf.k.depth, scope)
            lines += [f"// pack {side.name.upper()}: {_layout_words(leaf, side)}", "{", *indent(print_pack(pack)), "}"]
    return [*lines, *_tiles(leaf, spans, k, scope)]


def _tiles(leaf: Leaf, spans: dict[str, Span], k: tuple[Span, ...], scope: frozenset[str]) -> list[str]:
    """The loops over register tiles: panels of N outside (one stays in L1), panels of M inside."""
    context, kind = leaf.context, leaf.type
    least, dot = context.use("kw_least"), context.use("kw_dot_rows")
    m, n = (tuple(spans[a] for a in side.axes) for side in (leaf.m, leaf.n))
    lines: list[str] = []
    here = Scope(lines, scope)
    a, b = _operand(leaf, leaf.m, (*m, *k), here), _operand(leaf, leaf.n, (*n, *k), here)
    in_n = [f"const long n_cols = {least}(NW, n_count - n_at);", f"const {kind}* n_from = {b.at};", f"long n_step = {b.k};"]
    if _has_tail(leaf):
        copy = f"{context.use('kw_copy_tail')}<{kind}, W>(k_count, n_from, n_step, n_cols, n_tail, NW);"
        in_n += block("if (n_cols % W != 0)", [copy, "n_from = n_tail;", "n_step = NW;"])
    across = not leaf.direct_output and not leaf.k.single
    rows = -(-leaf.count(leaf.m).most // leaf.micro.mr) * leaf.micro.mr
    partial = "partial" + (f" + n_at * {rows}" if across else "") + ("" if leaf.k.single else " + m_at * NW")
    finish = print_finish(leaf, m, n, scope)
    in_m = [f"const long m_rows = {least}(MR, m_count - m_at);", f"{kind}* tile = {partial};", "long tile_row = NW;"]
    when = [] if leaf.k.single else ["last"]
    if leaf.direct_output:
        output, row = _output(leaf, spans, here)
        in_m += block("if (n_cols % W == 0)", [f"tile = {output};", f"tile_row = {row};"])
        when.append("n_cols % W != 0")
    sizes = ", ".join(str(r) for r in _row_counts(leaf))
    left, right = f"{a.at}, {a.row}, {a.k}", "n_from, n_step, tile, tile_row, first"
    in_m.append(f"{dot}<{kind}, W, NR, {sizes}>(m_rows, (n_cols + W - 1) / W, k_count, {left}, {right});")
    count = leaf.count(leaf.n)
    if not (leaf.direct_output and count.exact and count.most % leaf.lanes == 0):
        in_m += block(f"if ({' && '.join(when)})", finish) if when else finish
    in_n += block("for (long m_at = 0; m_at < m_count; m_at += MR)", in_m)
    return [*lines, *block("for (long n_at = 0; n_at < n_count; n_at += NW)", in_n)]


@dataclass(frozen=True)
class _Operand:
    """C++ text: where the register tile's operand begins (from m_at or n_at), its step a row of M, its step along k."""

    at: str
    row: str
    k: str


def _operand(leaf: Leaf, side: Side, spans: tuple[Span, ...], scope: Scope) -> _Operand:
    """The operand in a block of K; `spans` are the side's and K's, `scope` where declarations go."""
    at, unit = ("m_at", "MR") if side.name == "m" else ("n_at", "NW")
    if side.layout is Layout.TENSOR:
        load, form = direct_load(leaf, side)
        start = _address(leaf, form, spans, scope)
        pointer = f"{leaf.context.pointer(load.tensor)} + {start}"
        step, step_k = leaf.step(form, side.axes), leaf.step(form, tuple(a for a, _ in leaf.k.axes))
        return _Operand(f"{pointer} + {at}{f' * {step}' if step != 1 else ''}", str(step), str(step_k))
    base, depth = f"{side.name}_panel", leaf.k.depth
    if side.hoisted:
        depth = leaf.k.total
        base = leaf.context.fresh(f"{side.name}_panel_")
        number = _slice_number(leaf, side)
        elements = _tile_elements(leaf, side)
        scope.lines.append(
            f"const {leaf.type}* const {base} = (const {leaf.type}*){leaf.context.panels[side.name]} + {number} * {elements};"
        )
    jump, row, deep = {
        Layout.ROWS: (f"{at} * {side.ld}", str(side.ld), "1"),
        Layout.COLS: (at, "1", str(side.ld)),
        Layout.PANELS: (f"{at} * {depth}", "1", unit),
    }[side.layout]
    inside = f" + k_at{f' * {deep}' if deep != '1' else ''}" if side.hoisted and not leaf.k.single else ""
    return _Operand(f"{base} + {jump}{inside}", row, deep)


def _address(leaf: Leaf, form: Linear, spans: tuple[Span, ...], scope: Scope) -> str:
    """C++ text of an address with the axes of `spans` at their first index."""
    emitter = Emitter(leaf.context, [scope])
    emitter.rename = {s.axis: s.low for s in spans}
    return emitter.linear(form)


def _output(leaf: Leaf, spans: dict[str, Span], scope: Scope) -> tuple[str, int]:
    """(C++ text of where a register tile lies in the output, the output's step a row)."""
    op, context = leaf.op, leaf.context
    form = context.offset(op.output, tuple(Axis(a.name) for a in op.axes))
    start = _address(leaf, form, tuple(spans[a] for a in leaf.m.axes + leaf.n.axes), scope)
    row = leaf.step(form, leaf.m.axes)
    return f"{context.pointer(op.output)} + {start} + m_at * {row} + n_at", row


def _slice_number(leaf: Leaf, side: Side) -> str:
    """C++ text of the number of this tile's slice in a hoisted panel."""
    text = "0"
    steps = {loop.axis: loop.step for loop in side_loops(leaf, side)}
    for axis, count in _slices(leaf, side):
        name = identifier(axis)
        index = name if axis not in steps else f"{name}_0 / {steps[axis]}"
        text = index if text == "0" else f"({text} * {count} + {index})"
    return f"({text})" if "/" in text else text


def _row_counts(leaf: Leaf) -> tuple[int, ...]:
    """Every number of rows that a register tile can have, largest first."""
    counts = {1}
    for axis in leaf.m.axes:
        most, exact = leaf.context.width(axis)
        widths = {most} if exact else {most, leaf.context.extent(axis) % most}
        if axis in {limit.axis for limit in leaf.context.stage.limits}:
            return tuple(range(leaf.micro.mr, 0, -1))
        counts = {c * w for c in counts for w in widths}
    mr = leaf.micro.mr
    return tuple(sorted({mr for c in counts if c >= mr} | {c % mr for c in counts if c % mr}, reverse=True))
