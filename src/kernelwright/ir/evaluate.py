"""The meaning of the IR, in plain vectorised numpy.

What it does: evaluates a Graph, or one structured operation on its whole domain or a tile of it. Everything that rewrites,
plans or prints the IR is checked against this module.
What it does not do: run fast, save memory, or run ATen calls (a callback does). Called by tests, by program evaluation, and
by the Lab's self-checks; imports no torch.

Arrays. Every dtype has its numpy twin, except BF16: numpy has none, so a BF16 tensor is a float32 array whose values are
rounded to BF16 (`rounded_to_bf16`), and each Call of dtype BF16 is computed in float32 and rounded. F16 is numpy's float16.
SELECT is lazy in effect: below a SELECT an index out of bounds is clipped and its value never used; elsewhere it is an
IndexError, because the IR promises that such a load is in bounds.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.ir.expr import Acc, Axis, Call, Const, DType, Expr, Fn, Load, axes_in, dtype_of
from kernelwright.ir.graph import (
    Combine,
    Contract,
    Graph,
    Library,
    LibraryCall,
    Map,
    Op,
    Reduce,
    Role,
    Scan,
    Structured,
    Tensor,
    all_axes,
)

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
RunLibrary = Callable[[LibraryCall, dict[str, Array]], tuple[Array, ...]]
Ranges = Mapping[str, tuple[int, int]]  # axis -> [low, high)

NUMPY: dict[DType, type[np.generic]] = {
    DType.F64: np.float64, DType.F32: np.float32, DType.F16: np.float16, DType.BF16: np.float32, DType.I64: np.int64,
    DType.I32: np.int32, DType.I16: np.int16, DType.I8: np.int8, DType.U8: np.uint8, DType.BOOL: np.bool_,
}  # fmt: skip


def evaluate(graph: Graph, tensors: Arrays, library: RunLibrary | None = None) -> dict[str, Array]:
    """The arrays of `graph.outputs`, by name. `tensors` has the inputs and weights (constants come from the graph).

    `library` runs one ATen call on arrays and gives all its results in order; without it a Library operation is a ValueError.
    """
    arrays: dict[str, Array] = {}
    for name, tensor in graph.tensors.items():
        if name in tensors:
            arrays[name] = as_array(tensors[name], tensor.dtype)
        elif tensor.role is Role.CONSTANT and tensor.source is not None:
            arrays[name] = from_bytes(graph.constants[tensor.source], tensor.shape, tensor.dtype)
    for op in graph.ops:
        if isinstance(op, Library):
            arrays.update(evaluate_library(op, graph.tensors, arrays, library))
        else:
            arrays[op.output] = evaluate_op(op, graph.tensors, arrays)
    return {name: arrays[name] for name in graph.outputs}


def evaluate_library(
    op: Library, tensors: Mapping[str, Tensor], arrays: Arrays, library: RunLibrary | None
) -> dict[str, Array]:
    """The used results of one library call, by name."""
    if library is None:
        raise ValueError(f"the graph calls {op.call.target}, and no library was given")
    results = library(op.call, dict(arrays))
    named = zip(op.outputs, results, strict=False)
    return {name: as_array(value, tensors[name].dtype) for name, value in named if name is not None}


def evaluate_op(
    op: Op, tensors: Mapping[str, Tensor], arrays: Arrays, library: RunLibrary | None = None, ranges: Ranges | None = None
) -> Array:
    """The value of `op` over its axes, or over the part of its domain that `ranges` gives for some axes.

    `arrays` holds what the operation reads. Under `ranges` the result has the tile's shape, and ARGMAX positions stay absolute.
    For a Library operation it is the first used result (`evaluate_library` gives all).
    """
    if isinstance(op, Library):
        return next(iter(evaluate_library(op, tensors, arrays, library).values()))
    with np.errstate(all="ignore"):
        return _structured(op, tensors, arrays, ranges or {})


def as_array(value: npt.ArrayLike, dtype: DType) -> Array:
    """`value` as the numpy array that stands for a tensor of `dtype`."""
    array = np.asarray(value, dtype=NUMPY[dtype])
    return rounded_to_bf16(array) if dtype is DType.BF16 else array


def from_bytes(data: bytes, shape: tuple[int, ...], dtype: DType) -> Array:
    """The array whose raw little-endian elements are `data`."""
    if dtype is DType.BF16:
        high = np.frombuffer(data, dtype="<u2").astype(np.uint32) << 16
        return high.view(np.float32).reshape(shape)
    return np.frombuffer(data, dtype=np.dtype(NUMPY[dtype]).newbyteorder("<")).reshape(shape).astype(NUMPY[dtype])


def rounded_to_bf16(array: Array) -> Array:
    """float32 values rounded to the nearest BF16 (half to even), still as float32."""
    array = np.ascontiguousarray(array, dtype=np.float32).reshape(np.shape(array))
    bits = array.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(array), array, rounded)


# Structured operations ------------------------------------------------------------------------------------------------


def _structured(op: Structured, tensors: Mapping[str, Tensor], arrays: Arrays, ranges: Ranges) -> Array:
    bounds = {a.name: ranges.get(a.name, (0, a.extent)) for a in all_axes(op)}
    names = [a.name for a in op.axes]
    if isinstance(op, Map):
        value = _full(_Evaluator(names, bounds, arrays), op.body)
    elif isinstance(op, Scan):
        value = _scan(op, names, bounds, arrays)
    else:
        value = _reduce(op, names, bounds, arrays) if isinstance(op, Reduce) else _contract(op, names, bounds, arrays)
    if not isinstance(op, Map) and op.finish is not None:
        value = _full(_Evaluator(names, bounds, arrays, acc=value), op.finish)
    return as_array(np.ascontiguousarray(value).reshape(value.shape), tensors[op.output].dtype)


def _full(evaluator: _Evaluator, expr: Expr) -> Array:
    return np.broadcast_to(evaluator.value(expr), evaluator.shape)


def _reduce(op: Reduce, names: list[str], bounds: dict[str, tuple[int, int]], arrays: Arrays) -> Array:
    reduced = [a.name for a in op.reduce_axes]
    body = _full(_Evaluator(names + reduced, bounds, arrays), op.body)
    over = tuple(range(len(names), len(names) + len(reduced)))
    if op.combine in (Combine.ARGMAX, Combine.ARGMIN):
        pick = np.argmax if op.combine is Combine.ARGMAX else np.argmin
        return np.asarray(pick(body, axis=over[0]), dtype=np.int64) + bounds[reduced[0]][0]
    body = as_array(body, op.accumulate)
    if op.combine in (Combine.ANY, Combine.ALL):
        return np.asarray((np.any if op.combine is Combine.ANY else np.all)(body, axis=over))
    start = identity(op.combine, op.accumulate)
    ufunc = {Combine.SUM: np.add, Combine.PROD: np.multiply, Combine.MAX: np.maximum, Combine.MIN: np.minimum}[op.combine]
    return as_array(ufunc.reduce(body, axis=over, dtype=body.dtype, initial=start), op.accumulate)


def identity(combine: Combine, dtype: DType) -> float | int | bool:
    """The value that leaves the other operand of `combine` unchanged, in `dtype`."""
    if combine is Combine.SUM:
        return 0
    if combine is Combine.PROD:
        return 1
    if combine in (Combine.ANY, Combine.ALL):
        return combine is Combine.ALL
    low = combine in (Combine.MAX, Combine.ARGMAX)
    if dtype.is_float:
        return -math.inf if low else math.inf
    if dtype is DType.BOOL:
        return not low
    info = np.iinfo(np.dtype(NUMPY[dtype]).name)
    return int(info.min if low else info.max)


def _scan(op: Scan, names: list[str], bounds: dict[str, tuple[int, int]], arrays: Arrays) -> Array:
    along = names.index(op.axis)
    body = as_array(_full(_Evaluator(names, bounds, arrays), op.body), op.accumulate)
    body = np.flip(body, along) if op.reverse else body
    if op.combine in (Combine.ARGMAX, Combine.ARGMIN):
        raise ValueError("a scan has no positions")
    ufuncs = {
        Combine.SUM: np.add, Combine.PROD: np.multiply, Combine.MAX: np.maximum, Combine.MIN: np.minimum,
        Combine.ANY: np.logical_or, Combine.ALL: np.logical_and,
    }  # fmt: skip
    value = ufuncs[op.combine].accumulate(body, axis=along, dtype=body.dtype) if body.size else body
    if op.exclusive and body.shape[along]:
        first = np.full_like(np.take(value, [0], along), identity(op.combine, op.accumulate))
        value = np.concatenate([first, np.take(value, range(body.shape[along] - 1), along)], along)
    value = np.flip(value, along) if op.reverse else value
    return as_array(value, op.accumulate)


def _contract(op: Contract, names: list[str], bounds: dict[str, tuple[int, int]], arrays: Arrays) -> Array:
    """By einsum, with each operand over its own axes; an axis that neither uses is given to lhs."""
    everything = names + [a.name for a in op.reduce_axes]
    right = [n for n in everything if n in axes_in(op.rhs)]
    left = [n for n in everything if n in axes_in(op.lhs) or n not in right]
    letters = dict(zip(everything, string.ascii_letters, strict=False))
    operands = [
        as_array(_full(_Evaluator(own, bounds, arrays), expr), op.accumulate)
        for own, expr in ((left, op.lhs), (right, op.rhs))
    ]
    spelled = ["".join(letters[n] for n in axes) for axes in (left, right, names)]
    return as_array(np.einsum(f"{spelled[0]},{spelled[1]}->{spelled[2]}", *operands, optimize=True), op.accumulate)


# Expressions ----------------------------------------------------------------------------------------------------------


class _Evaluator:
    """Evaluates expressions over one box of axes, sharing the values of shared sub-expressions."""

    def __init__(
        self, axes: list[str], bounds: Mapping[str, tuple[int, int]], arrays: Arrays, acc: Array | None = None
    ) -> None:
        self.axes = {name: position for position, name in enumerate(axes)}
        self.shape = tuple(bounds[n][1] - bounds[n][0] for n in axes)
        self.bounds = bounds
        self.arrays = arrays
        self.acc = acc
        self.known: dict[tuple[int, bool], Array] = {}

    def value(self, expr: Expr, guarded: bool = False) -> Array:
        """The value of `expr`, broadcastable to the box. `guarded`: below a SELECT, so loads clip their indices."""
        key = (id(expr), guarded)
        if key not in self.known:
            self.known[key] = self._value(expr, guarded)
        return self.known[key]

    def _value(self, expr: Expr, guarded: bool) -> Array:
        match expr:
            case Const(value, dtype):
                return as_array(value, dtype)
            case Axis(name):
                low, high = self.bounds[name]
                position = self.axes[name]
                return np.arange(low, high, dtype=np.int64).reshape([-1 if d == position else 1 for d in range(len(self.axes))])
            case Acc():
                assert self.acc is not None, "an accumulator outside finish"
                return self.acc
            case Load():
                return self._load(expr, guarded)
            case Call(Fn.SELECT, (cond, a, b), dtype):
                chosen = np.where(self.value(cond, guarded), self.value(a, True), self.value(b, True))
                return as_array(chosen, dtype)
            case _:
                return apply(expr.fn, [self.value(a, guarded) for a in expr.args], expr.dtype, dtype_of(expr.args[0]))

    def _load(self, load: Load, guarded: bool) -> Array:
        array = self.arrays[load.tensor]
        index = [self.value(i, guarded) for i in load.index]
        where = np.broadcast_shapes(*(i.shape for i in index)) if index else ()
        if guarded:
            if array.size == 0:
                return np.zeros(where, array.dtype)
            index = [np.clip(i, 0, n - 1) for i, n in zip(index, array.shape, strict=True)]
        for i, n in zip(index, array.shape, strict=True):
            if i.size and (i.min() < 0 or i.max() >= n):
                raise IndexError(f"index {i.min()}..{i.max()} of {load.tensor} is outside 0..{n - 1}")
        return np.asarray(array[tuple(index)])


def apply(fn: Fn, args: list[Array], dtype: DType, operand: DType) -> Array:
    """`fn` on arrays, computed in `dtype` (a predicate: in the dtype of its operands, `operand` being the first's)."""
    if fn is Fn.CAST:
        return _cast(args[0], dtype, operand)
    if fn in _PREDICATES:
        return np.asarray(_PREDICATES[fn](*args))
    args = [a if a.dtype == NUMPY[dtype] else a.astype(NUMPY[dtype]) for a in args]
    if fn in _LOGICAL:
        on_bool, on_int = _LOGICAL[fn]
        return np.asarray((on_bool if dtype is DType.BOOL else on_int)(*args))
    return as_array(_ARITHMETIC[fn](*args), dtype)


def _cast(value: Array, dtype: DType, source: DType) -> Array:
    if dtype is DType.BOOL:
        return np.asarray(value != 0)
    if source.is_float and not dtype.is_float:
        return np.trunc(value).astype(np.int64).astype(NUMPY[dtype])
    return as_array(value, dtype)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(np.power(a, b))
    positive = np.power(a, np.maximum(b, 0))
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b >= 0, positive, inverse)


