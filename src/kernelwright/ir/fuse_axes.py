"""Rewrites that change the axes of operations: two-level reductions, axes split as a load splits them, hoisted divisors.

What it does: Graph to graph rewrites that may look at a tensor under another dense shape. Such a *view* is a tensor of its own
in the graph, named after its base and shape; `Reshaped.views` says whose memory it is.
What it does not do: decide (see `ir.plan`). Called by plan and tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kernelwright.ir.expr import Acc, Axis, Call, DType, Expr, Fn, Load, axes_in, call, index, loads_in, transform, walk
from kernelwright.ir.fuse import (
    acc_dtype,
    change_expressions,
    extents_of,
    fresh,
    identity,
    readers,
    stored_value,
    with_ops,
)
from kernelwright.ir.graph import (
    AxisDef,
    Combine,
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
)
from kernelwright.ir.simplify import simplify

_ARG = {Combine.ARGMAX: Combine.MAX, Combine.ARGMIN: Combine.MIN}


@dataclass(frozen=True)
class Reshaped:
    """A graph in which some tensors are views: `views` maps each to the tensor whose memory it is."""

    graph: Graph
    views: dict[str, str] = field(default_factory=dict)

    def view(self, name: str, shape: tuple[int, ...]) -> tuple[str, Reshaped]:
        """The view of `name` under `shape` (made where it is missing)."""
        base = self.views.get(name, name)
        if self.graph.tensors[base].shape == shape:
            return base, self
        new = f"{base}__{'x'.join(map(str, shape))}"
        if new in self.graph.tensors:
            return new, self
        tensor = replace(self.graph.tensors[base], name=new, shape=shape)
        graph = replace(self.graph, tensors={**self.graph.tensors, new: tensor})
        return new, Reshaped(graph, {**self.views, new: base})


def split_reduction(start: Reshaped, output: str, parts: int) -> Reshaped:
    """The Reduce that writes `output` in two levels: `parts` partial results over its outermost axis, then their combination.

    ARGMAX and ARGMIN keep each part's value and position. A reduction that cannot be split is left as it is.
    """
    op = start.graph.producer(output)
    if not isinstance(op, Reduce) or parts <= 1:
        return start
    outer = outermost(op)
    if outer.extent < 2 or (op.combine in _ARG and len(op.reduce_axes) > 1):
        return start
    parts = min(parts, outer.extent)
    size = -(-outer.extent // parts)
    parts = -(-outer.extent // size)
    taken = [a.name for a in all_axes(op)]
    part, inner = AxisDef(fresh("part", taken), parts), AxisDef(fresh(f"{outer.name}_in", [*taken, "part"]), size)
    where = _split_index(part.name, inner.name, size)
    body = op.body
    if parts * size == outer.extent:
        start, body = _viewed(start, body, outer.name, part, inner)
    body = transform(body, lambda e: where if e == Axis(outer.name) else e)
    if parts * size != outer.extent:
        dtype = op.accumulate if op.combine not in _ARG else body.dtype if not isinstance(body, Axis) else DType.I64
        neutral = identity(_ARG.get(op.combine, op.combine), dtype)
        inside = call(Fn.LT, where, index(outer.extent))
        body = Call(Fn.SELECT, (inside, stored_value(body, dtype), neutral), dtype)
    reduce_axes = tuple(inner if a == outer else a for a in op.reduce_axes)
    axes = (part, *op.axes)
    extents = {a.name: a.extent for a in (*axes, *reduce_axes)}
    body = simplify(body, extents)
    partial = Reduce("", axes, reduce_axes, op.combine, body, op.accumulate, None, op.origin)
    made = _combined_positions(start.graph, op, partial, size) if op.combine in _ARG else _combined(start.graph, op, partial)
    tensors = dict(start.graph.tensors)
    for new in made:
        if new.output not in tensors:
            dtype = DType.I64 if isinstance(new, Reduce) and new.combine in _ARG else op.accumulate
            tensors[new.output] = Tensor(new.output, tuple(a.extent for a in new.axes), dtype, Role.TEMP)
    ops: list[Op] = []
    for old in start.graph.ops:
        ops.extend(made if old is op else [old])
    return Reshaped(replace(start.graph, ops=tuple(ops), tensors=tensors), start.views)


def outermost(op: Reduce) -> AxisDef:
    """The reduce axis that walks memory in the largest steps."""

    def rank(a: AxisDef) -> int:
        places = [len(load.index) - d for load in loads_in(op.body) for d, e in enumerate(load.index) if a.name in axes_in(e)]
        return max(places, default=0)

    return max(op.reduce_axes, key=rank)


def _combined(graph: Graph, op: Reduce, partial: Reduce) -> list[Structured]:
    name = fresh(f"{op.output}_parts", graph.tensors)
    value = Load(name, tuple(Axis(a.name) for a in partial.axes), op.accumulate)
    last = replace(op, reduce_axes=partial.axes[:1], body=value)
    return [replace(partial, output=name), last]


def _combined_positions(graph: Graph, op: Reduce, partial: Reduce, size: int) -> list[Structured]:
    """Value and position of each part, the first best part, and its position in the whole."""
    names = [fresh(f"{op.output}_{kind}", graph.tensors) for kind in ("values", "positions", "part")]
    where = tuple(Axis(a.name) for a in partial.axes)
    values = replace(partial, output=names[0], combine=_ARG[op.combine])
    positions = replace(partial, output=names[1])
    best = Reduce(names[2], op.axes, partial.axes[:1], op.combine, Load(names[0], where, op.accumulate), op.accumulate)
    part = Load(names[2], where[1:], DType.I64)
    inside = Load(names[1], (part, *where[1:]), DType.I64)
    whole: Expr = call(Fn.ADD, call(Fn.MUL, part, index(size)), inside)
    if op.finish is not None:
        whole = transform(op.finish, lambda e: whole if isinstance(e, Acc) else e)
    return [values, positions, best, Map(op.output, op.axes, stored_value(whole, graph.tensors[op.output].dtype), op.origin)]


def _split_index(outer: str, inner: str, size: int) -> Expr:
    return call(Fn.ADD, call(Fn.MUL, Axis(outer), index(size)), Axis(inner))


def _viewed(start: Reshaped, expr: Expr, axis: str, outer: AxisDef, inner: AxisDef) -> tuple[Reshaped, Expr]:
    """`expr` where loads with `axis` as a whole index go to a view whose dimension is split in two."""
    changed: dict[Load, Load] = {}
    for load in dict.fromkeys(loads_in(expr)):
        places = [d for d, e in enumerate(load.index) if e == Axis(axis)]
        shape = start.graph.tensors[load.tensor].shape
        if len(places) != 1 or shape[places[0]] != outer.extent * inner.extent:
            continue
        d = places[0]
        name, start = start.view(load.tensor, (*shape[:d], outer.extent, inner.extent, *shape[d + 1 :]))
        rest = (Axis(outer.name), Axis(inner.name))
        changed[load] = Load(name, (*load.index[:d], *rest, *load.index[d + 1 :]), load.dtype)
    return start, transform(expr, lambda e: changed.get(e, e) if isinstance(e, Load) else e)


def split_axes(start: Reshaped) -> Reshaped:
    """Split each axis c that some load reads as (c // d, c % d), so that indices become plain axes again.

    Done for reduce axes, and for output axes of maps that write an output (the output is then written through a view).
    """
    for position in range(len(start.graph.ops)):
        while True:
            op = start.graph.ops[position]
            found = None if isinstance(op, Library) else _pair(start.graph, op)
            if found is None:
                break
            start = _with_axis_split(start, position, *found)
    return start


def _pair(graph: Graph, op: Structured) -> tuple[AxisDef, int] | None:
    open_axes = list(op.reduce_axes) if isinstance(op, Reduce | Contract) else []
    if isinstance(op, Reduce) and op.combine in _ARG:
        open_axes = []
    if isinstance(op, Map) and graph.tensors[op.output].role is Role.OUTPUT:
        open_axes += op.axes
    for a in open_axes:
        sizes = {Fn.FLOORDIV: set[int](), Fn.MOD: set[int]()}
        for load in (load for e in expressions_of(op) for load in loads_in(e)):
            for e in (e for i in load.index for e in walk(i)):
                if isinstance(e, Call) and e.fn in sizes and e.args[0] == Axis(a.name) and not isinstance(e.args[1], Axis):
                    sizes[e.fn].add(int(getattr(e.args[1], "value", 0)))
        both = sorted(d for d in sizes[Fn.FLOORDIV] & sizes[Fn.MOD] if d > 1 and a.extent % d == 0 and a.extent > d)
        if both:
            return a, both[0]
    return None


def _with_axis_split(start: Reshaped, position: int, axis: AxisDef, size: int) -> Reshaped:
    op = start.graph.ops[position]
    assert not isinstance(op, Library)
    taken = [a.name for a in all_axes(op)]
    outer = AxisDef(fresh(f"{axis.name}_out", taken), axis.extent // size)
    inner = AxisDef(fresh(f"{axis.name}_in", taken), size)
    where = _split_index(outer.name, inner.name, size)

    def axes(old: tuple[AxisDef, ...]) -> tuple[AxisDef, ...]:
        return tuple(b for a in old for b in ((outer, inner) if a == axis else (a,)))

    for expr in expressions_of(op):
        start, new = _viewed(start, expr, axis.name, outer, inner)
        op = change_expressions(op, lambda e, old=expr, new=new: new if e is old else e)  # type: ignore[misc]
    extents = {k: v for k, v in extents_of(op).items() if k != axis.name} | {outer.name: outer.extent, inner.name: size}
    op = change_expressions(op, lambda e: simplify(transform(e, lambda n: where if n == Axis(axis.name) else n), extents))
    op = replace(op, axes=axes(op.axes))
    if isinstance(op, Reduce | Contract):
        op = replace(op, reduce_axes=axes(op.reduce_axes))
    shape = tuple(a.extent for a in op.axes)
    if shape != start.graph.tensors[op.output].shape:
        name, start = start.view(op.output, shape)
        op = replace(op, output=name)
    ops = (*start.graph.ops[:position], op, *start.graph.ops[position + 1 :])
    return Reshaped(replace(start.graph, ops=ops), start.views)


def hoist_divisors(graph: Graph) -> Graph:
    """A softmax's division leaves the operand of the contraction that reads it: sum (e / z) * v becomes (sum e * v) / z.

    Done where the quotient has that one reader and the divisor does not depend on the reduced axes. It changes rounding only
    (one division for each result instead of one for each term).
    """
    uses = readers(graph)
    bodies = {op.output: op for op in graph.ops if isinstance(op, Map) and _is_quotient(op)}
    ops: list[Op] = []
    gone: set[str] = set()
    for op in graph.ops:
        new: Op = op
        if isinstance(op, Contract):
            for side in ("lhs", "rhs"):
                load = getattr(op, side)
                producer = bodies.get(load.tensor) if isinstance(load, Load) else None
                if producer is None or len(uses[load.tensor]) != 1 or graph.tensors[load.tensor].role is not Role.TEMP:
                    continue
                hoisted = _hoisted(op, side, load, producer)
                if hoisted is not None:
                    new = hoisted
                    gone.add(load.tensor)
                    break
        ops.append(new)
    return with_ops(graph, [op for op in ops if isinstance(op, Library) or op.output not in gone])


def _is_quotient(op: Map) -> bool:
    body = op.body
    return isinstance(body, Call) and body.fn is Fn.DIV and isinstance(body.args[0], Load) and isinstance(body.args[1], Load)


def _hoisted(op: Contract, side: str, load: Load, producer: Map) -> Contract | None:
    values = dict(zip((a.name for a in producer.axes), load.index, strict=True))
    body = transform(producer.body, lambda e: values.get(e.name, e) if isinstance(e, Axis) else e)
    assert isinstance(body, Call)
    numerator, divisor = body.args
    if not axes_in(divisor) <= {a.name for a in op.axes} or len(loads_in(op.lhs)) + len(loads_in(op.rhs)) != 2:
        return None
    scaled = call(Fn.DIV, Acc(acc_dtype(op)), stored_value(divisor, op.accumulate))
    finish = scaled if op.finish is None else transform(op.finish, lambda e: scaled if isinstance(e, Acc) else e)
    return replace(op, finish=finish, lhs=numerator) if side == "lhs" else replace(op, finish=finish, rhs=numerator)


__all__ = ["Reshaped", "hoist_divisors", "outermost", "split_axes", "split_reduction"]
