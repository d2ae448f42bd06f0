"""How the panels of a packed contraction leaf are filled: from a tensor, or from any expression (a fused prologue).

What it does: prints the loops that evaluate one side's operand for a tile and a range of K and store it in the side's layout
(`cpp_contract_leaf.Layout`), by vectors along the axis that is contiguous in memory; where guards (padding) cut a run of that
axis, the part where they hold is copied by vectors and the borders by scalars.
What it does not do: decide the layout, or where the panel lies. Called by `cpp_contract` alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.codegen.cpp_context import identifier
from kernelwright.codegen.cpp_contract_leaf import Layout, Leaf, Side, conditions, peelable
from kernelwright.codegen.cpp_expr import Emitter, Lanes, Scope
from kernelwright.codegen.cpp_index import Linear, guards
from kernelwright.ir.expr import Expr


@dataclass(frozen=True)
class Span:
    """The range of one axis: C++ text of the first index and one past the last; `most` is the largest number of elements."""

    axis: str
    low: str
    high: str
    most: int

    @property
    def name(self) -> str:
        return identifier(self.axis)

    @property
    def size(self) -> str:
        """C++ text of the number of elements."""
        if self.low == "0":
            return self.high
        if self.low.isdigit() and self.high.isdigit():
            return str(int(self.high) - int(self.low))
        return f"({self.high} - {self.low})"


@dataclass(frozen=True)
class Packing:
    """One panel to fill: the side, its spans and those of K, the C++ name of its first element, the depth of its K.

    `scope` holds the axes whose variables are in scope around the printed text.
    """

    leaf: Leaf
    side: Side
    rows: tuple[Span, ...]
    k: tuple[Span, ...]
    to: str
    depth: int
    scope: frozenset[str]

    @property
    def axes(self) -> frozenset[str]:
        """All axes whose variables are in scope at an element."""
        return self.scope | {s.axis for s in self.rows + self.k}

    def emitter(self, scopes: list[Scope], lanes: Lanes | None, true: frozenset[Expr] = frozenset()) -> Emitter:
        emitter = Emitter(self.leaf.context, scopes, lanes, true=true)
        emitter.count(self.side.expr)
        return emitter

    def value(self, emitter: Emitter) -> str:
        """C++ text of the operand, in the panel's type."""
        value = emitter.cast(emitter.value(self.side.expr), self.leaf.dtype)
        return (emitter.splat(value) if emitter.lanes else value).text


def indent(lines: list[str]) -> list[str]:
    return [f"  {line}" if line else line for line in lines]


def block(head: str, body: list[str]) -> list[str]:
    """`head { body }`, on one line where that is short."""
    if len(body) == 1 and len(head) + len(body[0]) < 118 and not body[0].startswith(("for", "if", "//")):
        return [f"{head} {body[0]}"] if head.startswith("for") else [f"{head} {{ {body[0]} }}"]
    return [f"{head} {{", *indent(body), "}"]


def loop(span: Span, body: list[str]) -> list[str]:
    """A loop over a span."""
    name = span.name
    return block(f"for (long {name} = {span.low}; {name} < {span.high}; ++{name})", body)


def loops(spans: tuple[Span, ...], body: list[str]) -> list[str]:
    """Nested loops over `spans`, outermost first."""
    for span in reversed(spans):
        body = loop(span, body)
    return body


def print_pack(packing: Packing) -> list[str]:
    """The statements that fill one panel."""
    side = packing.side
    if side.layout is Layout.PANELS and side.name == "m":
        return _pack_rows_of_panels(packing)
    if side.layout is Layout.PANELS:
        return _pack_squares(packing) if side.transpose else _pack_panels(packing)
    if side.layout is Layout.ROWS:
        return _pack_lines(packing, packing.rows, packing.k)
    return _pack_lines(packing, packing.k, packing.rows)


def _run(spans: tuple[Span, ...]) -> tuple[tuple[Span, ...], Span]:
    """(the other spans, the innermost one that has more than one element)."""
    at = max((i for i, s in enumerate(spans) if s.most > 1), default=len(spans) - 1)
    return spans[:at] + spans[at + 1 :], spans[at]


def _pack_lines(packing: Packing, rows: tuple[Span, ...], cols: tuple[Span, ...]) -> list[str]:
    """Panel rows `ld` apart: one for each point of `rows`, holding the points of `cols` in order."""
    kind, ld = packing.leaf.type, packing.side.ld
    others, run = _run(cols)
    at = packing.leaf.context.fresh("at_")
    several = any(s.most > 1 for s in others)
    body = _pack_run(packing, run, at)
    if several:
        body = [*body, f"{at} += {run.size};"]
    row = packing.leaf.context.fresh("row_") if several else at
    inner = loops(others, body)
    if several:
        inner = [f"{kind}* {at} = {row};", *inner]
    return [f"{kind}* {row} = {packing.to};", *loops(rows, [*inner, f"{row} += {ld};"])]


