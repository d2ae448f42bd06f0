"""Rules for element-wise operators: one Map each.

What it does: PyTorch's type promotion (computed in the result's dtype, the half precisions in F32, comparisons in the
promoted dtype of their operands) and the formula of each operator, in tables.
What it does not do: views, indexing, reductions. Registered in `capture.rules.RULES`; called by `capture.lower`.
"""



from __future__ import annotations

import math
from collections.abc import Callable

from kernelwright.capture.rules import RULES, rule
from kernelwright.capture.site import (
    Ix,
    Number,
    Site,
    add,
    binary,
    broadcast,
    cast,
    compare,
    const,
    div,
    mul,
    select,
    sub,
    unary,
    wide,
)
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import DType, Expr, Fn, dtype_of
from kernelwright.ir.graph import Tensor

Operand = Tensor | Number


def value(x: Operand, s: Site, ix: Ix, dtype: DType) -> Expr:
    """Operand `x`, broadcast to the result's position `ix`, in `dtype`."""
    return cast(broadcast(x, s.shape, ix), dtype) if isinstance(x, Tensor) else const(x, dtype)


def pointwise(s: Site, formula: Callable[..., Expr], *operands: Operand) -> Tensor:
    """A Map of `formula` over operands that are all converted to the dtype the result is computed in."""
    dtype = wide(s.dtype)
    return s.map(s.shape, s.dtype, lambda ix: formula(*(value(x, s, ix, dtype) for x in operands)))


_RANK = {DType.BOOL: 0, DType.U8: 1, DType.I8: 1, DType.I16: 2, DType.I32: 3, DType.I64: 4}


def promoted(*operands: Operand) -> DType:
    """PyTorch's promoted dtype: tensors with dimensions decide, 0-d tensors and then numbers only by a higher category."""
    groups: list[list[DType]] = [[], [], []]
    for x in operands:
        groups[2 if not isinstance(x, Tensor) else 0 if x.shape else 1].append(_dtype(x))
    best: DType | None = None
    for group in groups:
        joined: DType | None = None
        for dtype in group:
            joined = dtype if joined is None else _joined(joined, dtype)
        if best is None or (joined is not None and _category(joined) > _category(best)):
            best = joined
    assert best is not None
    return best


def _dtype(x: Operand) -> DType:
    if isinstance(x, Tensor):
        return x.dtype
    return DType.BOOL if isinstance(x, bool) else DType.I64 if isinstance(x, int) else DType.F32


def _category(dtype: DType) -> int:
    return 2 if dtype.is_float else 0 if dtype is DType.BOOL else 1


