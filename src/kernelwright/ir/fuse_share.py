"""Sharing: an expensive body that a reduction and another operation both evaluate becomes a map of its own.

What it does: Graph to graph; softmax's exp(x - m), summed by one operation and divided by another, is named once, so that the
plan may keep it in a tile or have it computed twice.
What it does not do: choose between the two (see `ir.plan`). Called by plan and tests.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.ir.expr import Acc, Axis, Call, Expr, Load, children, dtype_of, transform, walk
from kernelwright.ir.fuse import change_expressions, cost, fresh
from kernelwright.ir.graph import AxisDef, Graph, Library, Map, Op, Reduce, Role, Structured, Tensor, all_axes, expressions_of

EXPENSIVE = 8.0


def share_bodies(graph: Graph) -> tuple[Graph, frozenset[str]]:
    """The graph with such bodies as maps, and the names of those."""
    ops = list(graph.ops)
    tensors = dict(graph.tensors)
    made: set[str] = set()
    for op in graph.ops:
        if not isinstance(op, Reduce) or cost(op.body) < EXPENSIVE:
            continue
        users = [(i, m) for i, x in enumerate(ops) if not isinstance(x, Library) and (m := _found(op, x)) is not None]
        if len(users) < 2:
            continue
        name = fresh(f"{op.output}_body", tensors)
        axes = _axes_like(op, [(ops[i], m) for i, m in users])
        tensors[name] = Tensor(name, tuple(a.extent for a in axes), dtype_of(op.body), Role.TEMP)
        made.add(name)
        for i, mapping in users:
            user = ops[i]
            assert not isinstance(user, Library)
            load = Load(name, tuple(Axis(mapping[a.name]) for a in axes), dtype_of(op.body))
            ops[i] = _replaced(user, op.body, mapping, load)
        ops.insert(users[0][0], Map(name, axes, op.body, op.origin))
    return replace(graph, ops=tuple(ops), tensors=tensors), frozenset(made)


def _found(op: Reduce, user: Structured) -> dict[str, str] | None:
    """How `user` names the axes of `op`'s body where it evaluates that body, None where it does not."""
    own = {a.name: a.extent for a in all_axes(user)}
    for e in (e for whole in expressions_of(user) for e in walk(whole)):
        mapping: dict[str, str] = {}
        found = isinstance(e, Call) and _matches(op.body, e, mapping) and len(mapping) == len(all_axes(op))
        if found and all(own.get(mapping[a.name]) == a.extent for a in all_axes(op)):
            return mapping
    return None


def _matches(a: Expr, b: Expr, mapping: dict[str, str]) -> bool:
    """Whether `a` is `b` under a renaming of axes one to one, which is added to `mapping`."""
    if isinstance(a, Axis) and isinstance(b, Axis):
        if a.name in mapping or b.name in mapping.values():
            return mapping.get(a.name) == b.name
        mapping[a.name] = b.name
        return True
    if type(a) is not type(b) or isinstance(a, Acc):
        return False
    if isinstance(a, Call) and isinstance(b, Call):
        if a.fn is not b.fn or a.dtype is not b.dtype:
            return False
    elif isinstance(a, Load) and isinstance(b, Load):
        if a.tensor != b.tensor:
            return False
    else:
        return a == b
    ours, theirs = children(a), children(b)
    return len(ours) == len(theirs) and all(_matches(x, y, mapping) for x, y in zip(ours, theirs, strict=True))


def _axes_like(op: Reduce, users: list[tuple[Op, dict[str, str]]]) -> tuple[AxisDef, ...]:
    """The body's axes in the order of a map that uses it, so that both walk memory alike."""
    for user, mapping in users:
        if isinstance(user, Map):
            order = [a.name for a in user.axes]
            return tuple(sorted(all_axes(op), key=lambda a: order.index(mapping[a.name])))
    return all_axes(op)


def _replaced(user: Structured, body: Expr, mapping: dict[str, str], load: Load) -> Structured:
    pattern = transform(body, lambda e: Axis(mapping[e.name]) if isinstance(e, Axis) else e)
    return change_expressions(user, lambda whole: transform(whole, lambda e: load if e == pattern else e))
