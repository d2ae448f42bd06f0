"""Graph to graph rewrites: dead code, inlined producers, absorbed epilogues, unit axes, two-level reductions.

What it does: each function takes a Graph and returns an equal one (the tests evaluate both sides); which of the rewrites are
worth it is decided by the caller. Fusion is substitution on index expressions; legality is decided on the IR alone.
What it does not do: form loop nests or choose sizes (see `ir.plan`). Called by plan, and by tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from kernelwright.ir.expr import Acc, Axis, Call, Const, DType, Expr, Fn, Load, dtype_of, index, loads_in, transform, walk
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
    Scan,
    Structured,
    Tensor,
    all_axes,
    expressions_of,
    inputs_of,
    outputs_of,
)
from kernelwright.ir.simplify import Extents, simplify

# Cost of one scalar function relative to an addition, on a vector unit. Only ratios matter.
COSTS = {
    Fn.DIV: 4.0, Fn.RECIPROCAL: 4.0, Fn.SQRT: 5.0, Fn.RSQRT: 6.0, Fn.FLOORDIV: 6.0, Fn.MOD: 6.0, Fn.FMOD: 20.0,
    Fn.EXP: 10.0, Fn.EXPM1: 14.0, Fn.LOG: 12.0, Fn.LOG1P: 14.0, Fn.LOG2: 12.0, Fn.TANH: 14.0, Fn.SIGMOID: 14.0,
    Fn.ERF: 18.0, Fn.SIN: 20.0, Fn.COS: 20.0, Fn.POW: 30.0, Fn.ATAN2: 30.0, Fn.SELECT: 0.5, Fn.CAST: 0.5,
}  # fmt: skip
CHEAP = 4.0  # a body that may be evaluated again instead of being stored
LARGEST = 200  # nodes that a fused expression may reach


def extents_of(op: Structured) -> Extents:
    """The extent of each of the operation's axes."""
    return {a.name: a.extent for a in all_axes(op)}


def cost(expr: Expr) -> float:
    """Arithmetic cost of one evaluation of `expr`; index arithmetic inside loads is free."""
    if not isinstance(expr, Call):
        return 0.0
    if expr.dtype in (DType.I64, DType.BOOL) and not loads_in(expr):
        return 0.0
    return COSTS.get(expr.fn, 1.0) + sum(cost(a) for a in expr.args)


def nodes(expr: Expr) -> int:
    """Number of nodes in the expression tree."""
    return sum(1 for _ in walk(expr))


def change_expressions(op: Structured, change: Callable[[Expr], Expr]) -> Structured:
    """`op` with every expression passed through `change` (whole expressions, not nodes)."""
    if isinstance(op, Map):
        return replace(op, body=change(op.body))
    finish = None if op.finish is None else change(op.finish)
    if isinstance(op, Contract):
        return replace(op, lhs=change(op.lhs), rhs=change(op.rhs), finish=finish)
    return replace(op, body=change(op.body), finish=finish)


def rename_axes(op: Structured, names: dict[str, str]) -> Structured:
    """`op` with its axes renamed (simultaneously); names that are not mentioned stay."""
    if all(k == v for k, v in names.items()):
        return op

    def new(expr: Expr) -> Expr:
        return transform(expr, lambda e: Axis(names.get(e.name, e.name)) if isinstance(e, Axis) else e)

    def axis(a: AxisDef) -> AxisDef:
        return AxisDef(names.get(a.name, a.name), a.extent)

    op = replace(change_expressions(op, new), axes=tuple(axis(a) for a in op.axes))
    if isinstance(op, Reduce | Contract):
        return replace(op, reduce_axes=tuple(axis(a) for a in op.reduce_axes))
    if isinstance(op, Scan):
        return replace(op, axis=names.get(op.axis, op.axis))
    return op


def readers(graph: Graph) -> dict[str, list[Op]]:
    """The operations that read each tensor, in execution order."""
    out: dict[str, list[Op]] = {}
    for op in graph.ops:
        for name in inputs_of(op):
            out.setdefault(name, []).append(op)
    return out


def with_ops(graph: Graph, ops: Iterable[Op]) -> Graph:
    """`graph` with other operations; temporaries that nothing mentions any more are dropped."""
    ops = tuple(ops)
    used = {n for op in ops for n in (*inputs_of(op), *outputs_of(op))} | set(graph.outputs)
    kept = {n: t for n, t in graph.tensors.items() if t.role is not Role.TEMP or n in used}
    return replace(graph, ops=ops, tensors=kept)