def _joined(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if _category(a) != _category(b):
        return max(a, b, key=_category)
    if a.is_float:
        return DType.F32 if {a, b} == {DType.F16, DType.BF16} else max(a, b, key=lambda d: d.bytes)
    return DType.I16 if {a, b} == {DType.U8, DType.I8} else max(a, b, key=lambda d: _RANK[d])


# Formulas -------------------------------------------------------------------------------------------------------------


def _c(like: Expr, number: Number) -> Expr:
    return const(number, dtype_of(like))


def square(x: Expr) -> Expr:
    return mul(x, x)


def relu(x: Expr) -> Expr:
    return binary(Fn.MAX, x, _c(x, 0))


def softplus(x: Expr, beta: float, threshold: float) -> Expr:
    scaled = mul(x, _c(x, beta))
    soft = div(unary(Fn.LOG1P, unary(Fn.EXP, scaled)), _c(x, beta))
    return select(compare(Fn.GT, scaled, _c(x, threshold)), x, soft)


def gelu(x: Expr) -> Expr:
    """0.5 x (1 + erf(x / sqrt 2))."""
    return mul(mul(x, _c(x, 0.5)), add(unary(Fn.ERF, mul(x, _c(x, math.sqrt(0.5)))), _c(x, 1)))


def gelu_tanh(x: Expr) -> Expr:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    inner = mul(_c(x, math.sqrt(2 / math.pi)), add(x, mul(_c(x, 0.044715), mul(mul(x, x), x))))
    return mul(mul(x, _c(x, 0.5)), add(unary(Fn.TANH, inner), _c(x, 1)))


def power(x: Expr, exponent: Expr) -> Expr:
    return binary(Fn.POW, x, exponent)


def fixed_power(x: Expr, exponent: Number) -> Expr:
    """`x` to a literal power, by products and roots where PyTorch does so too."""
    if exponent in (0.5, -0.5) and dtype_of(x).is_float:
        return unary(Fn.SQRT if exponent > 0 else Fn.RSQRT, x)
    if exponent in (1, 2, 3):
        return mul(square(x), x) if exponent == 3 else square(x) if exponent == 2 else x
    if exponent in (-1, -2) and dtype_of(x).is_float:
        return unary(Fn.RECIPROCAL, square(x) if exponent == -2 else x)
    return power(x, _c(x, exponent))


def negate(x: Expr) -> Expr:
    return unary(Fn.NEG, x)


def _simple(fn: Fn) -> Callable[[Expr], Expr]:
    return lambda x: unary(fn, x)


def _whole(fn: Fn) -> Callable[[Expr], Expr]:
    """A rounding function: the identity on integers."""
    return lambda x: unary(fn, x) if dtype_of(x).is_float else x


def _pair(fn: Fn) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: binary(fn, a, b)


def _tan(x: Expr) -> Expr:
    return div(unary(Fn.SIN, x), unary(Fn.COS, x))


def _sinh_cosh(sign: Fn) -> Callable[[Expr], Expr]:
    return lambda x: mul(binary(sign, unary(Fn.EXP, x), unary(Fn.EXP, negate(x))), _c(x, 0.5))


def _log10(x: Expr) -> Expr:
    return mul(unary(Fn.LOG2, x), _c(x, math.log10(2)))


def _exp2(x: Expr) -> Expr:
    return power(_c(x, 2), x)


def _erfc(x: Expr) -> Expr:
    return sub(_c(x, 1), unary(Fn.ERF, x))


UNARY: dict[str, Callable[[Expr], Expr]] = {
    "relu.default": relu, "neg.default": negate, "abs.default": _simple(Fn.ABS), "sign.default": _simple(Fn.SIGN),
    "sgn.default": _simple(Fn.SIGN), "exp.default": _simple(Fn.EXP), "expm1.default": _simple(Fn.EXPM1),
    "log.default": _simple(Fn.LOG), "log1p.default": _simple(Fn.LOG1P), "log2.default": _simple(Fn.LOG2),
    "log10.default": _log10, "exp2.default": _exp2, "sqrt.default": _simple(Fn.SQRT), "rsqrt.default": _simple(Fn.RSQRT),
    "reciprocal.default": _simple(Fn.RECIPROCAL), "tanh.default": _simple(Fn.TANH), "sigmoid.default": _simple(Fn.SIGMOID),
    "erf.default": _simple(Fn.ERF), "erfc.default": _erfc, "sin.default": _simple(Fn.SIN), "cos.default": _simple(Fn.COS),
    "tan.default": _tan, "sinh.default": _sinh_cosh(Fn.SUB), "cosh.default": _sinh_cosh(Fn.ADD), "square.default": square,
    "floor.default": _whole(Fn.FLOOR), "ceil.default": _whole(Fn.CEIL), "round.default": _whole(Fn.ROUND),
    "trunc.default": _whole(Fn.TRUNC), "silu.default": lambda x: mul(x, unary(Fn.SIGMOID, x)),
    "hardsigmoid.default": lambda x: div(_clip(add(x, _c(x, 3)), 0, 6), _c(x, 6)),
    "hardswish.default": lambda x: div(mul(x, _clip(add(x, _c(x, 3)), 0, 6)), _c(x, 6)),
    "relu6.default": lambda x: _clip(x, 0, 6), "mish.default": lambda x: mul(x, unary(Fn.TANH, softplus(x, 1, 20))),
    "deg2rad.default": lambda x: mul(x, _c(x, math.pi / 180)),
}  # fmt: skip


def _clip(x: Expr, low: Number | None, high: Number | None) -> Expr:
    x = x if low is None else binary(Fn.MAX, x, _c(x, low))
    return x if high is None else binary(Fn.MIN, x, _c(x, high))


BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "mul.Tensor": mul, "mul.Scalar": mul, "maximum.default": _pair(Fn.MAX), "minimum.default": _pair(Fn.MIN),
    "remainder.Tensor": _pair(Fn.MOD), "remainder.Scalar": _pair(Fn.MOD),
    "remainder.Scalar_Tensor": _pair(Fn.MOD), "fmod.Tensor": _pair(Fn.FMOD), "fmod.Scalar": _pair(Fn.FMOD),
    "atan2.default": _pair(Fn.ATAN2), "pow.Tensor_Tensor": power, "pow.Scalar": power,
    "bitwise_and.Tensor": _pair(Fn.AND), "bitwise_or.Tensor": _pair(Fn.OR), "bitwise_xor.Tensor": _pair(Fn.XOR),
    "bitwise_and.Scalar": _pair(Fn.AND), "bitwise_or.Scalar": _pair(Fn.OR), "bitwise_xor.Scalar": _pair(Fn.XOR),
    "bitwise_left_shift.Tensor": _pair(Fn.SHL), "bitwise_right_shift.Tensor": _pair(Fn.SHR),
    "bitwise_left_shift.Tensor_Scalar": _pair(Fn.SHL), "bitwise_right_shift.Tensor_Scalar": _pair(Fn.SHR),
    "__lshift__.Scalar": _pair(Fn.SHL), "__rshift__.Scalar": _pair(Fn.SHR),
    "floor_divide.default": _pair(Fn.FLOORDIV),
}  # fmt: skip