def _pack_run(packing: Packing, run: Span, at: str) -> list[str]:
    """at[0..] = the operand for all indices of `run`. Whole vectors may be written past the end (the row has room)."""
    context, expr = packing.leaf.context, packing.side.expr
    name = run.name
    where = f"{at} + {name}" if run.low == "0" else f"{at} + ({name} - {run.low})"
    guard = conditions(context, expr)
    if guard and not peelable(context, expr):
        return loop(run, _scalar(packing, where))
    true: frozenset[Expr] = frozenset(guard)
    if not guard:
        return [f"long {name} = {run.low};", *_vectors(packing, run, where, run.high, true)]
    low, high = context.fresh("lo_"), context.fresh("hi_")
    forms = [g.form for c in guard for g in guards(c) or ()]
    lines = _interval(packing, run, forms, low, high)
    scalar = _scalar(packing, where)
    lines += [f"long {name} = {run.low};", *block(f"for (; {name} < {low}; ++{name})", scalar)]
    lines += block(f"if ({name} < {high})", _vectors(packing, run, where, high, true))
    lines += [f"{name} = {high};", *block(f"for (; {name} < {run.high}; ++{name})", scalar)]
    return lines


def _scalar(packing: Packing, where: str) -> list[str]:
    lines: list[str] = []
    emitter = packing.emitter([Scope(lines, packing.axes)], None)
    lines.append(f"*({where}) = {packing.value(emitter)};")
    return lines if len(lines) == 1 else ["{", *indent(lines), "}"]


def _vectors(packing: Packing, run: Span, where: str, high: str, true: frozenset[Expr]) -> list[str]:
    """Vectors from the current index of `run` to `high`, the last one partial."""
    name, context = run.name, packing.leaf.context
    store = context.use("kw_store")
    before: list[str] = []
    outer = Scope(before, packing.axes - {run.axis})
    full: list[str] = []
    emitter = packing.emitter([outer, Scope(full, packing.axes)], Lanes(run.axis), true)
    full.append(f"{store}({where}, {packing.value(emitter)});")
    left = context.fresh("left_")
    rest = [f"const long {left} = {high} - {name};"]
    emitter = packing.emitter([outer, Scope(rest, packing.axes)], Lanes(run.axis, part=left), true)
    rest.append(f"{store}({where}, {packing.value(emitter)});")
    return [*before, *block(f"for (; {name} + W <= {high}; {name} += W)", full), *block(f"if ({name} < {high})", rest)]


def _interval(packing: Packing, run: Span, forms: list[Linear], low: str, high: str) -> list[str]:
    """Declares `low` and `high`: where along `run` all `forms` are >= 0 (run.low <= low <= high <= run.high)."""
    context = packing.leaf.context
    least = context.use("kw_least")
    lines: list[str] = []
    emitter = Emitter(context, [Scope(lines, packing.axes - {run.axis})])
    body = [f"long {low} = {run.low}, {high} = {run.high};"]
    for form in forms:
        step = form.coefficient(run.axis) or 0
        rest = form.without(run.axis)
        if step > 0:  # run >= -rest / step, rounded up
            text = emitter.linear(_scaled(rest, -1))
            bound = text if step == 1 else f"-{context.use('kw_floor_div')}({emitter.linear(rest)}, {step})"
            body.append(f"if ({low} < {bound}) {low} = {bound};")
        elif step < 0:  # run <= rest / -step, rounded down
            text = emitter.linear(rest)
            bound = f"{text} + 1" if step == -1 else f"{context.use('kw_floor_div')}({text}, {-step}) + 1"
            body.append(f"{high} = {least}({high}, {bound});")
        else:
            body.append(f"if ({emitter.linear(rest)} < 0) {high} = {run.low};")
    body.append(f"{low} = {least}({low}, {run.high});")
    body.append(f"if ({high} < {low}) {high} = {low};")
    return lines + body


def _scaled(form: Linear, factor: int) -> Linear:
    return Linear(
        form.constant * factor, tuple((a, k * factor) for a, k in form.terms), tuple((k * factor, e) for k, e in form.opaque)
    )