def drop_dead(graph: Graph) -> Graph:
    """Without the operations whose results nobody needs."""
    needed = set(graph.outputs) | {n for n, t in graph.tensors.items() if t.role is Role.OUTPUT}
    kept: list[Op] = []
    for op in reversed(graph.ops):
        if needed.intersection(outputs_of(op)):
            kept.append(op)
            needed.update(inputs_of(op))
    return with_ops(graph, reversed(kept))


def simplify_all(graph: Graph) -> Graph:
    """Every expression in canonical form."""
    ops: list[Op] = []
    for op in graph.ops:
        if isinstance(op, Library):
            ops.append(op)
        else:
            extents = extents_of(op)
            ops.append(change_expressions(op, lambda e, extents=extents: simplify(e, extents)))  # type: ignore[misc]
    return with_ops(graph, ops)


def stored_value(expr: Expr, dtype: DType) -> Expr:
    """`expr` as a tensor of `dtype` would give it back."""
    return expr if dtype_of(expr) is dtype else Call(Fn.CAST, (expr,), dtype)


def inline_maps(graph: Graph, decide: Callable[[Map, list[Op]], bool]) -> Graph:
    """Substitute the bodies of the maps that `decide` accepts into all their readers.

    `decide` sees each admissible map (a temporary that no library call reads) with its body as it is by then, and its readers.
    """
    uses = readers(graph)
    bodies: dict[str, Map] = {}
    ops: list[Op] = []
    for op in graph.ops:
        if not isinstance(op, Library) and not bodies.keys().isdisjoint(inputs_of(op)):
            op = _substituted(op, bodies, graph.tensors)  # noqa: PLW2901
        if isinstance(op, Map) and inlinable(graph, op, uses) and decide(op, uses.get(op.output, [])):
            bodies[op.output] = op
        else:
            ops.append(op)
    return with_ops(graph, ops)


def inlinable(graph: Graph, op: Op, uses: dict[str, list[Op]]) -> bool:
    """Whether `op` is a map whose value exists only for structured readers."""
    if not isinstance(op, Map) or graph.tensors[op.output].role is not Role.TEMP or op.output in graph.outputs:
        return False
    return not any(isinstance(reader, Library) for reader in uses.get(op.output, []))


def _substituted(op: Structured, bodies: dict[str, Map], tensors: dict[str, Tensor]) -> Structured:
    extents = extents_of(op)

    def one(e: Expr) -> Expr:
        if isinstance(e, Load) and e.tensor in bodies:
            producer = bodies[e.tensor]
            values = dict(zip((a.name for a in producer.axes), e.index, strict=True))
            body = transform(producer.body, lambda n: values.get(n.name, n) if isinstance(n, Axis) else n)
            return stored_value(body, tensors[e.tensor].dtype)
        return e

    return change_expressions(op, lambda e: simplify(transform(e, one), extents))


def is_view(body: Expr) -> bool:
    """Whether `body` only moves elements (a view, a permutation, a slice, padding, a gather, a cast)."""
    return cost(body) < 1.0


def reads_once(op: Structured, tensor: str) -> bool:
    """Whether `op` evaluates at most one load of each element of `tensor` (so inlining repeats no work)."""
    found = [(e, load) for e in expressions_of(op) for load in loads_in(e) if load.tensor == tensor]
    if len(found) != 1:
        return False
    where, load = found[0]
    names = [i.name for i in load.index if isinstance(i, Axis)]
    if isinstance(op, Contract) and where is not op.finish:
        return False
    domain = {a.name for a in (op.axes if not isinstance(op, Map) and where is op.finish else all_axes(op)) if a.extent > 1}
    return len(set(names)) == len(names) and domain <= set(names)


def worth_inlining(op: Map, uses: list[Op], reduced: frozenset[str] = frozenset()) -> bool:
    """The default choice: views always; arithmetic where it repeats no work, or little of it.

    Arithmetic never goes into an operand of a contraction: the tile would evaluate it many times, or pack it. Nor does a map
    that uses a result of `reduced` (tensors that reductions make) go into a reader that reduces the axis which they share: the
    map is where a nest over that axis can end.
    """
    if any(_ends_rows(op, use, reduced) for use in uses if isinstance(use, Reduce)):
        return False
    loads = {u.output: sum(load.tensor == op.output for e in expressions_of(u) for load in loads_in(e))
             for u in uses if not isinstance(u, Library)}  # fmt: skip
    total = sum(loads.values())
    if total * nodes(op.body) > LARGEST:
        return False
    price = cost(op.body)
    if price < 1.0:
        return True
    for use in uses:
        if isinstance(use, Contract):
            operands = loads_in(use.lhs) + loads_in(use.rhs)
            if any(load.tensor == op.output for load in operands):
                return False
    if total == 1 and not isinstance(uses[0], Library) and reads_once(uses[0], op.output):
        return True
    wide = sum(1 for load in set(loads_in(op.body)) if len(load.index) >= max(1, len(op.axes)))
    return price <= CHEAP and (len(uses) == 1 or wide <= 1) and total <= 4


