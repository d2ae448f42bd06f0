"""The Graph: a captured reference as structured operations on named tensors.

What it does: defines the operations (map, reduce, scan, contract, library) and the Graph that holds them in execution order.
Each operation is *structured*: it names its axes and says what an element is; nothing here says in which order or with what
tiles it runs (that is `ir.tile`). Shapes are static. Tensors are dense and row-major (C order); capture expresses every
view, permutation, padding, window and gather in index expressions, so there are no strides in the IR.
What it does not do: check numerics or print. Called by capture (makes it), schedule (cuts and tiles it), printers, lab.

Windows and gathers are not kinds of their own: a window (pooling) is a Reduce whose Loads use affine indices of output and
reduce axes under SELECT guards; a gather is a Map with a Load whose index contains a Load. `classify` names them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from kernelwright.ir.expr import Call, DType, Expr, Load, axes_in, children, dtype_of, loads_in, walk


class Role(Enum):
    """What a tensor is to the program."""

    INPUT = "input"
    WEIGHT = "weight"  # a parameter or buffer of the module; `source` is its state_dict key
    CONSTANT = "constant"  # a tensor literal lifted by export; `source` is its key in Graph.constants
    TEMP = "temp"
    OUTPUT = "output"


@dataclass(frozen=True)
class Tensor:
    """A named dense row-major array. `source`: input position is not kept here but in Graph.inputs."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    role: Role
    source: str | None = None

    @property
    def size(self) -> int:
        """Number of elements (1 for a 0-d tensor, 0 for an empty one)."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.bytes


@dataclass(frozen=True)
class AxisDef:
    """A loop axis: its name, unique within one operation, and its extent (iterates 0..extent-1)."""

    name: str
    extent: int


class Combine(Enum):
    """How a reduce or scan joins two values. ARGMAX/ARGMIN give the position along the (single) reduce axis, I64."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"  # NaN propagates
    MIN = "min"
    ARGMAX = "argmax"  # first of equals; the first NaN wins
    ARGMIN = "argmin"
    ANY = "any"
    ALL = "all"


@dataclass(frozen=True)
class Map:
    """out[axes] = body. `axes` are the output's dimensions in order."""

    output: str
    axes: tuple[AxisDef, ...]
    body: Expr
    origin: str = ""  # the ATen operator(s) it came from, for reports


@dataclass(frozen=True)
class Reduce:
    """out[axes] = finish(combine over reduce_axes of body). `accumulate` is the accumulator's dtype."""

    output: str
    axes: tuple[AxisDef, ...]
    reduce_axes: tuple[AxisDef, ...]
    combine: Combine
    body: Expr
    accumulate: DType
    finish: Expr | None = None  # uses Acc and `axes`; None = the accumulator, cast to the output's dtype
    origin: str = ""


@dataclass(frozen=True)
class Scan:
    """out[axes] = finish(combine of body over positions <= this one along `axis`) (>= if reverse; strict if exclusive)."""

    output: str
    axes: tuple[AxisDef, ...]
    axis: str
    combine: Combine
    body: Expr
    accumulate: DType
    reverse: bool = False
    exclusive: bool = False
    finish: Expr | None = None
    origin: str = ""


@dataclass(frozen=True)
class LibraryCall:
    """An ATen call: `target` as in "aten.mm.default"; `args` holds tensor names (TensorRef) and JSON-able literals."""

    target: str
    args: tuple[Argument, ...]
    kwargs: tuple[tuple[str, Argument], ...] = ()


@dataclass(frozen=True)
class TensorRef:
    """A tensor argument of a LibraryCall, by name."""

    name: str


@dataclass(frozen=True)
class DTypeRef:
    """A dtype argument of a LibraryCall."""

    dtype: DType


Argument = TensorRef | DTypeRef | None | bool | int | float | str | tuple["Argument", ...]


@dataclass(frozen=True)
class Contract:
    """out[axes] = finish(sum over reduce_axes of lhs * rhs): matmul, convolution and other affine windows.

    `axes` are the output's dimensions in order. Each axis is used by lhs only (an M axis), by rhs only (N), or by both
    (batch). At least one M and one N axis exist; otherwise it is a Reduce. `library` is the ATen call that gives the same
    tensor (without `finish`), kept so that a schedule may choose the library as its leaf.
    """

    output: str
    axes: tuple[AxisDef, ...]
    reduce_axes: tuple[AxisDef, ...]
    lhs: Expr
    rhs: Expr
    accumulate: DType
    finish: Expr | None = None
    library: LibraryCall | None = None
    origin: str = ""


@dataclass(frozen=True)
class Library:
    """Tensors that stay an ATen call. `outputs` are the call's results in order (None = unused)."""

    outputs: tuple[str | None, ...]
    call: LibraryCall
    origin: str = ""
    reason: str = ""  # why there is no lowering, for the report