def _pack_panels(packing: Packing) -> list[str]:
    """N panels of NW columns, copied row by row."""
    leaf, kind = packing.leaf, packing.leaf.type
    others, run = _run(packing.rows)
    context = leaf.context
    row, at, start, end = (context.fresh(stem) for stem in ("row_", "at_", "from_", "to_"))
    where = f"{at} + ({run.name} - {start})"
    whole: list[str] = []
    emitter = packing.emitter([Scope(whole, packing.axes)], Lanes(run.axis))
    whole.append(f"{context.use('kw_store')}({where}, {packing.value(emitter)});")
    every = block(f"KW_UNROLL(8) for (long {run.name} = {start}; {run.name} < {start} + NW; {run.name} += W)", whole)
    rest = [
        f"const long {end} = {context.use('kw_least')}({start} + NW, {run.high});",
        f"long {run.name} = {start};",
        *_vectors(packing, run, where, end, frozenset()),
    ]
    body = [*block(f"if ({start} + NW <= {run.high})", every), *block("else", rest)]
    head = f"for (long {start} = {run.low}; {start} < {run.high}; {start} += NW, {at} += {packing.depth} * NW)"
    inner = [*_constants(others), f"{kind}* {at} = {row};", *block(head, body), f"{row} += NW;"]
    return [f"{kind}* {row} = {packing.to};", *loops(packing.k, inner)]


def _constants(spans: tuple[Span, ...]) -> list[str]:
    """Declarations of axes that have a single element."""
    return [f"const long {s.name} = {s.low};" for s in spans]


def _pack_squares(packing: Packing) -> list[str]:
    """N panels from memory that is contiguous along k: squares of W x W, transposed in registers."""
    kind, context = packing.leaf.type, packing.leaf.context
    others, run = _run(packing.rows)
    outer_k, deep = _run(packing.k)
    square, start, line, at, left = (context.fresh(stem) for stem in ("square_", "from_", "line_", "at_", "left_"))
    least, transpose, store = context.use("kw_least"), context.use("kw_transpose"), context.use("kw_store")

    def fill(part: str | None, count: str) -> list[str]:
        lines = [f"const long {run.name} = {least}({start} + lane, {run.high} - 1);"]
        emitter = packing.emitter([Scope(lines, packing.axes)], Lanes(deep.axis, part=part))
        lines.append(f"{square}[lane] = {packing.value(emitter)};")
        return [
            f"vec<{kind}, W> {square}[W];",
            *block("KW_UNROLL(16) for (int lane = 0; lane < W; ++lane)", lines),
            f"{transpose}({square});",
            f"for (long lane = 0; lane < {count}; ++lane)",
            f"  {store}({at} + ({deep.name} - {deep.low} + lane) * NW, {square}[lane]);",
        ]

    body = [
        f"{kind}* {at} = {line} + ({start} - {run.low}) / NW * ({packing.depth} * NW) + ({start} - {run.low}) % NW;",
        f"long {deep.name} = {deep.low};",
        *block(f"for (; {deep.name} + W <= {deep.high}; {deep.name} += W)", fill(None, "W")),
        *block(f"if ({deep.name} < {deep.high})", [f"const long {left} = {deep.high} - {deep.name};", *fill(left, left)]),
    ]
    squares = block(f"for (long {start} = {run.low}; {start} < {run.high}; {start} += W)", body)
    inner = [*_constants(others), *squares, f"{line} += {deep.size} * NW;"]
    return [f"{kind}* {line} = {packing.to};", *loops(outer_k, inner)]


def _pack_rows_of_panels(packing: Packing) -> list[str]:
    """M panels of MR rows, element by element (done once, at load)."""
    kind, context = packing.leaf.type, packing.leaf.context
    start, count, at = (context.fresh(stem) for stem in ("from_", "count_", "at_"))
    element = [*decode(packing.rows, f"({start} + lane)"), *_scalar(packing, f"{at} + lane")]
    line = block(f"for (long lane = 0; lane < MR && {start} + lane < {count}; ++lane)", element)
    body = [f"{kind}* {at} = {packing.to} + {start} * {packing.depth};", *loops(packing.k, [*line, f"{at} += MR;"])]
    return [
        f"const long {count} = {size_of(packing.rows)};",
        *block(f"for (long {start} = 0; {start} < {count}; {start} += MR)", body),
    ]


def size_of(spans: tuple[Span, ...]) -> str:
    """C++ text of the flattened number of elements."""
    sizes = [s.size for s in spans]
    if all(s.isdigit() for s in sizes):
        product = 1
        for s in sizes:
            product *= int(s)
        return str(product)
    return " * ".join(s for s in sizes if s != "1") or "1"


def decode(spans: tuple[Span, ...], position: str) -> list[str]:
    """Declarations of the axes of `spans` at a flattened position."""
    lines, inner = [], "1"
    wide = [s for s in spans if s.most > 1]
    for span in reversed(spans):
        if span.most <= 1 or not wide:
            lines.append(f"const long {span.name} = {span.low};")
            continue
        text = position if inner == "1" else f"{position} / {inner}" if inner.isdigit() else f"{position} / ({inner})"
        if span is not wide[0]:
            text = f"{text} % {span.size}"
        first = "" if span.low == "0" else f"{span.low} + "
        lines.append(f"const long {span.name} = {first}{text};")
        inner = size_of((*[s for s in spans if s.most > 1 and spans.index(s) >= spans.index(span)],))
    return lines[::-1]
