"""What a lowering rule writes with: expression builders, and the Site that turns them into operations of a Graph.

What it does: small constructors for expressions (folding the trivial index arithmetic), broadcasting loads, and `Site`, which
names axes (i0, i1, ... for outputs; r0, r1, ... for reductions), makes temporaries and appends operations.
What it does not do: know any ATen operator (see `capture.rules_*`). Called by the rules and by `capture.lower`; no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kernelwright.ir.expr import Acc, Axis, Call, Const, DType, Expr, Fn, Load, dtype_of, index
from kernelwright.ir.graph import (
    Argument,
    AxisDef,
    Combine,
    Contract,
    Library,
    LibraryCall,
    Map,
    Op,
    Reduce,
    Role,
    Scan,
    Tensor,
    TensorRef,
)

Ix = tuple[Expr, ...]
Shape = tuple[int, ...]
Number = float | int | bool
TRUE = Const(True, DType.BOOL)


@dataclass(frozen=True)
class Meta:
    """Shape and dtype that torch gives a result."""

    shape: Shape
    dtype: DType


# Expressions ----------------------------------------------------------------------------------------------------------


def wide(dtype: DType) -> DType:
    """The dtype in which PyTorch on a CPU computes on elements of `dtype`: F32 for the half precisions."""
    return DType.F32 if dtype in (DType.F16, DType.BF16) else dtype


def const(value: Number, dtype: DType) -> Const:
    """A literal of `dtype`, with the Python type that goes with it."""
    return Const(float(value) if dtype.is_float else bool(value) if dtype is DType.BOOL else int(value), dtype)


def cast(expr: Expr, dtype: DType) -> Expr:
    """`expr` converted to `dtype`; nothing where it has it already."""
    if dtype_of(expr) is dtype:
        return expr
    if isinstance(expr, Const) and (dtype.is_float or not isinstance(expr.value, float)) and wide(dtype) is dtype:
        return const(expr.value, dtype)
    return Call(Fn.CAST, (expr,), dtype)


def binary(fn: Fn, a: Expr, b: Expr) -> Expr:
    """`fn(a, b)` in the dtype of its operands."""
    assert dtype_of(a) is dtype_of(b), f"{fn}: {dtype_of(a)} and {dtype_of(b)}"
    return Call(fn, (a, b), dtype_of(a))


def unary(fn: Fn, a: Expr) -> Expr:
    """`fn(a)` in the operand's dtype."""
    return Call(fn, (a,), dtype_of(a))


def _is(expr: Expr, value: int) -> bool:
    return isinstance(expr, Const) and expr.dtype is DType.I64 and expr.value == value


def _int(expr: Expr) -> int | None:
    return int(expr.value) if isinstance(expr, Const) and expr.dtype is DType.I64 else None


def add(a: Expr, b: Expr) -> Expr:
    if _is(a, 0):
        return b
    if _is(b, 0):
        return a
    x, y = _int(a), _int(b)
    return index(x + y) if x is not None and y is not None else binary(Fn.ADD, a, b)


def sub(a: Expr, b: Expr) -> Expr:
    return a if _is(b, 0) else binary(Fn.SUB, a, b)


def mul(a: Expr, b: Expr) -> Expr:
    if _is(a, 1) or _is(b, 0):
        return b
    if _is(b, 1) or _is(a, 0):
        return a
    return binary(Fn.MUL, a, b)


def div(a: Expr, b: Expr) -> Expr:
    return binary(Fn.DIV, a, b)


def floordiv(a: Expr, b: Expr) -> Expr:
    return a if _is(b, 1) else binary(Fn.FLOORDIV, a, b)


def mod(a: Expr, b: Expr) -> Expr:
    return index(0) if _is(b, 1) else binary(Fn.MOD, a, b)


def compare(fn: Fn, a: Expr, b: Expr) -> Expr:
    """A BOOL comparison of two expressions of one dtype."""
    assert dtype_of(a) is dtype_of(b), f"{fn}: {dtype_of(a)} and {dtype_of(b)}"
    return Call(fn, (a, b), DType.BOOL)


def both(a: Expr, b: Expr) -> Expr:
    return b if a == TRUE else a if b == TRUE else Call(Fn.AND, (a, b), DType.BOOL)


def select(cond: Expr, a: Expr, b: Expr) -> Expr:
    """Lazy choice; both branches have one dtype."""
    if cond == TRUE:
        return a
    assert dtype_of(a) is dtype_of(b), f"select: {dtype_of(a)} and {dtype_of(b)}"
    return Call(Fn.SELECT, (cond, a, b), dtype_of(a))


def inside(i: Expr, low: int, high: int) -> Expr:
    """low <= i < high."""
    return both(compare(Fn.GE, i, index(low)), compare(Fn.LT, i, index(high)))


def load(x: Tensor, ix: Sequence[Expr]) -> Load:
    """Element `ix` of `x`."""
    assert len(ix) == len(x.shape), f"{x.name}: {len(ix)} indices for {x.shape}"
    return Load(x.name, tuple(ix), x.dtype)


def entry(x: Tensor | None, ix: Sequence[Expr]) -> Expr | None:
    """Element `ix` of an optional tensor."""
    return None if x is None else load(x, ix)


def aligned(shape: Shape, out: Shape, ix: Ix) -> Ix:
    """The index into a tensor of `shape` that broadcasts to `out` at `ix`."""
    tail = ix[len(ix) - len(shape) :]
    extents = out[len(out) - len(shape) :]
    return tuple(index(0) if n == 1 and m != 1 else i for n, m, i in zip(shape, extents, tail, strict=True))


def broadcast(x: Tensor, out: Shape, ix: Ix) -> Load:
    """The element of `x` that broadcasts to position `ix` of a tensor of shape `out`."""
    return load(x, aligned(x.shape, out, ix))


