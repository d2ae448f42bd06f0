"""Families: operations that one nest runs together, with one name for one shared axis.

What it does: unifies the axes of producers and consumers, finds the axes over which the nest may loop, and merges axes that
are contiguous in every access.
What it does not do: choose which operations belong together or any size (see `ir.grouping`, `ir.plan`). Called by those two.

An axis is *loopable* where every operation of the family has it as an output axis that it neither reduces nor scans, and every
load of a member's result uses it plainly: then one tile of the consumer needs exactly one tile of each producer.
A *light* operation (a small map) may lack the axis: it is computed again for each tile.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kernelwright.ir.expr import Axis, Call, DType, Expr, Fn, Load, axes_in, index, loads_in, transform
from kernelwright.ir.fuse import change_expressions, extents_of, fresh, rename_axes
from kernelwright.ir.graph import AxisDef, Contract, Map, Reduce, Scan, Structured, Tensor, all_axes, expressions_of
from kernelwright.ir.simplify import simplify

_Key = tuple[int, str]  # position of the operation, its axis name


@dataclass(frozen=True)
class Family:
    """`ops` in execution order with unified axis names; `loops` are the loopable axes in the last operation's order."""

    ops: tuple[Structured, ...]
    loops: tuple[AxisDef, ...]

    @property
    def root(self) -> Structured:
        """The operation that all others serve."""
        return self.ops[-1]


class _Classes:
    """Union-find over (operation, axis), refusing to put two axes of one operation into one class."""

    def __init__(self, ops: tuple[Structured, ...]) -> None:
        self.parent: dict[_Key, _Key] = {}
        self.extent: dict[_Key, int] = {}
        self.owners: dict[_Key, set[int]] = {}
        for i, op in enumerate(ops):
            for a in all_axes(op):
                self.parent[i, a.name] = (i, a.name)
                self.extent[i, a.name] = a.extent
                self.owners[i, a.name] = {i}

    def find(self, key: _Key) -> _Key:
        while self.parent[key] != key:
            key = self.parent[key]
        return key

    def union(self, a: _Key, b: _Key) -> bool:
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if self.extent[a] != self.extent[b] or self.owners[a] & self.owners[b]:
            return False
        self.parent[b] = a
        self.owners[a] |= self.owners.pop(b)
        return True


def unify(ops: tuple[Structured, ...], stored: Callable[[Structured], bool]) -> Family:
    """The family of `ops` (execution order, the root last). `stored` says whose results outlive the nest."""
    classes = _Classes(ops)
    produced = {op.output: i for i, op in enumerate(ops)}
    broken: set[_Key] = set()
    for i in range(len(ops) - 1, -1, -1):
        for load in (load for e in expressions_of(ops[i]) for load in loads_in(e)):
            maker = produced.get(load.tensor)
            if maker is None:
                continue
            for own, e in zip(ops[maker].axes, load.index, strict=True):
                if not isinstance(e, Axis) or not classes.union((i, e.name), (maker, own.name)):
                    broken.add((maker, own.name))
    loops = _loopable(ops, stored, classes, {classes.find(k) for k in broken})
    _align_the_rest(ops, produced, classes, loops)
    names = _names(ops, classes)
    renamed = tuple(
        rename_axes(op, {a.name: names[classes.find((i, a.name))] for a in all_axes(op)}) for i, op in enumerate(ops)
    )
    return Family(renamed, tuple(a for a in renamed[-1].axes if a.name in {names[k] for k in loops}))


def is_light(op: Structured, root: Structured) -> bool:
    """Whether computing `op` again for every tile costs next to nothing beside `root`."""
    return isinstance(op, Map) and _results(op) * 8 <= _results(root)


def _results(op: Structured) -> int:
    n = 1
    for a in op.axes:
        n *= a.extent
    return n


def _loopable(
    ops: tuple[Structured, ...], stored: Callable[[Structured], bool], classes: _Classes, broken: set[_Key]
) -> set[_Key]:
    last = len(ops) - 1
    out: set[_Key] = set()
    for a in ops[last].axes:
        key = classes.find((last, a.name))
        if key in broken:
            continue
        own = [next((x for x in all_axes(op) if classes.find((i, x.name)) == key), None) for i, op in enumerate(ops)]
        if all(_admits(op, x, ops[last], stored(op)) for op, x in zip(ops, own, strict=True)):
            out.add(key)
    return out