def _ends_rows(op: Map, reader: Reduce, reduced: frozenset[str]) -> bool:
    inner = {a.name for a in reader.reduce_axes}
    crossed: set[str] = set()
    for load in loads_in(reader.body):
        if load.tensor == op.output:
            crossed |= {a.name for a, e in zip(op.axes, load.index, strict=True) if isinstance(e, Axis) and e.name in inner}
    return any(
        isinstance(e, Axis) and e.name in crossed for load in loads_in(op.body) if load.tensor in reduced for e in load.index
    )


def absorb_epilogues(graph: Graph, note: Callable[[str, str], None] = lambda old, new: None) -> Graph:
    """Maps that alone read a Contract, Reduce or Scan at their own index become its `finish`, until none is left.

    The index may permute the axes: the producer then takes the map's axis order. `note` hears of each producer's old and new
    output.
    """
    ops = list(graph.ops)
    reads = [set(inputs_of(op)) for op in ops]
    tensors = graph.tensors
    position = 0
    while position < len(ops):
        op = ops[position]
        if isinstance(op, Reduce | Scan | Contract) and tensors[op.output].role is Role.TEMP and op.output not in graph.outputs:
            uses = [i for i, names in enumerate(reads) if op.output in names]
            reader = ops[uses[0]] if len(uses) == 1 else None
            joined = None
            if isinstance(reader, Map) and not _has_sibling(op, reader, ops):
                joined = _absorbed(op, reader, tensors)
            if joined is not None:
                note(op.output, joined.output)
                ops[uses[0]] = joined
                reads[uses[0]] = set(inputs_of(joined))
                del ops[position], reads[position]
                continue
        position += 1
    return with_ops(graph, ops)


def _has_sibling(op: Structured, reader: Map, ops: list[Op]) -> bool:
    """Whether `reader` joins `op` with another reduction of the same domain: those two should run in one pass instead."""
    if not isinstance(op, Reduce):
        return False
    shape = [a.extent for a in all_axes(op)]
    read = set(inputs_of(reader)) - {op.output}
    others = [o for o in ops if isinstance(o, Reduce) and o.output in read and [a.extent for a in all_axes(o)] == shape]
    return any(op.output not in inputs_of(o) and o.output not in inputs_of(op) for o in others)


def _absorbed(op: Reduce | Scan | Contract, reader: Map, tensors: dict[str, Tensor]) -> Structured | None:
    loads = {load for load in loads_in(reader.body) if load.tensor == op.output}
    if len(loads) != 1:
        return None
    names = [i.name for i in loads.pop().index if isinstance(i, Axis)]
    if len(names) != len(op.axes) or set(names) != {a.name for a in reader.axes} or len(set(names)) != len(names):
        return None
    mapping = dict(zip((a.name for a in op.axes), names, strict=True))
    for a in op.reduce_axes if isinstance(op, Reduce | Contract) else ():
        mapping[a.name] = fresh(a.name, {*names, *mapping.values(), *mapping})
    op = rename_axes(op, mapping)  # type: ignore[assignment]
    done = stored_value(op.finish if op.finish is not None else Acc(acc_dtype(op)), tensors[op.output].dtype)
    occurrences = sum(load.tensor == op.output for load in loads_in(reader.body))
    if occurrences * nodes(done) + nodes(reader.body) > LARGEST:
        return None
    body = transform(reader.body, lambda e: done if isinstance(e, Load) and e.tensor == op.output else e)
    finish = stored_value(simplify(body, extents_of(reader)), tensors[reader.output].dtype)
    return replace(op, output=reader.output, axes=reader.axes, finish=finish, origin=joined_origin(op, reader))


def acc_dtype(op: Reduce | Scan | Contract) -> DType:
    """The dtype of the finished accumulator."""
    if not isinstance(op, Contract) and op.combine in (Combine.ARGMAX, Combine.ARGMIN):
        return DType.I64
    return op.accumulate


def joined_origin(*ops: Structured) -> str:
    """The ATen names of several operations, for reports."""
    return " ".join(dict.fromkeys(word for op in ops for word in op.origin.split()))


def fresh(name: str, taken: Iterable[str]) -> str:
    """`name`, or `name` with a number, so that it is not in `taken`."""
    taken = set(taken)
    out, n = name, 0
    while out in taken:
        n += 1
        out = f"{name}_{n}"
    return out