def axis_number(dim: int, rank: int) -> int:
    """A non-negative dimension number."""
    return dim % rank if rank else 0


def named(prefix: str, shape: Sequence[int]) -> tuple[AxisDef, ...]:
    return tuple(AxisDef(f"{prefix}{d}", n) for d, n in enumerate(shape))


def points(axes: tuple[AxisDef, ...]) -> Ix:
    return tuple(Axis(a.name) for a in axes)


# Operations -----------------------------------------------------------------------------------------------------------


@dataclass
class Writing:
    """The tensors and operations of the graph under construction."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    count: int = 0


@dataclass(frozen=True)
class Site:
    """One ATen node being lowered: what torch says of its results, and where its operations go."""

    writing: Writing
    target: str  # "aten.relu.default"
    results: tuple[Meta, ...]
    origin: str = ""

    @property
    def shape(self) -> Shape:
        """Shape of the (first) result."""
        return self.results[0].shape

    @property
    def dtype(self) -> DType:
        """Dtype of the (first) result."""
        return self.results[0].dtype

    def temp(self, shape: Shape, dtype: DType) -> Tensor:
        """A new temporary."""
        word = "".join(c for c in self.target.split(".")[1] if c.isalnum() or c == "_").strip("_")
        tensor = Tensor(f"t{self.writing.count}_{word}", shape, dtype, Role.TEMP)
        self.writing.count += 1
        self.writing.tensors[tensor.name] = tensor
        return tensor

    def map(self, shape: Shape, dtype: DType, body: Callable[[Ix], Expr]) -> Tensor:
        """A tensor whose element at ix is `body(ix)`, cast to `dtype`."""
        out = self.temp(shape, dtype)
        axes = named("i", shape)
        self.writing.ops.append(Map(out.name, axes, cast(body(points(axes)), dtype), self.origin))
        return out

    def reduce(
        self,
        out: Meta,
        over: Sequence[int],
        combine: Combine,
        body: Callable[[Ix, Ix], Expr],
        finish: Callable[[Expr, Ix], Expr] | None = None,
    ) -> Tensor:
        """A tensor whose element at ix joins `body(ix, rx)` over rx in `over`; the body's dtype is the accumulator's."""
        tensor = self.temp(out.shape, out.dtype)
        axes, reduce_axes = named("i", out.shape), named("r", over)
        value = body(points(axes), points(reduce_axes))
        positions = combine in (Combine.ARGMAX, Combine.ARGMIN)
        end = finish(Acc(DType.I64 if positions else dtype_of(value)), points(axes)) if finish is not None else None
        end = None if end is None else cast(end, out.dtype)
        op = Reduce(tensor.name, axes, reduce_axes, combine, value, dtype_of(value), end, self.origin)
        self.writing.ops.append(op)
        return tensor

    def scan(
        self,
        out: Meta,
        along: int,
        combine: Combine,
        body: Callable[[Ix], Expr],
        reverse: bool = False,
    ) -> Tensor:
        """A tensor that joins `body` over the positions up to each one, along dimension `along`."""
        tensor = self.temp(out.shape, out.dtype)
        axes = named("i", out.shape)
        value = body(points(axes))
        op = Scan(
            tensor.name, axes, axes[along].name, combine, value, dtype_of(value), reverse=reverse, origin=self.origin
        )
        self.writing.ops.append(op)
        return tensor

    def contract(
        self,
        out: Meta,
        over: Sequence[int],
        *,
        lhs: Callable[[Ix, Ix], Expr],
        rhs: Callable[[Ix, Ix], Expr],
        library: LibraryCall | None,
        finish: Callable[[Expr, Ix], Expr] | None = None,
    ) -> Tensor:
        """The sum over rx in `over` of lhs(ix, rx) * rhs(ix, rx). A Reduce where one side has no axis of its own."""
        axes, reduce_axes = named("i", out.shape), named("r", over)
        ix, rx = points(axes), points(reduce_axes)
        left, right = lhs(ix, rx), rhs(ix, rx)
        accumulate = wide(dtype_of(left))
        if not _has_both_sides(left, right, axes):

            def product(jx: Ix, sx: Ix) -> Expr:
                return mul(cast(lhs(jx, sx), accumulate), cast(rhs(jx, sx), accumulate))

            return self.reduce(out, over, Combine.SUM, product, finish)
        tensor = self.temp(out.shape, out.dtype)
        end = None if finish is None else cast(finish(Acc(accumulate), ix), out.dtype)
        op = Contract(tensor.name, axes, reduce_axes, left, right, accumulate, end, library, self.origin)
        self.writing.ops.append(op)
        return tensor

    def library(self, call: LibraryCall, results: Sequence[Meta], reason: str) -> tuple[Tensor, ...]:
        """The results of an ATen call that stays one."""
        tensors = tuple(self.temp(m.shape, m.dtype) for m in results)
        self.writing.ops.append(Library(tuple(t.name for t in tensors), call, self.origin, reason))
        return tensors


def _has_both_sides(left: Expr, right: Expr, axes: tuple[AxisDef, ...]) -> bool:
    from kernelwright.ir.expr import axes_in

    names = {a.name for a in axes}
    mine, theirs = axes_in(left) & names, axes_in(right) & names
    return bool(mine - theirs) and bool(theirs - mine)


def library_call(target: str, *args: Argument | Tensor, **kwargs: Argument | Tensor) -> LibraryCall:
    """An ATen call on tensors and literals."""
    return LibraryCall(target, tuple(_reference(a) for a in args), tuple((k, _reference(v)) for k, v in kwargs.items()))


def _reference(argument: Argument | Tensor) -> Argument:
    return TensorRef(argument.name) if isinstance(argument, Tensor) else argument
