"""What happens at one point (or vector of points) of a stage: its operations in order, with their accumulators.

What it does: declares accumulators, prints one evaluation of every operation, and joins and finishes the accumulators.
What it does not do: loops and ranges (see `cpp_stage`). Called by `cpp_stage`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from kernelwright.codegen.cpp_context import C_TYPE, Context
from kernelwright.codegen.cpp_expr import Emitter, Scope, Value, register
from kernelwright.codegen.cpp_text import braces
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import Axis, Call, Const, DType, Expr, Fn, Load, dtype_of
from kernelwright.ir.graph import Combine, Map, Reduce, Scan, Structured
from kernelwright.ir.tile import Place, Store

BEST = {Combine.ARGMAX: "true", Combine.ARGMIN: "false"}
FOLD = {
    Combine.SUM: "sum", Combine.PROD: "prod", Combine.MAX: "max", Combine.MIN: "min", Combine.ANY: "any", Combine.ALL: "all",
}  # fmt: skip
JOIN = {
    Combine.SUM: "{a} + {b}", Combine.PROD: "{a} * {b}", Combine.MAX: "kw_max({a}, {b})", Combine.MIN: "kw_min({a}, {b})",
    Combine.ANY: "{a} | {b}", Combine.ALL: "{a} & {b}",
}  # fmt: skip


def neutral(combine: Combine, dtype: DType) -> float | int | bool:
    """The value that changes nothing."""
    if combine in (Combine.SUM, Combine.ANY):
        return False if dtype is DType.BOOL else 0
    if combine in (Combine.PROD, Combine.ALL):
        return True if dtype is DType.BOOL else 1
    lowest = combine in (Combine.MAX, Combine.ARGMAX)
    if dtype.is_float:
        return -math.inf if lowest else math.inf
    if dtype is DType.BOOL:
        return not lowest
    if dtype is DType.U8:
        return 0 if lowest else 255
    half: int = 1 << (8 * dtype.bytes - 1)
    return -half if lowest else half - 1


@dataclass
class Accumulator:
    """A running value of a Reduce or Scan: its C++ names; `where` holds positions (ARGMAX), `total` the blocked sums."""

    op: Reduce | Scan
    dtype: DType  # of the values joined
    name: str
    where: str | None = None
    total: str | None = None


@dataclass
class Body:
    """The operations of a stage printed in one mode: scalar (`lanes` None in the emitters) or vector with `unroll` slots."""

    context: Context
    ops: tuple[Structured, ...]
    unroll: str | None  # the C++ constant with the number of accumulators; None: one, not an array
    blocked: bool = False
    vector: bool = False
    accumulators: dict[str, Accumulator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for op in self.ops:
            if not isinstance(op, Reduce | Scan):
                continue
            dtype = register(op.accumulate if op.combine not in BEST else _compared(dtype_of(op.body)))
            if op.combine in (Combine.ANY, Combine.ALL):
                dtype = DType.BOOL
            acc = Accumulator(op, dtype, self.context.fresh(op.combine.value))
            if op.combine in BEST:
                acc.where = self.context.fresh("at")
            if self.blocked and op.combine is Combine.SUM and dtype is DType.F32:
                acc.total = self.context.fresh("total")
            self.accumulators[op.output] = acc

    # -- accumulators -------------------------------------------------------------------------------------------------

    def _type(self, emitter: Emitter, dtype: DType) -> str:
        if dtype is DType.BOOL and emitter.lanes is not None:
            return emitter.mask_type(4)
        return emitter.type(dtype, emitter.lanes is not None)

    def _position(self, acc: Accumulator, emitter: Emitter) -> DType:
        """The type of a position: as wide as the values in vectors, I64 otherwise."""
        return DType.I32 if emitter.lanes is not None and acc.dtype.bytes == 4 else DType.I64

    def declare(self, emitter: Emitter) -> list[str]:
        """Declarations with neutral values; a position starts at the first one, in case nothing beats the neutral value."""
        lines: list[str] = []
        for acc in self.accumulators.values():
            start = emitter.constant(neutral(acc.op.combine, acc.dtype), acc.dtype)
            lines += self._declare(emitter, acc.name, acc.dtype, start)
            if acc.total:
                lines += self._declare(emitter, acc.total, acc.dtype, start)
            if acc.where:
                kind, first = self._position(acc, emitter), Value("0", DType.I64)
                if emitter.lanes is not None and emitter.lanes.axis in _reduced(acc.op):
                    first = Value(f"{emitter.context.use('kw_iota')}<{emitter.type(kind, True)}>()", kind, True)
                lines += self._declare(emitter, acc.where, kind, first)
        return lines

    def _declare(self, emitter: Emitter, name: str, dtype: DType, start: Value) -> list[str]:
        kind = self._type(emitter, dtype)
        if emitter.lanes is None:
            return [f"{kind} {name} = {start.text};"]
        wide = start if start.vector else emitter.splat(emitter.cast(start, dtype))
        if self.unroll is None:
            return [f"{kind} {name} = {wide.text};"]
        if start.text in ("0", "0.0f", "0.0", "false"):
            return [f"{kind} {name}[{self.unroll}] = {{}};"]
        return [f"{kind} {name}[{self.unroll}];", f"for (auto& slot : {name}) slot = {wide.text};"]

    def slot(self, name: str, index: str | None) -> str:
        """One accumulator of an array, or the only one."""
        return name if self.unroll is None or index is None else f"{name}[{index}]"

    def flush(self, vector: bool) -> list[str]:
        """Add the running sums to the totals and clear them (blocked summation)."""
        lines: list[str] = []
        for acc in self.accumulators.values():
            if acc.total is None:
                continue
            flush = self.context.use("kw_flush")
            if vector and self.unroll is not None:
                lines.append(f"for (int u = 0; u < {self.unroll}; ++u) {flush}({acc.total}[u], {acc.name}[u]);")
            else:
                lines.append(f"{flush}({acc.total}, {acc.name});")
        return lines

    # -- a point ------------------------------------------------------------------------------------------------------

    def point(self, emitter: Emitter, slot: str | None, store: Store) -> None:
        """Evaluate every operation once; text goes to the emitter's innermost scope."""
        for op in self.ops:
            emitter.count(op.body if not hasattr(op, "lhs") else op.lhs)
        for op in self.ops:
            if isinstance(op, Map):
                self._map(emitter, op, store)
            elif isinstance(op, Reduce):
                self._reduce(emitter, op, slot)
            elif isinstance(op, Scan):
                self._scan(emitter, op, slot, store)
            else:
                raise UnsupportedError(f"{op.output}: a contraction needs a leaf of its own")

    def put(self, emitter: Emitter, op: Structured, value: Value, store: Store) -> None:
        """Store a value, or forward it to the stage's later operations."""
        index = tuple(Axis(a.name) for a in op.axes)
        at = Load(op.output, self.fixed(index), self.context.tensor(op.output).dtype)
        value = emitter.name(emitter.cast(value, register(at.dtype)), op.output + "_")
        emitter.known[at] = value
        if self.context.buffer(op.output).place is not Place.FORWARDED:
            emitter.scopes[-1].lines.append(emitter.store(op.output, at.index, value, store is Store.STREAM))

    def fixed(self, index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """An index with the axes of extent 1 set to zero, as in the stage's expressions."""
        return tuple(
            Const(0, DType.I64) if isinstance(e, Axis) and self.context.single(e.name) else e for e in index
        )

    def _map(self, emitter: Emitter, op: Map, store: Store) -> None:
        self.put(emitter, op, emitter.value(op.body), store)

    def _reduce(self, emitter: Emitter, op: Reduce, slot: str | None) -> None:
        acc = self.accumulators[op.output]
        body, condition = op.body, None
        if isinstance(body, Call) and body.fn is Fn.SELECT and _is_neutral(body.args[2], op.combine, acc.dtype):
            rest = emitter.strip(body.args[0])
            if rest is None or not emitter.varies(rest):
                body, condition = body.args[1], rest
        if condition is None:
            self._update(emitter, acc, body, slot)
            return
        test = emitter.cast(emitter.value(condition), DType.BOOL)
        inner: list[str] = []
        scopes = [*emitter.scopes, Scope(inner, emitter.scopes[-1].axes)]
        branch = replace(emitter, scopes=scopes, true=emitter.true | {condition}, known=dict(emitter.known))
        branch.conditional = len(emitter.scopes)
        self._update(branch, acc, body, slot)
        emitter.lane_bytes = max(emitter.lane_bytes, branch.lane_bytes)
        emitter.scopes[-1].lines += braces(f"if ({test.text})", inner)

    def _update(self, emitter: Emitter, acc: Accumulator, body: Expr, slot: str | None) -> None:
        op, lines = acc.op, emitter.scopes[-1].lines
        value = self._operand(emitter, acc, body)
        name = self.slot(acc.name, slot)
        if acc.where:
            assert isinstance(op, Reduce)
            position = emitter.cast(emitter.value(self.fixed((Axis(op.reduce_axes[0].name),))[0]), self._position(acc, emitter))
            where = self.slot(acc.where, slot)
            best = emitter.context.use("kw_best")
            lines.append(f"{best}<{BEST[op.combine]}>({name}, {where}, {value.text}, {emitter.splat(position).text});")
            return
        lines.append(_assign(name, op.combine, value, emitter))

    def _operand(self, emitter: Emitter, acc: Accumulator, body: Expr) -> Value:
        """The value to be joined, in all lanes; invalid lanes hold the neutral value."""
        value = emitter.splat(emitter.cast(emitter.value(body), acc.dtype))
        if emitter.lanes is None:
            return value
        if acc.dtype is DType.BOOL:
            value = emitter.mask(value, 4)
        if emitter.lanes.part and emitter.lanes.axis in _reduced(acc.op):
            size = value.lane_bytes
            iota = f"{emitter.context.use('kw_iota')}<{emitter.mask_type(size)}>()"
            count = f"(i{8 * size}){emitter.lanes.part}"
            other = emitter.splat(emitter.constant(neutral(acc.op.combine, acc.dtype), acc.dtype))
            if acc.dtype is DType.BOOL:
                other = emitter.mask(other, 4)
            value = replace(value, text=f"{iota} < {count} ? {value.text} : {other.text}", binds=0)
        return emitter.name(value, "v")

    # -- scans --------------------------------------------------------------------------------------------------------

    def _scan(self, emitter: Emitter, op: Scan, slot: str | None, store: Store) -> None:
        acc = self.accumulators[op.output]
        lines = emitter.scopes[-1].lines
        along = emitter.lanes is not None and emitter.lanes.axis == op.axis
        value = self._operand(emitter, acc, op.body)
        name = self.slot(acc.name, None if along else slot)
        if along:
            running = self._prefix(emitter, acc, value, name)
        else:
            running = Value(name, acc.dtype, value.vector, 0, value.mask)
            if op.exclusive:
                running = emitter.name(running, "before")
            lines.append(_assign(name, op.combine, value, emitter))
        if op.finish is not None:
            emitter.count(op.finish)
            running = replace_acc(emitter, running).value(op.finish)
        self.put(emitter, op, running, store)

    def _prefix(self, emitter: Emitter, acc: Accumulator, value: Value, name: str) -> Value:
        """The running values of one vector along the scan's axis; `name` carries the value of all before it."""
        op, lines, use = acc.op, emitter.scopes[-1].lines, emitter.context.use
        assert isinstance(op, Scan)
        start = emitter.splat(emitter.constant(neutral(op.combine, acc.dtype), acc.dtype))
        if acc.dtype is DType.BOOL:
            start = emitter.mask(start, 4)
        down = "true" if op.reverse else "false"
        join = _join(op.combine, "a", "b", emitter)
        prefix = emitter.context.fresh("prefix")
        lines.append(f"const auto {prefix} = {use('kw_prefix')}<{down}>({value.text}, {start.text}, "
                     f"[](auto a, auto b) {{ return {join}; }});")  # fmt: skip
        own = f"{use('kw_shift')}<{down}, 1>({prefix}, {start.text})" if op.exclusive else prefix
        result = emitter.context.fresh("running")
        lines.append(f"const auto {result} = {_join(op.combine, name, own, emitter)};")
        last = f"{prefix}[0]" if op.reverse else f"{prefix}[{emitter.lanes.width} - 1]" if emitter.lanes else ""
        carried = f"{use('kw_splat')}<{self._type(emitter, acc.dtype)}>({last})"
        lines.append(f"{name} = {_join(op.combine, name, carried, emitter)};")
        return Value(result, acc.dtype, True, mask=value.mask)

    # -- the end of a reduction ---------------------------------------------------------------------------------------

    def joined(self, emitter: Emitter, acc: Accumulator, lines: list[str]) -> Value:
        """All slots and lanes of a vector accumulator joined to one scalar (vector axis = a reduce axis)."""
        combine, use, name = acc.op.combine, emitter.context.use, acc.total or acc.name
        if acc.where:
            text = f"{use('kw_fold_best')}<{BEST[combine]}>({name}, {acc.where})"
            return Value(text, DType.I64)
        if self.unroll is not None:
            join = _join(combine, f"{name}[0]", f"{name}[u]", emitter)
            lines.append(f"for (int u = 1; u < {self.unroll}; ++u) {name}[0] = {join};")
            name = f"{name}[0]"
        return Value(f"{use(f'kw_fold_{FOLD[combine]}')}({name})", acc.dtype)

    def finish(self, emitter: Emitter, slot: str | None, store: Store, joined: dict[str, Value] | None = None) -> None:
        """Finish and store every Reduce; `joined` holds the scalars where lanes were joined."""
        for acc in self.accumulators.values():
            if isinstance(acc.op, Scan):
                continue
            if joined is not None:
                value = joined[acc.op.output]
            else:
                name = self.slot(acc.where or acc.total or acc.name, slot)
                vector = emitter.lanes is not None
                dtype = acc.dtype if not acc.where else self._position(acc, emitter)
                value = Value(name, dtype, vector, mask=4 if vector and dtype is DType.BOOL else 0)
            if acc.op.finish is not None:
                emitter.count(acc.op.finish)
                value = replace_acc(emitter, emitter.cast(value, acc.op.accumulate)).value(acc.op.finish)
            self.put(emitter, acc.op, value, store)


def replace_acc(emitter: Emitter, value: Value) -> Emitter:
    """The same emitter with `value` as the finished accumulator (shared scopes)."""
    return replace(emitter, acc=emitter.name(value, "acc"))


def _compared(dtype: DType) -> DType:
    """The type in which ARGMAX compares: small integers as I32."""
    return DType.I32 if dtype in (DType.BOOL, DType.U8, DType.I8, DType.I16) else dtype


def _reduced(op: Reduce | Scan) -> set[str]:
    return {op.axis} if isinstance(op, Scan) else {a.name for a in op.reduce_axes}


def _is_neutral(expr: Expr, combine: Combine, dtype: DType) -> bool:
    return isinstance(expr, Const) and expr.value == neutral(combine, dtype)


def _join(combine: Combine, a: str, b: str, emitter: Emitter) -> str:
    if combine in (Combine.MAX, Combine.MIN):
        emitter.context.use(f"kw_{combine.value}")
    return JOIN[combine].format(a=a, b=b)


def _assign(name: str, combine: Combine, value: Value, emitter: Emitter) -> str:
    short = {Combine.SUM: "+=", Combine.PROD: "*=", Combine.ANY: "|=", Combine.ALL: "&="}
    if combine in short and not (value.dtype in (DType.I16, DType.I8, DType.U8) and not value.vector):
        return f"{name} {short[combine]} {value.text};"
    cast = f"({C_TYPE[value.dtype]})" if value.dtype in (DType.I16, DType.I8, DType.U8) and not value.vector else ""
    text = _join(combine, value.text, name, emitter)
    return f"{name} = {cast}({text});" if cast else f"{name} = {text};"