PREDICATES = {"eq": Fn.EQ, "ne": Fn.NE, "lt": Fn.LT, "le": Fn.LE, "gt": Fn.GT, "ge": Fn.GE}
LOGICAL = {"logical_and": Fn.AND, "logical_or": Fn.OR, "logical_xor": Fn.XOR}


def _register_tables() -> None:
    for name, formula in UNARY.items():
        RULES[f"aten.{name}"] = lambda s, x, f=formula: pointwise(s, f, x)
    for name, pair in BINARY.items():
        RULES[f"aten.{name}"] = lambda s, a, b, f=pair: pointwise(s, f, a, b)
    for name, fn in PREDICATES.items():
        for overload in ("Tensor", "Scalar"):
            RULES[f"aten.{name}.{overload}"] = lambda s, a, b, f=fn: _compared(s, f, a, b)
    for name, fn in LOGICAL.items():
        RULES[f"aten.{name}.default"] = lambda s, a, b, f=fn: pointwise(s, _pair(f), a, b)


def _compared(s: Site, fn: Fn, a: Operand, b: Operand) -> Tensor:
    dtype = promoted(a, b)
    return s.map(s.shape, DType.BOOL, lambda ix: compare(fn, value(a, s, ix, wide(dtype)), value(b, s, ix, wide(dtype))))


_register_tables()


@rule("add.Tensor", "add.Scalar")
def _add(s: Site, a: Operand, b: Operand, alpha: Number = 1) -> Tensor:
    """Addition of bools is their disjunction, as in PyTorch."""
    fn = Fn.OR if s.dtype is DType.BOOL else Fn.ADD
    return pointwise(s, lambda x, y: binary(fn, x, y if alpha == 1 else mul(y, _c(y, alpha))), a, b)


