"""Rules for reductions, scans and normalisations.

What it does: sums, means, extrema, positions, norms, variance (two passes), softmax (less the maximum), layer, group and
batch normalisation, cumulative operators. The half precisions accumulate in F32.
What it does not do: windows (see `rules_window`). Registered in `capture.rules.RULES`; called by `capture.lower`.
"""

# ruff: noqa: PLR0917 (rules have ATen's own arguments)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.capture.rules import RULES, rule
from kernelwright.capture.rules_pointwise import fixed_power, square
from kernelwright.capture.rules_view import regrouped, viewed
from kernelwright.capture.site import (
    Ix,
    Meta,
    Number,
    Shape,
    Site,
    add,
    axis_number,
    cast,
    compare,
    const,
    div,
    entry,
    floordiv,
    load,
    mul,
    select,
    sub,
    unary,
    wide,
)
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import DType, Expr, Fn, dtype_of, index
from kernelwright.ir.graph import Combine, Tensor

Dims = Sequence[int] | int | None


def dims_of(dims: Dims, rank: int) -> tuple[int, ...]:
    """The reduced dimensions, sorted; None and () mean all."""
    if dims is None or (not isinstance(dims, int) and not dims):
        return tuple(range(rank))
    return tuple(sorted({axis_number(d, rank) for d in ((dims,) if isinstance(dims, int) else dims)}))


def merged(ix: Sequence[Expr], rx: Sequence[Expr], dims: Sequence[int], rank: int) -> Ix:
    """A full index from the kept indices `ix` and the reduced ones `rx`, those at `dims`."""
    kept, reduced = iter(ix), iter(rx)
    return tuple(next(reduced) if d in dims else next(kept) for d in range(rank))


def kept_shape(shape: Shape, dims: Sequence[int]) -> Shape:
    return tuple(n for d, n in enumerate(shape) if d not in dims)


