"""The end of a register tile: the `finish` expression applied to the sums, and the output stored.

What it does: prints the loops over a finished register tile's rows and vectors, with bias, activation, residual loads and
casts evaluated by vectors along the innermost N axis.
What it does not do: compute the sums. Called by `cpp_contract` alone.

A row of the tile holds `n_cols` consecutive positions of the flattened N axes. Where the output and all loads of the finish are
contiguous along the flattened position (or do not vary with N) a row is one segment; else it is cut where the innermost axis
wraps.
"""

from __future__ import annotations

from kernelwright.codegen.cpp_contract_leaf import Leaf
from kernelwright.codegen.cpp_contract_pack import Span, block, decode
from kernelwright.codegen.cpp_expr import Emitter, Lanes, Scope, Value
from kernelwright.ir.expr import Acc, Axis, Call, Expr, Fn, Load, axes_in, children, loads_in, walk
from kernelwright.ir.tile import Store


def finish_of(leaf: Leaf) -> Expr:
    """The stored expression."""
    return leaf.op.finish if leaf.op.finish is not None else Acc(leaf.dtype)


def print_finish(leaf: Leaf, m: tuple[Span, ...], n: tuple[Span, ...], scope: frozenset[str]) -> list[str]:
    """Statements for one register tile: `tile`, rows `tile_row` apart; it starts at (m_at, n_at) and is `m_rows` x `n_cols`."""
    run = next((s for s in reversed(n) if s.most > 1), n[-1])
    outer = scope | {s.axis for s in m}
    everywhere = outer | {s.axis for s in n}
    whole = flat_finish(leaf, n)
    before: list[str] = decode(m, "(m_at + row)")
    scopes = [Scope(before, outer)]
    if whole:
        segment = [*_at(n, run, f"{run.low} + n_at" if run.low != "0" else "n_at"), "long col = 0;"]
        lines = _vectors(leaf, run, scopes, everywhere, "n_cols")
        body = [*before, *segment, *lines]
    else:
        vectors = _vectors(leaf, run, [Scope(before, outer)], everywhere, "stop")
        start = [line.replace(f"const long {run.name} =", f"long {run.name} =") for line in decode(n, "(n_at + col)")]
        least = leaf.context.use("kw_least")
        segment = [*start, f"const long stop = {least}(n_cols, col + {run.high} - {run.name});", *vectors]
        body = [*before, *block("for (long col = 0; col < n_cols;)", segment)]
    return block("for (long row = 0; row < m_rows; ++row)", body)


def _at(n: tuple[Span, ...], run: Span, position: str) -> list[str]:
    """The N axes at the first row of the tile; the innermost one counts on beyond its end."""
    return [
        f"long {s.name} = {position};" if s is run else f"const long {s.name} = {s.low};" for s in n
    ]  # fmt: skip


def _vectors(leaf: Leaf, run: Span, scopes: list[Scope], axes: frozenset[str], end: str) -> list[str]:
    """Whole vectors from `col` to `end`, then a partial one; `col` is left at `end`."""
    load = leaf.context.use("kw_load")
    acc = f"const auto acc = {load}<W>((const {leaf.type}*)tile + row * tile_row + col);"
    full = [acc]
    _store(leaf, [*scopes, Scope(full, axes)], Lanes(run.axis))
    part = [f"const long left = {end} - col;", acc]
    _store(leaf, [*scopes, Scope(part, axes)], Lanes(run.axis, part="left"))
    step = f"col += W, {run.name} += W"
    return [
        *block(f"for (; col + W <= {end}; {step})", full),
        *block(f"if (col < {end})", [*part, f"col = {end};"]),
    ]


def _store(leaf: Leaf, scopes: list[Scope], lanes: Lanes) -> None:
    """Append the finish and the store to the innermost scope."""
    op, finish = leaf.op, finish_of(leaf)
    emitter = Emitter(leaf.context, scopes, lanes, acc=Value("acc", leaf.dtype, vector=True))
    emitter.count(finish)
    value = emitter.value(finish)
    stream = leaf.context.stage.store is Store.STREAM
    index = tuple(Axis(a.name) for a in op.axes)
    scopes[-1].lines.append(emitter.store(op.output, index, value, stream=stream))


def flat_finish(leaf: Leaf, n: tuple[Span, ...]) -> bool:
    """True where the finish may treat the flattened N axes as the innermost one, running on beyond its end."""
    wide = {s.axis for s in n if s.most > 1}
    if len(wide) <= 1:
        return True
    context, op = leaf.context, leaf.op
    forms = [context.offset(op.output, tuple(Axis(a.name) for a in op.axes))]
    finish = finish_of(leaf)
    for load in loads_in(finish):
        if axes_in(load) & wide:
            forms.append(context.offset(load.tensor, load.index))
    lazy = any(isinstance(e, Call) and e.fn is Fn.SELECT and not context.safe(e) for e in walk(finish))
    opaque = any(axes_in(e) & wide for form in forms for _, e in form.opaque)
    return not lazy and not opaque and not _outside_loads(finish, wide) and all(leaf.flat(f, leaf.n.axes, 1) for f in forms)


def _outside_loads(expr: Expr, axes: set[str]) -> bool:
    """True where one of `axes` is used other than in the index of a load."""
    if isinstance(expr, Load):
        return False
    if isinstance(expr, Axis):
        return expr.name in axes
    return any(_outside_loads(c, axes) for c in children(expr))