def _admits(op: Structured, own: AxisDef | None, root: Structured, stored: bool) -> bool:
    """Whether `op`, which calls the axis `own` (or lacks it), lets the nest loop over it."""
    if own is None:
        return is_light(op, root) and not stored
    reduced = isinstance(op, Reduce | Contract) and own in op.reduce_axes
    return not reduced and not (isinstance(op, Scan) and op.axis == own.name)


def _align_the_rest(ops: tuple[Structured, ...], produced: dict[str, int], classes: _Classes, loops: set[_Key]) -> None:
    """Give axes that walk the same dimension of a tensor one name, where they are no loops, so that stages may merge."""
    first: dict[tuple[str, int], list[_Key]] = {}
    for i, op in enumerate(ops):
        for load in (load for e in expressions_of(op) for load in loads_in(e)):
            for d, e in enumerate(load.index):
                if isinstance(e, Axis) and classes.find((i, e.name)) not in loops:
                    for other in first.setdefault((load.tensor, d), []):
                        if classes.find(other) not in loops and classes.union(other, (i, e.name)):
                            break
                    first[load.tensor, d].append((i, e.name))


def _names(ops: tuple[Structured, ...], classes: _Classes) -> dict[_Key, str]:
    names: dict[_Key, str] = {}
    for i in range(len(ops) - 1, -1, -1):
        for a in all_axes(ops[i]):
            key = classes.find((i, a.name))
            if key not in names:
                names[key] = fresh(a.name, names.values())
    return names


@dataclass(frozen=True)
class Views:
    """Tensors that stand for another one's memory under another shape: name -> tensor, name -> whose memory."""

    tensors: dict[str, Tensor]
    bases: dict[str, str]


def merge_axes(
    family: Family, tensors: dict[str, Tensor], private: Callable[[str], bool], roots: dict[str, str]
) -> tuple[Family, Views]:
    """Join neighbouring axes that every access walks as one.

    Tensors that are `private` to the family are declared anew under their own name; for the others the family uses a view
    (a tensor of the same memory under the merged shape), named after the tensor and its shape. `roots`: base of known views.
    """
    shapes = {n: tensors[n].shape for op in family.ops for n in _touched(op)}
    changed = True
    while changed:
        changed = False
        for a, b in _candidates(family):
            dims = _mergeable(family, shapes, a, b)
            if dims is not None:
                family, shapes = _merged(family, shapes, a, b, dims)
                changed = True
                break
    views = Views({}, {})
    names: dict[str, str] = {}
    for name, shape in shapes.items():
        if shape == tensors[name].shape:
            continue
        root = roots.get(name, name)
        new = name if private(name) else root if tensors[root].shape == shape else f"{root}__{'x'.join(map(str, shape))}"
        names[name] = new
        if new != root or private(name):
            views.tensors[new] = replace(tensors[name], name=new, shape=shape)
        if new != root:
            views.bases[new] = name
    return replace(family, ops=tuple(rename_tensors(op, names) for op in family.ops)), views


def rename_tensors(op: Structured, names: dict[str, str]) -> Structured:
    """`op` reading and writing other tensors of the same rank."""
    if not names:
        return op

    def one(e: Expr) -> Expr:
        return replace(e, tensor=names[e.tensor]) if isinstance(e, Load) and e.tensor in names else e

    op = change_expressions(op, lambda e: transform(e, one))
    return replace(op, output=names.get(op.output, op.output))


def _touched(op: Structured) -> Iterable[str]:
    yield op.output
    for e in expressions_of(op):
        for load in loads_in(e):
            yield load.tensor


def _candidates(family: Family) -> list[tuple[AxisDef, AxisDef]]:
    loops = {a.name for a in family.loops}
    pairs: dict[tuple[AxisDef, AxisDef], None] = {}
    for op in reversed(family.ops):
        groups = [op.axes, op.reduce_axes] if isinstance(op, Reduce | Contract) else [op.axes]
        for axes in groups:
            for a, b in itertools.pairwise(axes):
                if (a.name in loops) == (b.name in loops):
                    pairs[a, b] = None
    return list(pairs)