@rule("sub.Tensor", "sub.Scalar")
def _sub(s: Site, a: Operand, b: Operand, alpha: Number = 1) -> Tensor:
    return pointwise(s, lambda x, y: binary(Fn.SUB, x, y if alpha == 1 else mul(y, _c(y, alpha))), a, b)


@rule("rsub.Tensor", "rsub.Scalar")
def _rsub(s: Site, a: Operand, b: Operand, alpha: Number = 1) -> Tensor:
    return pointwise(s, lambda x, y: binary(Fn.SUB, y, x if alpha == 1 else mul(x, _c(x, alpha))), a, b)


@rule("div.Tensor", "div.Scalar")
def _div(s: Site, a: Operand, b: Operand) -> Tensor:
    return pointwise(s, div, a, b)


@rule("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(s: Site, a: Operand, b: Operand, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return pointwise(s, div, a, b)
    if rounding_mode == "floor":
        return pointwise(s, _pair(Fn.FLOORDIV), a, b)
    if s.dtype.is_float:
        return pointwise(s, lambda x, y: unary(Fn.TRUNC, div(x, y)), a, b)
    return pointwise(s, _truncating_quotient, a, b)


def _truncating_quotient(a: Expr, b: Expr) -> Expr:
    """Integer division that rounds towards zero: the quotient of a less its remainder with the dividend's sign."""
    return binary(Fn.FLOORDIV, sub(a, binary(Fn.FMOD, a, b)), b)


@rule("pow.Tensor_Scalar")
def _pow(s: Site, x: Tensor, exponent: Number) -> Tensor:
    return pointwise(s, lambda a: fixed_power(a, exponent), x)


@rule("gelu.default")
def _gelu(s: Site, x: Tensor, approximate: str = "none") -> Tensor:
    return pointwise(s, gelu_tanh if approximate == "tanh" else gelu, x)


@rule("softplus.default")
def _softplus(s: Site, x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return pointwise(s, lambda a: softplus(a, beta, threshold), x)


@rule("leaky_relu.default")
def _leaky_relu(s: Site, x: Tensor, slope: float = 0.01) -> Tensor:
    return pointwise(s, lambda a: select(compare(Fn.GT, a, _c(a, 0)), a, mul(a, _c(a, slope))), x)


@rule("elu.default")
def _elu(s: Site, x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    def formula(a: Expr) -> Expr:
        below = mul(unary(Fn.EXPM1, mul(a, _c(a, input_scale))), _c(a, alpha * scale))
        return select(compare(Fn.GT, a, _c(a, 0)), a if scale == 1 else mul(a, _c(a, scale)), below)

    return pointwise(s, formula, x)


@rule("hardtanh.default")
def _hardtanh(s: Site, x: Tensor, low: Number = -1, high: Number = 1) -> Tensor:
    return pointwise(s, lambda a: _clip(a, low, high), x)


@rule("clamp.default")
def _clamp(s: Site, x: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor:
    return pointwise(s, lambda a: _clip(a, min, max), x)


@rule("clamp.Tensor")
def _clamp_tensor(s: Site, x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    dtype = wide(s.dtype)

    def body(ix: Ix) -> Expr:
        out = value(x, s, ix, dtype)
        out = out if min is None else binary(Fn.MAX, out, value(min, s, ix, dtype))
        return out if max is None else binary(Fn.MIN, out, value(max, s, ix, dtype))

    return s.map(s.shape, s.dtype, body)


@rule("clamp_min.default", "clamp_min.Tensor")
def _clamp_min(s: Site, x: Operand, low: Operand) -> Tensor:
    return pointwise(s, _pair(Fn.MAX), x, low)


@rule("clamp_max.default", "clamp_max.Tensor")
def _clamp_max(s: Site, x: Operand, high: Operand) -> Tensor:
    return pointwise(s, _pair(Fn.MIN), x, high)


@rule("threshold.default")
def _threshold(s: Site, x: Tensor, threshold: Number, replacement: Number) -> Tensor:
    return pointwise(s, lambda a: select(compare(Fn.LE, a, _c(a, threshold)), _c(a, replacement), a), x)


@rule("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(s: Site, cond: Tensor, a: Operand, b: Operand) -> Tensor:
    return s.map(
        s.shape,
        s.dtype,
        lambda ix: select(value(cond, s, ix, DType.BOOL), value(a, s, ix, s.dtype), value(b, s, ix, s.dtype)),
    )


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(s: Site, x: Tensor, mask: Tensor, filling: Operand) -> Tensor:
    return s.map(
        s.shape,
        s.dtype,
        lambda ix: select(value(mask, s, ix, DType.BOOL), value(filling, s, ix, s.dtype), value(x, s, ix, s.dtype)),
    )


@rule("logical_not.default")
def _logical_not(s: Site, x: Tensor) -> Tensor:
    return s.map(s.shape, DType.BOOL, lambda ix: unary(Fn.NOT, value(x, s, ix, DType.BOOL)))


@rule("bitwise_not.default")
def _bitwise_not(s: Site, x: Tensor) -> Tensor:
    return pointwise(s, lambda a: unary(Fn.NOT, a), x)


@rule("isnan.default")
def _isnan(s: Site, x: Tensor) -> Tensor:
    return _classified(s, x, lambda a: compare(Fn.NE, a, a))


@rule("isinf.default")
def _isinf(s: Site, x: Tensor) -> Tensor:
    return _classified(s, x, lambda a: compare(Fn.EQ, unary(Fn.ABS, a), _c(a, math.inf)))


@rule("isfinite.default")
def _isfinite(s: Site, x: Tensor) -> Tensor:
    return _classified(s, x, lambda a: compare(Fn.LT, unary(Fn.ABS, a), _c(a, math.inf)))


def _classified(s: Site, x: Tensor, test: Callable[[Expr], Expr]) -> Tensor:
    dtype = wide(x.dtype) if x.dtype.is_float else DType.F32
    return s.map(s.shape, DType.BOOL, lambda ix: test(value(x, s, ix, dtype)))


@rule("_to_copy.default", "to.dtype")
def _to_copy(s: Site, x: Tensor, dtype: DType | None = None, **_: object) -> Tensor:
    return s.map(s.shape, s.dtype, lambda ix: broadcast(x, s.shape, ix))


@rule("prims.convert_element_type.default")
def _convert(s: Site, x: Tensor, dtype: DType) -> Tensor:
    return s.map(s.shape, s.dtype, lambda ix: broadcast(x, s.shape, ix))


@rule("addcmul.default")
def _addcmul(s: Site, x: Operand, a: Operand, b: Operand, value: Number = 1) -> Tensor:
    return pointwise(s, lambda p, q, r: add(p, mul(mul(q, r), _c(p, value))), x, a, b)


@rule("addcdiv.default")
def _addcdiv(s: Site, x: Operand, a: Operand, b: Operand, value: Number = 1) -> Tensor:
    return pointwise(s, lambda p, q, r: add(p, mul(div(q, r), _c(p, value))), x, a, b)


@rule("lerp.Scalar", "lerp.Tensor")
def _lerp(s: Site, a: Operand, b: Operand, weight: Operand) -> Tensor:
    return pointwise(s, lambda p, q, w: add(p, mul(w, sub(q, p))), a, b, weight)


@rule("_prelu_kernel.default")
def _prelu(s: Site, x: Tensor, weight: Tensor) -> Tensor:
    return pointwise(s, lambda a, w: select(compare(Fn.GT, a, _c(a, 0)), a, mul(a, w)), x, weight)


@rule("round.decimals")
def _round_decimals(s: Site, x: Tensor, decimals: int) -> Tensor:
    if decimals == 0:
        return pointwise(s, _whole(Fn.ROUND), x)
    raise UnsupportedError("round to decimals")


__all__ = ["fixed_power", "gelu", "pointwise", "promoted", "relu", "square", "value"]