def squeeze(graph: Graph) -> Graph:
    """Without dimensions and axes of extent 1: tensors are declared anew (dense order makes that free).

    A contraction that would be left without an M or N axis, or without a reduce axis, becomes a Reduce. Tensors keep their
    order and size; the caller's view of them (a manifest) must use the original graph's shapes.
    """
    keep = {n: tuple(d for d, extent in enumerate(t.shape) if extent != 1) for n, t in graph.tensors.items()}
    tensors = {n: replace(t, shape=tuple(t.shape[d] for d in keep[n])) for n, t in graph.tensors.items()}

    def load(e: Expr) -> Expr:
        return replace(e, index=tuple(e.index[d] for d in keep[e.tensor])) if isinstance(e, Load) else e

    ops = [op if isinstance(op, Library) else normal(_without_units(op, load), tensors) for op in graph.ops]
    return replace(graph, ops=tuple(ops), tensors=tensors)


def _without_units(op: Structured, load: Callable[[Expr], Expr]) -> Structured:
    """`op` without its axes of extent 1, every load passed through `load`."""
    extents = extents_of(op)
    new = change_expressions(op, lambda e: simplify(transform(simplify(e, extents), load), extents))
    new = replace(new, axes=tuple(a for a in op.axes if a.extent != 1))
    if isinstance(new, Reduce | Contract):
        return replace(new, reduce_axes=tuple(a for a in new.reduce_axes if a.extent != 1))
    return new


def normal(op: Structured, tensors: dict[str, Tensor]) -> Structured:
    """`op` in its proper kind after it lost axes: a Reduce without reduce axes is a Map, a lopsided Contract a Reduce."""
    if isinstance(op, Contract):
        m, n, _ = sides(op)
        if m and n and op.reduce_axes:
            return op
        product = Call(Fn.MUL, (cast(op.lhs, op.accumulate), cast(op.rhs, op.accumulate)), op.accumulate)
        op = Reduce(op.output, op.axes, op.reduce_axes, Combine.SUM, product, op.accumulate, op.finish, op.origin)
    if isinstance(op, Scan) and op.axis not in {a.name for a in op.axes}:
        return _one_element(op, tensors)
    if isinstance(op, Reduce) and not op.reduce_axes:
        return _one_element(op, tensors)
    return op


def _one_element(op: Reduce | Scan, tensors: dict[str, Tensor]) -> Map:
    """A reduction or scan over a single position, as a map."""
    if op.combine in (Combine.ARGMAX, Combine.ARGMIN):
        value: Expr = index(0)
    elif isinstance(op, Scan) and op.exclusive:
        value = identity(op.combine, op.accumulate)
    else:
        value = cast(op.body, op.accumulate)
    if op.finish is not None:
        value = transform(op.finish, lambda e: value if isinstance(e, Acc) else e)
    return Map(op.output, op.axes, stored_value(value, tensors[op.output].dtype), op.origin)


def identity(combine: Combine, dtype: DType) -> Const:
    """The value that leaves every other one unchanged under `combine` (not for ARGMAX and ARGMIN)."""
    if combine in (Combine.MAX, Combine.MIN):
        sign = -1 if combine is Combine.MAX else 1
        if dtype.is_float:
            return Const(sign * math.inf, dtype)
        if dtype is DType.BOOL:
            return Const(combine is Combine.MIN, dtype)
        low = 0 if dtype is DType.U8 else -(1 << (8 * dtype.bytes - 1))
        return Const(low if combine is Combine.MAX else low + (1 << 8 * dtype.bytes) - 1, dtype)
    value = combine in (Combine.PROD, Combine.ALL)
    return Const(float(value) if dtype.is_float else value if dtype is DType.BOOL else int(value), dtype)


def cast(expr: Expr, dtype: DType) -> Expr:
    """`expr` converted to `dtype` where it has another."""
    return stored_value(expr, dtype)


def sides(op: Contract) -> tuple[tuple[AxisDef, ...], tuple[AxisDef, ...], tuple[AxisDef, ...]]:
    """The output axes that only lhs uses (M), that only rhs uses (N), and that both use (batch)."""
    left = {e.name for e in walk(op.lhs) if isinstance(e, Axis)}
    right = {e.name for e in walk(op.rhs) if isinstance(e, Axis)}
    m = tuple(a for a in op.axes if a.name in left and a.name not in right)
    n = tuple(a for a in op.axes if a.name in right and a.name not in left)
    return m, n, tuple(a for a in op.axes if a.name in left and a.name in right)
