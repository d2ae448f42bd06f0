"""One stage of Map, Reduce and Scan operations as C++ loops inside a tile.

What it does: arranges the loops, chooses the ranges in which vectors run (main, partial, border), and places the body.
What it does not do: tile loops and threads (`cpp_nest`), contractions (`cpp_contract`). Called by `cpp_nest`.

Arrangement, outermost first: the output axes of `order`; then, with the vector axis an output axis, its loop in blocks of U
vectors and the reduce or scan loops inside it with accumulators in registers; with the vector axis a reduce axis, the other
reduce loops and then its loop with U independent accumulators; with the vector axis the scan axis, its loop with a carry.
Where a stage does not work in place, the last vector of an output axis may overlap the one before it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from math import prod

from kernelwright.codegen.cpp_body import Body
from kernelwright.codegen.cpp_context import Context, identifier
from kernelwright.codegen.cpp_expr import Emitter, Lanes, Scope
from kernelwright.codegen.cpp_split import Interior, interior
from kernelwright.codegen.cpp_text import braces
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import Const, DType, Expr, Fn, call, dtype_of, substitute
from kernelwright.ir.graph import Combine, Contract, Map, Reduce, Scan, Structured, all_axes, inputs_of
from kernelwright.ir.tile import Buffer, Nest, Place, Program, Stage

WIDEST = 64  # bytes of the widest vector
BLOCK = 256  # additions of f32 into one accumulator before it is added to the total
Inner = Callable[[list[Scope]], None]


def print_stage(stage: Stage, nest: Nest, context: Context) -> list[str]:
    """The statements of one stage for one tile (in braces)."""
    return _Stage(stage, nest, context).print()


@dataclass(frozen=True)
class Span:
    """A range of the vector axis: both ends as text, its least length and whether it is always a multiple of `multiple`."""

    low: str
    high: str
    least: int
    multiple: int


class _Stage:
    """The printer of one stage; holds the arrangement of its loops."""

    def __init__(self, stage: Stage, nest: Nest, context: Context) -> None:
        ops = tuple(_as_reduce(op) for op in stage.ops)
        stage = replace(stage, ops=ops)
        context = replace(context, stage=stage)
        self.stage, self.nest, self.context = stage, nest, context
        zero = {a: Const(0, DType.I64) for a in self._axes() if context.single(a)}
        self.ops: tuple[Map | Reduce | Scan, ...] = tuple(_fix(op, zero) for op in ops)
        self.reduced = self._reduced()
        scans = {op.axis for op in stage.ops if isinstance(op, Scan)}
        if len(scans) > 1 or (scans and self.reduced):
            raise UnsupportedError(f"{nest.name}: a stage scans one axis, and then reduces none")
        self.scanned = next(iter(scans), None)
        self.vector = stage.vector if stage.vector is None or not context.single(stage.vector) else None
        order = [a for a in (*stage.order, *self._axes()) if a != self.vector and not context.single(a)]
        order = list(dict.fromkeys(order))
        self.outer = [a for a in order if a not in self.reduced and a != self.scanned]
        self.inner = [a for a in order if a in self.reduced or a == self.scanned]
        self.stops: dict[str, str] = {}
        self.blocked_axis, self.block = self._blocking()

    def _axes(self) -> list[str]:
        return list(dict.fromkeys(a.name for op in self.stage.ops for a in all_axes(op)))

    def _reduced(self) -> frozenset[str]:
        sets = {frozenset(a.name for a in op.reduce_axes) for op in self.stage.ops if isinstance(op, Reduce)}
        if len(sets) > 1:
            raise UnsupportedError(f"{self.nest.name}: the reductions of a stage reduce the same axes")
        reduced = next(iter(sets), frozenset())
        for loop in self.nest.loops:
            if loop.axis in reduced and loop.step < loop.extent:
                raise UnsupportedError(f"{self.nest.name}: {loop.axis} is reduced, so it cannot be tiled")
        return frozenset(reduced)

    # -- the whole stage ----------------------------------------------------------------------------------------------

    def print(self) -> list[str]:
        lines = [self._comment(op) for op in self.stage.ops]
        body: list[str] = []
        root = Scope(body, frozenset())
        self._limits(root)
        if self.vector is not None:
            body.append(f"constexpr int W = kw_bytes / {self.lane_bytes()};")
        self.loops(self.outer, [root], self._core)
        return lines + braces("", body)

    def _comment(self, op: Structured) -> str:
        names = ", ".join(a.name for a in op.axes)
        over = ", ".join(a.name for a in op.reduce_axes) if isinstance(op, Reduce) else ""
        kind = type(op).__name__.lower() if isinstance(op, Map) else getattr(op, "combine", Combine.SUM).value
        if isinstance(op, Scan):
            kind, over = f"running {kind}", op.axis
        text = f"// {op.output}[{names}]: {kind}" + (f" over {over}" if over else "")
        return text + (f" ({op.origin})" if op.origin else "")

    def _limits(self, root: Scope) -> None:
        for limit in self.stage.limits:
            rename = {loop.axis: f"{identifier(loop.axis)}_0" for loop in self.nest.loops}
            emitter = Emitter(self.context, [root], rename=rename)
            upper = emitter.value(limit.upper).text
            high = self.context.bounds(limit.axis)[1]
            if limit.when is not None:
                upper = f"{emitter.value(limit.when).text} ? (long)({upper}) : (long){high}"
            name = f"{identifier(limit.axis)}_stop"
            root.lines.append(f"const long {name} = {self.context.use('kw_min')}((long)({upper}), (long){high});")
            self.stops[limit.axis] = name

    def bounds(self, axis: str) -> tuple[str, str]:
        """Both ends of an axis in this tile, limits included."""
        low, high = self.context.bounds(axis)
        return low, self.stops.get(axis, high)

    def in_place(self) -> bool:
        """True where an output may share memory with what the stage loads (then at the same index, as planned)."""
        program = self.context.program
        outputs = [program.buffers[op.output] for op in self.ops]
        inputs = [program.buffers[name] for op in self.ops for name in inputs_of(op)]
        return any(
            a.place is b.place and a.place in (Place.LOCAL, Place.WORKSPACE) and a.tensor != b.tensor
            and _meet(_extent(program, a), _extent(program, b))
            for a in outputs for b in inputs
        )  # fmt: skip

    def lane_bytes(self) -> int:
        """Bytes of the widest value that a vector of this stage holds, found by printing the body once for nothing."""
        context = replace(self.context, used=deepcopy(self.context.used))
        scope = Scope([], frozenset(self._axes()) | {"*"})
        assert self.vector is not None
        emitter = Emitter(context, [Scope([], frozenset()), scope], Lanes(self.vector), true=self._interior().true)
        body = Body(context, self.ops, "U")
        body.declare(emitter)
        body.point(emitter, "u", self.stage.store)
        if self.vector not in self.reduced:
            body.finish(emitter, "u", self.stage.store)
        return emitter.lane_bytes or max(op_dtype(context, op).bytes for op in self.ops)

    def loops(self, axes: list[str], scopes: list[Scope], inner: Inner, body: Body | None = None) -> None:
        """Loops over `axes`, outermost first, around what `inner` prints."""
        if not axes:
            inner(scopes)
            return
        axis, name = axes[0], identifier(axes[0])
        lines: list[str] = []
        self.loops(axes[1:], [*scopes, Scope(lines, scopes[-1].axes | {axis})], inner, body)
        low, high = self.bounds(axis)
        out = scopes[-1].lines
        if self.context.width(axis) == (1, True) and axis not in self.stops:
            out += braces("", [f"const long {name} = {low};", *lines])
        elif body is not None and axis == self.blocked_axis:
            stop = f"{name}_b + {self.block} < {high} ? {name}_b + {self.block} : {high}"
            each = braces(f"for (long {name} = {name}_b; {name} < {name}_stop; ++{name})", lines)
            block = [f"const long {name}_stop = {stop};", *each, *body.flush(body.vector)]
            out += braces(f"for (long {name}_b = {low}; {name}_b < {high}; {name}_b += {self.block})", block)
        else:
            if self._unrolled(axis):
                out.append(f"KW_UNROLL({self.context.extent(axis)})")
            out += braces(f"for (long {name} = {low}; {name} < {high}; ++{name})", lines)

    def _unrolled(self, axis: str) -> bool:
        """Small constant reduce loops inside a vector loop are unrolled whole."""
        if axis not in self.reduced or self.vector is None or self.vector in self.reduced or axis in self.stops:
            return False
        total = 1
        for a in self.inner:
            total *= self.context.extent(a)
        return total <= 64

    def _blocking(self) -> tuple[str | None, int]:
        """The loop whose pieces of `block` iterations (vectors, for the vector axis) are summed apart, if sums are long."""
        loops = [(a, self.context.extent(a)) for a in self.inner if a in self.reduced]
        if self.vector is not None and self.vector in self.reduced:
            loops.append((self.vector, -(-self.context.extent(self.vector) // (8 * self.stage.unroll))))
        steps = 1
        for axis, extent in reversed(loops):
            if steps * extent > 2 * BLOCK:
                return axis, max(1, BLOCK // steps)
            steps *= extent
        return None, 0

    # -- inside the outer loops ---------------------------------------------------------------------------------------

    def _core(self, scopes: list[Scope]) -> None:
        if self.vector is None:
            self._scalar(scopes)
        elif self.vector in self.reduced:
            self._across(scopes)
        elif self.vector == self.scanned:
            self._along(scopes)
        else:
            self._beside(scopes)

    def _scalar(self, scopes: list[Scope], known: frozenset[Expr] = frozenset()) -> None:
        """Everything one element at a time."""
        lines = scopes[-1].lines
        body = Body(self.context, self.ops, None, self.blocked_axis is not None)
        lines += body.declare(Emitter(self.context, scopes))
        down = self.scanned is not None and any(isinstance(op, Scan) and op.reverse for op in self.ops)

        def point(inside: list[Scope]) -> None:
            body.point(Emitter(self.context, inside, true=known), None, self.stage.store)

        if down and self.scanned is not None:
            inside: list[str] = []
            point([*scopes, Scope(inside, scopes[-1].axes | {self.scanned})])
            name, (low, high) = identifier(self.scanned), self.bounds(self.scanned)
            lines += braces(f"for (long {name} = {high} - 1; {name} >= {low}; --{name})", inside)
        else:
            self.loops(self.inner, scopes, point, body)
        body.finish(Emitter(self.context, scopes), None, self.stage.store)

    def _across(self, scopes: list[Scope]) -> None:
        """The vector axis is reduced: U accumulators, joined at the end."""
        assert self.vector is not None
        width = self.context.extent(self.vector)
        lines = scopes[-1].lines
        unroll = self.context.use("kw_pick")
        lines.append(f"constexpr int U = {unroll}({width}, W, {self.stage.unroll});")
        body = Body(self.context, self.ops, "U", self.blocked_axis is not None)
        body.vector = True
        lines += body.declare(Emitter(self.context, scopes, Lanes(self.vector)))
        self.loops(self.inner, scopes, lambda inside: self._across_loop(inside, body), body)
        lines += body.flush(True)
        joined = {
            a.op.output: body.joined(Emitter(self.context, scopes), a, lines)
            for a in body.accumulators.values()
        }
        body.finish(Emitter(self.context, scopes), None, self.stage.store, joined)

    def _across_loop(self, scopes: list[Scope], body: Body) -> None:
        assert self.vector is not None
        name, lines = identifier(self.vector), scopes[-1].lines
        low, high = self.bounds(self.vector)
        exact = self.vector not in self.stops and self.context.extent(self.vector)
        widest = WIDEST // self.lane_bytes()
        base = f"{name}_v"
        vectors = self._slots(scopes, body, base)
        if self.blocked_axis == self.vector:
            stop = f"{base} + {self.block} * U * W <= {high} ? {base} + {self.block} * U * W : {high}"
            main = braces(f"for (; {base} + U * W <= {name}_stop; {base} += U * W)", vectors)
            block = [f"const long {name}_stop = {stop};", *main, *body.flush(True)]
            lines.append(f"long {base} = {low};")
            lines += braces(f"while ({base} + U * W <= {high})", block)
        else:
            lines.append(f"long {base} = {low};")
            lines += braces(f"for (; {base} + U * W <= {high}; {base} += U * W)", vectors)
        if exact and exact % (self.stage.unroll * widest) == 0:
            return
        part = "left" if not exact or exact % widest else None
        tail: list[str] = [f"const long {name} = {base};"]
        if part:
            tail.append(f"const long left = {high} - {base} < W ? {high} - {base} : W;")
        self._point(scopes, tail, body, "0", part=part)
        lines += braces(f"for (; {base} < {high}; {base} += W)", tail)

    def _point(self, scopes: list[Scope], lines: list[str], body: Body, slot: str | None, *, part: str | None = None,
               true: frozenset[Expr] = frozenset()) -> None:  # fmt: skip
        assert self.vector is not None
        scope = Scope(lines, scopes[-1].axes | {self.vector})
        emitter = Emitter(self.context, [*scopes, scope], Lanes(self.vector, part=part), true=true)
        body.point(emitter, slot, self.stage.store)

    def _slots(self, scopes: list[Scope], body: Body, base: str, true: frozenset[Expr] = frozenset()) -> list[str]:
        """A point for each of the U vectors from `base` on."""
        assert self.vector is not None
        inside = [f"const long {identifier(self.vector)} = {base} + u * W;"]
        self._point(scopes, inside, body, "u", true=true)
        return [f"KW_UNROLL({self.stage.unroll})", *braces("for (int u = 0; u < U; ++u)", inside)]

    def _along(self, scopes: list[Scope]) -> None:
        """The vector axis is scanned: prefixes inside a vector, a carry between vectors."""
        assert self.vector is not None
        name, lines = identifier(self.vector), scopes[-1].lines
        low, high = self.bounds(self.vector)
        body = Body(self.context, self.ops, None)
        lines += body.declare(Emitter(self.context, scopes, Lanes(self.vector)))
        full, partial = [], []  # type: tuple[list[str], list[str]]
        self._point(scopes, full, body, None)
        reverse = any(isinstance(op, Scan) and op.reverse for op in self.ops)
        ragged = self.context.extent(self.vector) % (WIDEST // self.lane_bytes()) != 0 or self.vector in self.stops
        if not reverse:
            lines.append(f"long {name} = {low};")
            lines += braces(f"for (; {name} + W <= {high}; {name} += W)", full)
            if ragged:
                self._point(scopes, partial, body, None, part="left")
                lines += braces(f"if ({name} < {high})", [f"const long left = {high} - {name};", *partial])
            return
        lines.append(f"long {name} = {high} - W;")
        lines += braces(f"for (; {name} >= {low}; {name} -= W)", full)
        if ragged:
            self._point(scopes, partial, body, None, part="left")
            head = [f"const long left = {name} + W - {low};", f"{name} = {low};", *partial]
            lines += braces(f"if ({name} + W > {low})", head)

    # -- the vector axis is an output axis ----------------------------------------------------------------------------

    def _interior(self) -> Interior:
        if self.vector is None or self.vector in self.reduced or self.vector == self.scanned:
            return Interior((), frozenset())
        bodies = [op.body for op in self.ops]
        return interior(bodies, self.vector, frozenset(self.inner), self.context)

    def _beside(self, scopes: list[Scope]) -> None:
        assert self.vector is not None
        split = self._interior()
        low, high = self.bounds(self.vector)
        width, same = self.context.width(self.vector)
        extent = self.context.extent(self.vector)
        if self.vector in self.stops or self.in_place():
            span = Span(low, high, 0, 1)
        else:
            span = Span(low, high, width if same else extent % width, width if same else 1)
        if not split.bounds:
            self._vectors(scopes, span, frozenset(), partial=True)
            return
        span = self._inside(scopes, span, split)
        self._vectors(scopes, span, split.true, partial=False)
        name, border = identifier(self.vector), []  # type: tuple[str, list[str]]
        self._scalar([*scopes, Scope(border, scopes[-1].axes | {self.vector})])
        scopes[-1].lines += _around(name, (low, high), (span.low, span.high), border)

    def _inside(self, scopes: list[Scope], span: Span, split: Interior) -> Span:
        """Declares where the guards hold; an interior narrower than a vector becomes empty, at the end of the range."""
        assert self.vector is not None
        name, lines = identifier(self.vector), scopes[-1].lines
        emitter = Emitter(self.context, scopes)
        fixed = span.low.isdigit() and span.high.isdigit() and not any(b.form.terms for b in split.bounds)
        lows, highs = [span.low], [span.high]
        for bound in split.bounds:
            if bound.form.terms:
                text = emitter.linear(bound.form)
                quotient = f"{self.context.use('kw_floordiv')}({text}, {bound.step}l)" if bound.step > 1 else f"({text})"
                (lows if bound.lower else highs).append(f"-{quotient}" if bound.lower else f"{quotient} + 1")
            else:
                value = bound.form.constant // bound.step
                (lows if bound.lower else highs).append(str(-value if bound.lower else value + 1))
        if fixed:
            start, stop = max(map(int, lows)), min(map(int, highs))
            if stop - start >= WIDEST // self.lane_bytes() and not self.in_place():
                return Span(str(start), str(stop), stop - start, stop - start)
        first, last = f"{name}_in", f"{name}_out"
        least, most = self.context.use("kw_min"), self.context.use("kw_max")
        lines.append(f"long {first} = {_nested(most, lows)}, {last} = {_nested(least, highs)};")
        lines.append(f"if ({last} - {first} < W) {first} = {last} = {span.high};")
        if self.in_place():
            lines.append(f"{last} -= ({last} - {first}) % W;")
        return Span(first, last, 0, 1)

    def _vectors(self, scopes: list[Scope], span: Span, true: frozenset[Expr], partial: bool) -> None:
        """The vectors of one range. `partial`: what is left may be done in a partial vector, else the range may be empty."""
        assert self.vector is not None
        widest = WIDEST // self.lane_bytes()
        plain = not self.reduced and self.scanned is None
        unroll = 1 if plain or span.least < widest else self.stage.unroll
        name, lines = identifier(self.vector), scopes[-1].lines
        if span.least >= widest or not partial:
            step = "W" if unroll == 1 else "U * W"
            base = f"{name}_v"
            exact = span.multiple % (unroll * widest) == 0
            start = base if exact else f"{base} + {step} <= {span.high} ? {base} : {span.high} - {step}"
            if unroll > 1:
                lines.append(f"constexpr int U = {self.context.use('kw_pick')}({span.least}, W, {unroll});")
            inside = [f"const long {name}{'_0v' if unroll > 1 else ''} = {start};"]
            inside += self._block(scopes, true, "U" if unroll > 1 else None, f"{name}_0v", None)
            if plain and self.stage.unroll > 1:
                lines.append(f"KW_UNROLL({self.stage.unroll})")
            lines += braces(f"for (long {base} = {span.low}; {base} < {span.high}; {base} += {step})", inside)
            return
        lines.append(f"long {name} = {span.low};")
        full = self._block(scopes, true, None, name, None)
        lines += braces(f"for (; {name} + W <= {span.high}; {name} += W)", full)
        rest = [f"const long left = {span.high} - {name};", *self._block(scopes, true, None, name, "left")]
        lines += braces(f"if ({name} < {span.high})", rest)

    def _block(self, scopes: list[Scope], true: frozenset[Expr], unroll: str | None, base: str, part: str | None) -> list[str]:
        """One step of the vector loop: accumulators, the inner loops, the end."""
        assert self.vector is not None
        lines: list[str] = []
        scope = Scope(lines, scopes[-1].axes | ({self.vector} if unroll is None else frozenset()))
        around = [*scopes, scope]
        body = Body(self.context, self.ops, unroll, self.blocked_axis is not None)
        body.vector = True
        lanes = Lanes(self.vector, part=part)
        lines += body.declare(Emitter(self.context, scopes, lanes))

        def point(inside: list[Scope]) -> None:
            if unroll is None:
                body.point(Emitter(self.context, inside, lanes, true=true), None, self.stage.store)
            else:
                inside[-1].lines.extend(self._slots(inside, body, base, true))

        if self.scanned is not None and any(isinstance(op, Scan) and op.reverse for op in self.ops):
            self._down(around, point)
        else:
            self.loops(self.inner, around, point, body)
        lines += body.flush(True)
        self._end(around, body, unroll, base, lanes)
        return lines

    def _down(self, scopes: list[Scope], point: Inner) -> None:
        """The scan loop from its end to its start."""
        assert self.scanned is not None
        name, (low, high) = identifier(self.scanned), self.bounds(self.scanned)
        inside: list[str] = []
        point([*scopes, Scope(inside, scopes[-1].axes | {self.scanned})])
        scopes[-1].lines += braces(f"for (long {name} = {high} - 1; {name} >= {low}; --{name})", inside)

    def _end(self, scopes: list[Scope], body: Body, unroll: str | None, base: str, lanes: Lanes) -> None:
        assert self.vector is not None
        if not self.reduced:
            return
        if unroll is None:
            body.finish(Emitter(self.context, scopes, lanes), None, self.stage.store)
            return
        inside = [f"const long {identifier(self.vector)} = {base} + u * W;"]
        scope = Scope(inside, scopes[-1].axes | {self.vector})
        body.finish(Emitter(self.context, [*scopes, scope], lanes), "u", self.stage.store)
        scopes[-1].lines += [f"KW_UNROLL({self.stage.unroll})", *braces("for (int u = 0; u < U; ++u)", inside)]


def op_dtype(context: Context, op: Structured) -> DType:
    """The dtype of an operation's output."""
    return context.tensor(op.output).dtype