def _mergeable(family: Family, shapes: dict[str, tuple[int, ...]], a: AxisDef, b: AxisDef) -> dict[str, int] | None:
    """For each tensor walked by the pair the first of its two dimensions; None where some access forbids the merge."""
    dims: dict[str, int] = {}
    for op in family.ops:
        if not _paired(op, a, b):
            return None
        names = [x.name for x in op.axes]
        accesses: list[tuple[str, tuple[Expr, ...]]] = [(op.output, tuple(Axis(n) for n in names))]
        accesses += [(load.tensor, load.index) for e in expressions_of(op) for load in loads_in(e)]
        for tensor, where in accesses:
            walked = [d for d, e in enumerate(where) if axes_in(e) & {a.name, b.name}]
            if not walked:
                continue
            d = walked[0]
            plain = len(walked) == 2 and walked[1] == d + 1 and where[d] == Axis(a.name) and where[d + 1] == Axis(b.name)
            if not plain or shapes[tensor][d + 1] != b.extent or dims.setdefault(tensor, d) != d:
                return None
        if any(_outside_loads(e) & {a.name, b.name} for e in expressions_of(op)):
            return None
    return dims


def _paired(op: Structured, a: AxisDef, b: AxisDef) -> bool:
    groups: list[tuple[AxisDef, ...]] = [op.axes]
    if isinstance(op, Reduce | Contract):
        groups.append(op.reduce_axes)
    if isinstance(op, Scan) and op.axis in (a.name, b.name):
        return False
    if isinstance(op, Reduce) and op.combine.value in ("argmax", "argmin") and {a, b} & set(op.reduce_axes):
        return False
    for axes in groups:
        if (a in axes) != (b in axes):
            return False
        if a in axes and axes.index(b) != axes.index(a) + 1:
            return False
    return True


def _outside_loads(expr: Expr) -> frozenset[str]:
    """Axes used otherwise than as a whole index of a load."""
    if isinstance(expr, Axis):
        return frozenset((expr.name,))
    if isinstance(expr, Load):
        return frozenset().union(*(_outside_loads(e) for e in expr.index if not isinstance(e, Axis)))
    if isinstance(expr, Call):
        return frozenset().union(*(_outside_loads(e) for e in expr.args))
    return frozenset()


def _merged(
    family: Family, shapes: dict[str, tuple[int, ...]], a: AxisDef, b: AxisDef, dims: dict[str, int]
) -> tuple[Family, dict[str, tuple[int, ...]]]:
    joint = AxisDef(a.name, a.extent * b.extent)
    pair = (Axis(a.name), Axis(b.name))

    def axes(old: tuple[AxisDef, ...]) -> tuple[AxisDef, ...]:
        return tuple(joint if x == a else x for x in old if x != b)

    def load(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.tensor not in dims:
            return e
        d = dims[e.tensor]
        width = index(shapes[e.tensor][d + 1])
        both: Expr = pair[0]
        if e.index[d : d + 2] != pair:
            both = Call(Fn.ADD, (Call(Fn.MUL, (e.index[d], width), DType.I64), e.index[d + 1]), DType.I64)
        return replace(e, index=(*e.index[:d], both, *e.index[d + 2 :]))

    ops: list[Structured] = []
    for op in family.ops:
        extents = extents_of(op) | ({a.name: joint.extent} if a in all_axes(op) else {})
        changed = change_expressions(op, lambda e, x=extents: simplify(transform(e, load), x))  # type: ignore[misc]
        changed = replace(changed, axes=axes(op.axes))
        if isinstance(changed, Reduce | Contract):
            changed = replace(changed, reduce_axes=axes(changed.reduce_axes))
        ops.append(changed)
    new = {
        n: (*s[: dims[n]], s[dims[n]] * s[dims[n] + 1], *s[dims[n] + 2 :]) if n in dims else s for n, s in shapes.items()
    }
    return Family(tuple(ops), axes(family.loops)), new