Op = Map | Reduce | Scan | Contract | Library
Structured = Map | Reduce | Scan | Contract


@dataclass(frozen=True)
class Graph:
    """Operations in execution order over named tensors. Each TEMP and OUTPUT is written by exactly one operation.

    `outputs` may name inputs or weights (a reference that returns its input) and may repeat a tensor. `output_tree` and
    `input_tree` describe the Python structure (see capture.export) so that the module can be called as the reference is.
    """

    name: str
    tensors: dict[str, Tensor]
    ops: tuple[Op, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    output_tree: str = "tensor"  # "tensor" | "tuple" | "list" | "none"
    constants: dict[str, bytes] = field(default_factory=dict)  # raw little-endian data of CONSTANT tensors, by source

    def producer(self, tensor: str) -> Op | None:
        """The operation that writes `tensor`, or None for inputs, weights and constants."""
        for op in self.ops:
            if tensor in outputs_of(op):
                return op
        return None


def outputs_of(op: Op) -> tuple[str, ...]:
    """Names of the tensors that `op` writes."""
    if isinstance(op, Library):
        return tuple(name for name in op.outputs if name is not None)
    return (op.output,)


def expressions_of(op: Structured) -> tuple[Expr, ...]:
    """All expressions in `op` (body or lhs and rhs, then finish)."""
    parts: tuple[Expr, ...] = (op.lhs, op.rhs) if isinstance(op, Contract) else (op.body,)
    if not isinstance(op, Map) and op.finish is not None:
        parts += (op.finish,)
    return parts


def inputs_of(op: Op) -> tuple[str, ...]:
    """Names of the tensors that `op` reads, in first-use order, without repeats."""
    if isinstance(op, Library):
        names = [a.name for a in _flat((op.call.args, tuple(v for _, v in op.call.kwargs))) if isinstance(a, TensorRef)]
    else:
        names = [load.tensor for e in expressions_of(op) for load in loads_in(e)]
    return tuple(dict.fromkeys(names))


def all_axes(op: Structured) -> tuple[AxisDef, ...]:
    """Output axes then reduce axes."""
    return op.axes + (op.reduce_axes if isinstance(op, Reduce | Contract) else ())


def classify(op: Op) -> str:
    """The family's word for `op`: map, gather, reduce, window, scan, contract or library."""
    if isinstance(op, Map):
        return "gather" if any(loads_in(i) for e in walk(op.body) if isinstance(e, Load) for i in e.index) else "map"
    if isinstance(op, Reduce):
        reduced = {a.name for a in op.reduce_axes}
        mixed = any(
            axes_in(i) & reduced and axes_in(i) - reduced for load in loads_in(op.body) for i in load.index
        )
        return "window" if mixed else "reduce"
    return type(op).__name__.lower()


def _flat(args: tuple[Argument, ...]) -> list[Argument]:
    out: list[Argument] = []
    for a in args:
        out.extend(_flat(a)) if isinstance(a, tuple) else out.append(a)
    return out


def validate(graph: Graph) -> None:
    """Raise AssertionError where the graph breaks its own rules: our bug, never the user's."""
    written = {n for n, t in graph.tensors.items() if t.role in (Role.INPUT, Role.WEIGHT, Role.CONSTANT)}
    for op in graph.ops:
        for name in inputs_of(op):
            assert name in written, f"{op.origin}: {name} is read before it is written"
        for name in outputs_of(op):
            assert name not in written, f"{name} is written twice"
            written.add(name)
        if not isinstance(op, Library):
            _validate_structured(graph, op)
    for name in graph.outputs:
        assert name in written, f"output {name} is never written"


def _validate_structured(graph: Graph, op: Structured) -> None:
    shape = tuple(a.extent for a in op.axes)
    assert graph.tensors[op.output].shape == shape, f"{op.output}: axes {shape} do not match {graph.tensors[op.output]}"
    names = [a.name for a in all_axes(op)]
    assert len(names) == len(set(names)), f"{op.output}: axis names repeat"
    for expr in expressions_of(op):
        assert axes_in(expr) <= set(names), f"{op.output}: unknown axes {axes_in(expr) - set(names)}"
        for load in loads_in(expr):
            tensor = graph.tensors[load.tensor]
            assert len(load.index) == len(tensor.shape), f"{op.output}: load of {load.tensor} has wrong rank"
            assert load.dtype == tensor.dtype, f"{op.output}: load of {load.tensor} has wrong dtype"
            assert all(dtype_of(i) == DType.I64 for i in load.index), f"{op.output}: index of {load.tensor} is not I64"


__all__ = [
    "Argument", "AxisDef", "Call", "Combine", "Contract", "DTypeRef", "Graph", "Library", "LibraryCall", "Map", "Op", "Reduce",
    "Role", "Scan", "Structured", "Tensor", "TensorRef", "all_axes", "children", "classify", "expressions_of", "inputs_of",
    "outputs_of", "validate",
]  # fmt: skip