def _as_reduce(op: Structured) -> Map | Reduce | Scan:
    """A contraction that has no leaf of its own is a sum of products."""
    if not isinstance(op, Contract):
        return op
    sides = (e if dtype_of(e) is op.accumulate else call(Fn.CAST, e, dtype=op.accumulate) for e in (op.lhs, op.rhs))
    body = call(Fn.MUL, *sides, dtype=op.accumulate)
    return Reduce(op.output, op.axes, op.reduce_axes, Combine.SUM, body, op.accumulate, op.finish, op.origin)


def _fix(op: Map | Reduce | Scan, zero: dict[str, Const]) -> Map | Reduce | Scan:
    """The operation with axes of extent 1 set to 0 in its expressions."""
    values: dict[str, Expr] = dict(zero)
    if isinstance(op, Map):
        return replace(op, body=substitute(op.body, values))
    finish = None if op.finish is None else substitute(op.finish, values)
    return replace(op, body=substitute(op.body, values), finish=finish)


def _around(name: str, whole: tuple[str, str], inner: tuple[str, str], body: list[str]) -> list[str]:
    """A loop over `whole` without `inner`."""
    low, high = whole
    if all(text.isdigit() for text in (low, high, *inner)):
        if inner == (low, high):
            return []
        if inner[1] == high:
            return braces(f"for (long {name} = {low}; {name} < {inner[0]}; ++{name})", body)
        if inner[0] == low:
            return braces(f"for (long {name} = {inner[1]}; {name} < {high}; ++{name})", body)
        start = low
    else:
        start = f"{inner[0]} > {low} ? {low} : {inner[1]}"
    step = f"{name} = {name} + 1 == {inner[0]} ? {inner[1]} : {name} + 1"
    return braces(f"for (long {name} = {start}; {name} < {high}; {step})", body)


def _extent(program: Program, buffer: Buffer) -> tuple[int, int]:
    """The bytes that a planned buffer takes."""
    tensor = program.tensors[buffer.tensor]
    size = prod(buffer.shape) * tensor.dtype.bytes if buffer.place is Place.LOCAL else tensor.bytes
    return buffer.offset, buffer.offset + size


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def _nested(fn: str, parts: list[str]) -> str:
    """fn(a, fn(b, c)) over i64 texts."""
    parts = list(dict.fromkeys(parts))
    text = f"(long)({parts[-1]})"
    for part in reversed(parts[:-1]):
        text = f"{fn}((long)({part}), {text})"
    return text
