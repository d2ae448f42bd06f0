"""Scalar expressions: what one element of a tensor is.

What it does: defines the immutable expression tree that every structured operation carries, and the few helpers that walk
it. Index arithmetic and element arithmetic share this one language: an index is an expression of dtype I64.
What it does not do: evaluate (see `ir.evaluate`) or print (see `codegen`). Called by capture, schedule and printers.

Meaning. `Axis("i")` is the I64 value of loop variable i. `Load(t, (e0, e1))` is element [e0, e1] of tensor t. `Call(SELECT,
(cond, a, b))` is lazy: only the chosen branch is evaluated, so a Load under a false condition may be out of bounds.
`ACC` (an `Acc`) stands for the finished accumulator inside the `finish` expression of a Reduce, Scan or Contract.
Arithmetic follows PyTorch on the call's dtype: integer FLOORDIV and MOD round downwards; MIN and MAX propagate NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum


class DType(Enum):
    """Element types. The value is the short name used in names, files and `--input 8x1024xf32`."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U8 = "u8"
    BOOL = "bool"

    @property
    def bytes(self) -> int:
        """Size of one element in bytes."""
        return _BYTES[self]

    @property
    def is_float(self) -> bool:
        return self in (DType.F64, DType.F32, DType.F16, DType.BF16)


_BYTES = {
    DType.F64: 8, DType.F32: 4, DType.F16: 2, DType.BF16: 2, DType.I64: 8,
    DType.I32: 4, DType.I16: 2, DType.I8: 1, DType.U8: 1, DType.BOOL: 1,
}  # fmt: skip


class Fn(Enum):
    """Scalar functions. Names follow PyTorch. Comparison and logical results are BOOL."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"  # true division; operands float
    FLOORDIV = "floordiv"
    MOD = "mod"  # sign of the divisor, as torch.remainder
    FMOD = "fmod"  # sign of the dividend
    MIN = "min"  # NaN propagates, as torch.minimum
    MAX = "max"  # NaN propagates, as torch.maximum
    POW = "pow"
    ATAN2 = "atan2"
    NEG = "neg"
    ABS = "abs"
    SIGN = "sign"
    EXP = "exp"
    EXPM1 = "expm1"
    LOG = "log"
    LOG1P = "log1p"
    LOG2 = "log2"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    RECIPROCAL = "reciprocal"
    TANH = "tanh"
    SIGMOID = "sigmoid"
    ERF = "erf"
    SIN = "sin"
    COS = "cos"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"  # half to even
    TRUNC = "trunc"
    ISNAN = "isnan"
    ISINF = "isinf"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    AND = "and"  # logical on BOOL, bitwise on integers
    OR = "or"
    XOR = "xor"
    NOT = "not"
    SHL = "shl"
    SHR = "shr"
    SELECT = "select"  # (cond, if_true, if_false), lazy
    CAST = "cast"  # (value,), to the call's dtype; float to integer truncates


@dataclass(frozen=True)
class Const:
    """A literal. `value` is a Python float, int or bool; float inf and nan are allowed."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True)
class Axis:
    """The value of the loop variable `name`, dtype I64."""

    name: str


@dataclass(frozen=True)
class Load:
    """One element of tensor `tensor`. `index` has one I64 expression per dimension; `dtype` is the tensor's."""

    tensor: str
    index: tuple[Expr, ...]
    dtype: DType

    def __hash__(self) -> int:
        return _kept_hash(self, (self.tensor, self.index, self.dtype))


@dataclass(frozen=True)
class Acc:
    """The finished accumulator of the operation whose `finish` this stands in."""

    dtype: DType


@dataclass(frozen=True)
class Call:
    """A scalar function applied to expressions; `dtype` is the result's."""

    fn: Fn
    args: tuple[Expr, ...]
    dtype: DType

    def __hash__(self) -> int:
        return _kept_hash(self, (self.fn, self.args, self.dtype))


def _kept_hash(node: Load | Call, content: tuple[object, ...]) -> int:
    """Trees are immutable and asked again and again: their hash, axes and loads are kept in the node (not fields of it)."""
    kept: int | None = node.__dict__.get("_hash")
    if kept is None:
        kept = hash(content)
        node.__dict__["_hash"] = kept
    return kept


Expr = Const | Axis | Load | Acc | Call


def dtype_of(expr: Expr) -> DType:
    """The dtype of the value of `expr`."""
    return DType.I64 if isinstance(expr, Axis) else expr.dtype


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, in order."""
    if isinstance(expr, Load):
        return expr.index
    if isinstance(expr, Call):
        return expr.args
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and all its sub-expressions, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuild `expr` from the leaves up, passing every rebuilt node through `change`; what does not change stays itself."""
    if isinstance(expr, Load):
        index = tuple(transform(e, change) for e in expr.index)
        if any(new is not old for new, old in zip(index, expr.index, strict=True)):
            expr = Load(expr.tensor, index, expr.dtype)
    elif isinstance(expr, Call):
        args = tuple(transform(e, change) for e in expr.args)
        if any(new is not old for new, old in zip(args, expr.args, strict=True)):
            expr = Call(expr.fn, args, expr.dtype)
    return change(expr)


def substitute(expr: Expr, axes: dict[str, Expr]) -> Expr:
    """`expr` with each Axis named in `axes` replaced by the given expression (simultaneously)."""
    return transform(expr, lambda e: axes.get(e.name, e) if isinstance(e, Axis) else e)


def axes_in(expr: Expr) -> frozenset[str]:
    """Names of all axes that occur in `expr`."""
    if isinstance(expr, Axis):
        return frozenset((expr.name,))
    if not isinstance(expr, Load | Call):
        return frozenset()
    found: frozenset[str] | None = expr.__dict__.get("_axes")
    if found is None:
        found = frozenset().union(*(axes_in(e) for e in children(expr)))
        expr.__dict__["_axes"] = found
    return found


def loads_in(expr: Expr) -> tuple[Load, ...]:
    """All loads in `expr`, parents first, repeats kept."""
    if not isinstance(expr, Load | Call):
        return ()
    found: tuple[Load, ...] | None = expr.__dict__.get("_loads")
    if found is None:
        inner = tuple(load for e in children(expr) for load in loads_in(e))
        found = (expr, *inner) if isinstance(expr, Load) else inner
        expr.__dict__["_loads"] = found
    return found


def index(value: int) -> Const:
    """An I64 literal."""
    return Const(value, DType.I64)


def call(fn: Fn, *args: Expr, dtype: DType | None = None) -> Call:
    """`fn(*args)`; the dtype defaults to BOOL for predicates and else to the last argument's."""
    if dtype is None:
        dtype = DType.BOOL if fn in _PREDICATES else dtype_of(args[-1])
    return Call(fn, args, dtype)


_PREDICATES = {Fn.EQ, Fn.NE, Fn.LT, Fn.LE, Fn.GT, Fn.GE, Fn.ISNAN, Fn.ISINF}