def _sigmoid(a: Array) -> Array:
    wide = a.astype(np.float64)
    return np.asarray(np.where(wide >= 0, 1 / (1 + np.exp(-wide)), np.exp(wide) / (1 + np.exp(wide))))


def _erf(a: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a.astype(np.float64)), dtype=np.float64)


_PREDICATES: dict[Fn, Callable[..., Any]] = {
    Fn.EQ: np.equal, Fn.NE: np.not_equal, Fn.LT: np.less, Fn.LE: np.less_equal, Fn.GT: np.greater, Fn.GE: np.greater_equal,
    Fn.ISNAN: np.isnan, Fn.ISINF: np.isinf,
}  # fmt: skip

_LOGICAL: dict[Fn, tuple[Callable[..., Any], Callable[..., Any]]] = {
    Fn.AND: (np.logical_and, np.bitwise_and),
    Fn.OR: (np.logical_or, np.bitwise_or),
    Fn.XOR: (np.logical_xor, np.bitwise_xor),
    Fn.NOT: (np.logical_not, np.invert),
}

_ARITHMETIC: dict[Fn, Callable[..., Any]] = {
    Fn.ADD: np.add, Fn.SUB: np.subtract, Fn.MUL: np.multiply, Fn.DIV: np.true_divide, Fn.FLOORDIV: np.floor_divide,
    Fn.MOD: np.mod, Fn.FMOD: np.fmod, Fn.MIN: np.minimum, Fn.MAX: np.maximum, Fn.POW: _power, Fn.ATAN2: np.arctan2,
    Fn.NEG: np.negative, Fn.ABS: np.abs, Fn.SIGN: lambda a: (a > 0).astype(a.dtype) - (a < 0).astype(a.dtype),
    Fn.EXP: np.exp, Fn.EXPM1: np.expm1, Fn.LOG: np.log, Fn.LOG1P: np.log1p, Fn.LOG2: np.log2, Fn.SQRT: np.sqrt,
    Fn.RSQRT: lambda a: 1 / np.sqrt(a), Fn.RECIPROCAL: lambda a: 1 / a, Fn.TANH: np.tanh, Fn.SIGMOID: _sigmoid, Fn.ERF: _erf,
    Fn.SIN: np.sin, Fn.COS: np.cos, Fn.FLOOR: np.floor, Fn.CEIL: np.ceil, Fn.ROUND: np.rint, Fn.TRUNC: np.trunc,
    Fn.SHL: np.left_shift, Fn.SHR: np.right_shift,
}  # fmt: skip