def reduced(
    s: Site,
    x: Tensor,
    dims: tuple[int, ...],
    combine: Combine,
    *,
    body: Callable[[Expr], Expr],
    finish: Callable[[Expr], Expr] | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """`x` reduced over `dims`, which are dropped from the shape."""
    end = None if finish is None else (lambda acc, ix: finish(acc))
    return s.reduce(
        Meta(kept_shape(x.shape, dims), dtype or s.dtype),
        [x.shape[d] for d in dims],
        combine,
        lambda ix, rx: body(load(x, merged(ix, rx, dims, len(x.shape)))),
        end,
    )


def whole(s: Site, x: Tensor, dims: Dims, combine: Combine, body: Callable[[Expr], Expr], **more: object) -> Tensor:
    """A reduction in the shape that torch gives it (keepdim or not)."""
    finish = more.get("finish")
    assert finish is None or callable(finish)
    return viewed(s, reduced(s, x, dims_of(dims, len(x.shape)), combine, body=body, finish=finish), s.shape)


def _as(dtype: DType) -> Callable[[Expr], Expr]:
    return lambda e: cast(e, wide(dtype))


@rule("sum.dim_IntList", "sum.default", "nansum.default")
def _sum(s: Site, x: Tensor, dims: Dims = None, keepdim: bool = False, **_: object) -> Tensor:
    if s.target.startswith("aten.nansum"):
        zero = const(0, wide(s.dtype))
        return whole(s, x, dims, Combine.SUM, lambda e: _without_nan(cast(e, wide(s.dtype)), zero))
    return whole(s, x, dims, Combine.SUM, _as(s.dtype))


def _without_nan(e: Expr, zero: Expr) -> Expr:
    return select(compare(Fn.EQ, e, e), e, zero)


@rule("mean.dim", "mean.default")
def _mean(s: Site, x: Tensor, dims: Dims = None, keepdim: bool = False, **_: object) -> Tensor:
    count = math.prod(x.shape[d] for d in dims_of(dims, len(x.shape)))
    return whole(s, x, dims, Combine.SUM, _as(s.dtype), finish=_over(count))


def _over(count: float) -> Callable[[Expr], Expr]:
    """Division by a number of elements (0 gives NaN or infinity, as in PyTorch)."""
    return lambda acc: div(acc, const(count, dtype_of(acc)))


@rule("prod.default", "prod.dim_int")
def _prod(s: Site, x: Tensor, dims: Dims = None, keepdim: bool = False, **_: object) -> Tensor:
    return whole(s, x, dims, Combine.PROD, _as(s.dtype))


@rule("amax.default", "max.default")
def _amax(s: Site, x: Tensor, dims: Dims = None, keepdim: bool = False) -> Tensor:
    return whole(s, x, dims, Combine.MAX, lambda e: e)


@rule("amin.default", "min.default")
def _amin(s: Site, x: Tensor, dims: Dims = None, keepdim: bool = False) -> Tensor:
    return whole(s, x, dims, Combine.MIN, lambda e: e)


@rule("any.dim", "any.dims", "any.default")
def _any(s: Site, x: Tensor, dims: Dims = None, keepdim: bool = False) -> Tensor:
    return whole(s, x, dims, Combine.ANY, lambda e: cast(e, DType.BOOL))


@rule("all.dim", "all.dims", "all.default")
def _all(s: Site, x: Tensor, dims: Dims = None, keepdim: bool = False) -> Tensor:
    return whole(s, x, dims, Combine.ALL, lambda e: cast(e, DType.BOOL))


def _position(combine: Combine) -> Callable[..., Tensor]:
    def lower(s: Site, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if dim is not None or len(x.shape) == 1:
            return whole(s, x, dim if x.shape else None, combine, lambda e: e) if x.shape else _zero(s)
        flat = (math.prod(x.shape),)
        if not x.shape:
            return _zero(s)
        out = s.reduce(Meta((), s.dtype), flat, combine, lambda ix, rx: load(x, regrouped(x.shape, flat, rx)))
        return viewed(s, out, s.shape)

    return lower


def _zero(s: Site) -> Tensor:
    return s.map(s.shape, s.dtype, lambda ix: const(0, s.dtype))


def _extremum(value: Combine, position: Combine) -> Callable[..., tuple[Tensor, Tensor]]:
    def lower(s: Site, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        if not x.shape:
            return x, s.map((), DType.I64, lambda ix: index(0))
        dims = dims_of(dim, len(x.shape))
        values = reduced(s, x, dims, value, body=lambda e: e)
        positions = reduced(s, x, dims, position, body=lambda e: e, dtype=DType.I64)
        return viewed(s, values, s.shape), viewed(s, positions, s.shape)

    return lower


RULES["aten.argmax.default"] = _position(Combine.ARGMAX)
RULES["aten.argmin.default"] = _position(Combine.ARGMIN)
RULES["aten.max.dim"] = _extremum(Combine.MAX, Combine.ARGMAX)
RULES["aten.min.dim"] = _extremum(Combine.MIN, Combine.ARGMIN)


def moments(s: Site, x: Tensor, dims: tuple[int, ...], finish: Callable[[Expr], Expr]) -> tuple[Tensor, Tensor]:
    """The mean over `dims`, and `finish` of the sum of squared deviations from it: two passes, both in `wide` precision."""
    count = math.prod(x.shape[d] for d in dims)
    dtype = wide(x.dtype)
    mean = reduced(s, x, dims, Combine.SUM, body=_as(dtype), finish=_over(count), dtype=dtype)
    spread = s.reduce(
        Meta(mean.shape, dtype),
        [x.shape[d] for d in dims],
        Combine.SUM,
        lambda ix, rx: square(sub(cast(load(x, merged(ix, rx, dims, len(x.shape))), dtype), load(mean, ix))),
        lambda acc, ix: finish(acc),
    )
    return mean, spread


@rule("var.correction", "std.correction", "var.dim")
def _var(s: Site, x: Tensor, dims: Dims = None, correction: Number | None = 1, keepdim: bool = False) -> Tensor:
    return _var_mean(s, x, dims, correction=correction, keepdim=keepdim)[0]


@rule("var_mean.correction", "std_mean.correction")
def _var_mean(
    s: Site, x: Tensor, dims: Dims = None, *, correction: Number | None = 1, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    over = dims_of(dims, len(x.shape))
    freedom = max(math.prod(x.shape[d] for d in over) - (1 if correction is None else correction), 0)
    root = s.target.startswith("aten.std")

    def finish(acc: Expr) -> Expr:
        out = div(acc, const(freedom, dtype_of(acc)))
        return unary(Fn.SQRT, out) if root else out

    mean, spread = moments(s, x, over, finish)
    return _stored(s, spread, s.shape, s.dtype), _stored(s, mean, s.shape, s.dtype)


def _stored(s: Site, x: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """`x` in the shape and dtype that torch gives."""
    if x.dtype is dtype:
        return viewed(s, x, shape)
    return s.map(shape, dtype, lambda ix: load(x, regrouped(x.shape, shape, ix)))


@rule("linalg_vector_norm.default")
def _vector_norm(s: Site, x: Tensor, order: Number = 2, dims: Dims = None, keepdim: bool = False, **_: object) -> Tensor:
    dtype = wide(s.dtype)

    def size(e: Expr) -> Expr:
        return unary(Fn.ABS, cast(e, dtype))

    if order in (math.inf, -math.inf):
        return whole(s, x, dims, Combine.MAX if order > 0 else Combine.MIN, size)
    if order == 0:
        zero, one = const(0, dtype), const(1, dtype)
        return whole(s, x, dims, Combine.SUM, lambda e: select(compare(Fn.EQ, cast(e, dtype), zero), zero, one))
    if order == 1:
        return whole(s, x, dims, Combine.SUM, size)
    if order == 2:
        return whole(s, x, dims, Combine.SUM, lambda e: square(cast(e, dtype)), finish=lambda acc: unary(Fn.SQRT, acc))
    return whole(
        s, x, dims, Combine.SUM, lambda e: fixed_power(size(e), order), finish=lambda acc: fixed_power(acc, 1 / order)
    )


# Softmax --------------------------------------------------------------------------------------------------------------


def softmax_parts(s: Site, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """The maximum along `dim`, and the sum of exp(x - maximum); both without `dim`, in `wide` precision."""
    dtype, dims = wide(x.dtype), (dim,)
    top = reduced(s, x, dims, Combine.MAX, body=_as(dtype), dtype=dtype)
    total = s.reduce(
        Meta(top.shape, dtype),
        [x.shape[dim]],
        Combine.SUM,
        lambda ix, rx: unary(Fn.EXP, sub(cast(load(x, merged(ix, rx, dims, len(x.shape))), dtype), load(top, ix))),
    )
    return top, total


def _without(ix: Ix, dim: int) -> Ix:
    return ix[:dim] + ix[dim + 1 :]


@rule("_softmax.default", "_safe_softmax.default", "softmax.int")
def _softmax(s: Site, x: Tensor, dim: int, *_: object) -> Tensor:
    if not x.shape:
        return s.map((), s.dtype, lambda ix: const(1, s.dtype))
    dim = axis_number(dim, len(x.shape))
    top, total = softmax_parts(s, x, dim)
    safe = s.target.startswith("aten._safe")

    def body(ix: Ix) -> Expr:
        peak = load(top, _without(ix, dim))
        out = div(unary(Fn.EXP, sub(cast(load(x, ix), top.dtype), peak)), load(total, _without(ix, dim)))
        return select(compare(Fn.EQ, peak, const(-math.inf, top.dtype)), const(0, top.dtype), out) if safe else out

    return s.map(s.shape, s.dtype, body)


@rule("_log_softmax.default", "log_softmax.int")
def _log_softmax(s: Site, x: Tensor, dim: int, *_: object) -> Tensor:
    if not x.shape:
        return s.map((), s.dtype, lambda ix: const(0, s.dtype))
    dim = axis_number(dim, len(x.shape))
    top, total = softmax_parts(s, x, dim)

    def body(ix: Ix) -> Expr:
        row = _without(ix, dim)
        return sub(sub(cast(load(x, ix), top.dtype), load(top, row)), unary(Fn.LOG, load(total, row)))

    return s.map(s.shape, s.dtype, body)


@rule("logsumexp.default")
def _logsumexp(s: Site, x: Tensor, dims: Dims, keepdim: bool = False) -> Tensor:
    over, dtype = dims_of(dims, len(x.shape)), wide(s.dtype)
    top = reduced(s, x, over, Combine.MAX, body=_as(dtype), dtype=dtype)

    def shift(ix: Ix) -> Expr:
        """The maximum, or 0 where it is infinite."""
        peak = load(top, ix)
        return select(compare(Fn.EQ, unary(Fn.ABS, peak), const(math.inf, dtype)), const(0, dtype), peak)

    out = s.reduce(
        Meta(top.shape, s.dtype),
        [x.shape[d] for d in over],
        Combine.SUM,
        lambda ix, rx: unary(Fn.EXP, sub(cast(load(x, merged(ix, rx, over, len(x.shape))), dtype), shift(ix))),
        lambda acc, ix: add(unary(Fn.LOG, acc), shift(ix)),
    )
    return viewed(s, out, s.shape)


# Normalisation --------------------------------------------------------------------------------------------------------


def _inverse_deviation(count: int, eps: float) -> Callable[[Expr], Expr]:
    def finish(acc: Expr) -> Expr:
        dtype = dtype_of(acc)
        return unary(Fn.RSQRT, add(div(acc, const(count, dtype)), const(eps, dtype)))

    return finish


def _scaled(out: Expr, weight: Expr | None, bias: Expr | None) -> Expr:
    out = out if weight is None else mul(out, cast(weight, dtype_of(out)))
    return out if bias is None else add(out, cast(bias, dtype_of(out)))


@rule("native_layer_norm.default")
def _layer_norm(
    s: Site, x: Tensor, normalized: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    rank = len(x.shape)
    lead = rank - len(normalized)
    dims = tuple(range(lead, rank))
    mean, rstd = moments(s, x, dims, _inverse_deviation(math.prod(normalized), eps))

    def body(ix: Ix) -> Expr:
        row, element = ix[:lead], ix[lead:]
        out = mul(sub(cast(load(x, ix), mean.dtype), load(mean, row)), load(rstd, row))
        return _scaled(out, entry(weight, element), entry(bias, element))

    out = s.map(s.shape, s.dtype, body)
    small = s.results[1]
    return out, _stored(s, mean, small.shape, small.dtype), _stored(s, rstd, small.shape, small.dtype)


@rule("_fused_rms_norm.default")
def _rms_norm(
    s: Site, x: Tensor, normalized: tuple[int, ...], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    rank, dtype = len(x.shape), wide(x.dtype)
    lead = rank - len(normalized)
    dims = tuple(range(lead, rank))
    small = 2.0**-23 if dtype is DType.F32 else 2.0**-52
    finish = _inverse_deviation(math.prod(normalized), small if eps is None else eps)
    rstd = reduced(s, x, dims, Combine.SUM, body=lambda e: square(cast(e, dtype)), finish=finish, dtype=dtype)

    def body(ix: Ix) -> Expr:
        out = mul(cast(load(x, ix), dtype), load(rstd, ix[:lead]))
        return _scaled(out, entry(weight, ix[lead:]), None)

    return s.map(s.shape, s.dtype, body), _stored(s, rstd, s.results[1].shape, s.results[1].dtype)


@rule("native_group_norm.default")
def _group_norm(
    s: Site, x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, c: int, hxw: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    share, dtype = c // group, wide(x.dtype)
    over = (share, *x.shape[2:])
    count = math.prod(over)

    def element(ix: Ix, rx: Ix) -> Expr:
        return cast(load(x, (ix[0], add(mul(ix[1], index(share)), rx[0]), *rx[1:])), dtype)

    grid = Meta((n, group), dtype)
    mean = s.reduce(grid, over, Combine.SUM, element, lambda acc, ix: _over(count)(acc))
    rstd = s.reduce(
        grid, over, Combine.SUM,
        lambda ix, rx: square(sub(element(ix, rx), load(mean, ix))),
        lambda acc, ix: _inverse_deviation(count, eps)(acc),
    )  # fmt: skip

    def body(ix: Ix) -> Expr:
        at = (ix[0], floordiv(ix[1], index(share)))
        out = mul(sub(cast(load(x, ix), dtype), load(mean, at)), load(rstd, at))
        return _scaled(out, entry(weight, ix[1:2]), entry(bias, ix[1:2]))

    out = s.map(s.shape, s.dtype, body)
    small = s.results[1]
    return out, _stored(s, mean, small.shape, small.dtype), _stored(s, rstd, small.shape, small.dtype)


@rule("_native_batch_norm_legit_no_training.default")
def _batch_norm(
    s: Site, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """By one scale and one shift a channel, which depend on weights only."""
    dtype, channels = wide(x.dtype), (x.shape[1],)
    scale, shift = _channel_affine(s, dtype, (weight, bias, mean), lambda ix: _rstd(load(var, ix), eps, dtype), channels)
    empty = tuple(s.map(r.shape, r.dtype, lambda ix, r=r: const(0, r.dtype)) for r in s.results[1:])  # type: ignore[misc]
    return s.map(s.shape, s.dtype, lambda ix: _affine(x, scale, shift, ix)), empty[0], empty[1]


def _rstd(var: Expr, eps: float, dtype: DType) -> Expr:
    return unary(Fn.RSQRT, add(cast(var, dtype), const(eps, dtype)))


def _affine(x: Tensor, scale: Tensor, shift: Tensor, ix: Ix) -> Expr:
    return add(mul(cast(load(x, ix), scale.dtype), load(scale, ix[1:2])), load(shift, ix[1:2]))


def _channel_affine(
    s: Site, dtype: DType, given: tuple[Tensor | None, Tensor | None, Tensor], rstd: Callable[[Ix], Expr], channels: Shape
) -> tuple[Tensor, Tensor]:
    """scale = rstd * weight, shift = bias - mean * scale."""
    weight, bias, mean = given
    scale = s.map(channels, dtype, lambda ix: _scaled(rstd(ix), entry(weight, ix), None))

    def moved(ix: Ix) -> Expr:
        product = mul(cast(load(mean, ix), dtype), load(scale, ix))
        return unary(Fn.NEG, product) if bias is None else sub(cast(load(bias, ix), dtype), product)

    return scale, s.map(channels, dtype, moved)


@rule("_native_batch_norm_legit.no_stats")
def _batch_norm_no_stats(
    s: Site, x: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Statistics of this batch (two passes), never stored."""
    if not training:
        raise UnsupportedError("batch_norm without statistics outside training")
    dims = (0, *range(2, len(x.shape)))
    mean, rstd = moments(s, x, dims, _inverse_deviation(math.prod(x.shape[d] for d in dims), eps))

    def body(ix: Ix) -> Expr:
        channel = ix[1:2]
        out = mul(sub(cast(load(x, ix), mean.dtype), load(mean, channel)), load(rstd, channel))
        return _scaled(out, entry(weight, channel), entry(bias, channel))

    out = s.map(s.shape, s.dtype, body)
    small = s.results[1]
    return out, _stored(s, mean, small.shape, small.dtype), _stored(s, rstd, small.shape, small.dtype)


# Scans ----------------------------------------------------------------------------------------------------------------


def _cumulative(combine: Combine) -> Callable[..., Tensor]:
    def lower(s: Site, x: Tensor, dim: int, **_: object) -> Tensor:
        dtype = wide(s.dtype)
        if not x.shape:
            return s.map((), s.dtype, lambda ix: load(x, ix))
        out = Meta(s.shape, s.dtype)
        return s.scan(out, axis_number(dim, len(x.shape)), combine, lambda ix: cast(load(x, ix), dtype))

    return lower


RULES["aten.cumsum.default"] = _cumulative(Combine.SUM)
RULES["aten.cumprod.default"] = _cumulative(Combine.PROD)
