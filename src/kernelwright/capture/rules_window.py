"""Rules for pooling and resizing: Reduces and Maps over affine windows, guarded where they reach beyond the input.

What it does: max and average pooling in 1 to 3 dimensions, adaptive pooling to divisible sizes, nearest and bilinear resizing.
What it does not do: convolution (see `rules_contract`). Registered in `capture.rules.RULES`; called by `capture.lower`.
"""

# ruff: noqa: PLR0917 (rules have ATen's own arguments)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.capture.rules import RULES, rule
from kernelwright.capture.rules_view import clamped
from kernelwright.capture.site import (
    TRUE,
    Ix,
    Number,
    Shape,
    Site,
    add,
    binary,
    both,
    cast,
    compare,
    const,
    div,
    floordiv,
    inside,
    load,
    mod,
    mul,
    select,
    sub,
    unary,
    wide,
)
from kernelwright.errors import UnsupportedError
from kernelwright.ir.evaluate import identity
from kernelwright.ir.expr import DType, Expr, Fn, index
from kernelwright.ir.graph import Combine, Tensor

Sizes = tuple[int, ...]


def _full(sizes: Sequence[int], rank: int, default: Sequence[int] | None = None) -> Sizes:
    sizes = tuple(sizes) or tuple(default or ())
    return sizes * rank if len(sizes) == 1 else sizes


def _reads(
    x: Tensor, shape: Shape, ox: Ix, kx: Ix, geometry: tuple[Sizes, Sizes, Sizes, Sizes]
) -> tuple[Expr, Ix]:
    """Guard and input position of kernel position `kx` at output position `ox`; guards only where a window reaches out."""
    kernel, stride, padding, dilation = geometry
    rank = len(ox)
    guard: Expr = TRUE
    found: list[Expr] = []
    for d in range(rank):
        extent, out = x.shape[-rank + d], shape[-rank + d]
        i = sub(add(mul(ox[d], index(stride[d])), mul(kx[d], index(dilation[d]))), index(padding[d]))
        last = (out - 1) * stride[d] - padding[d] + (kernel[d] - 1) * dilation[d]
        guard = both(guard, inside(i, 0, extent)) if padding[d] or last >= extent else guard
        found.append(i)
    return guard, tuple(found)


def _max_pool(rank: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def lower(
        s: Site, x: Tensor, kernel: Sizes, stride: Sizes = (), padding: Sizes = (0,), dilation: Sizes = (1,), *_: object
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        size = _full(kernel, rank)
        geometry = (size, _full(stride, rank, size), _full(padding, rank), _full(dilation, rank))
        lead = len(x.shape) - rank
        return _maxima(s, x, size, lambda ix, kx: _reads(x, s.shape, ix[lead:], kx, geometry))

    return lower


def _maxima(s: Site, x: Tensor, size: Sizes, reads: Callable[[Ix, Ix], tuple[Expr, Ix]]) -> tuple[Tensor, Tensor]:
    """The maxima over windows of `size`, and their flat positions in the input's window dimensions."""
    lead = len(x.shape) - len(size)
    low = const(identity(Combine.MAX, x.dtype), x.dtype)

    def body(ix: Ix, kx: Ix) -> Expr:
        guard, at = reads(ix, kx)
        return select(guard, load(x, (*ix[:lead], *at)), low)

    def position(acc: Expr, ix: Ix) -> Expr:
        _, at = reads(ix, _unflattened(acc, size))
        flat: Expr = index(0)
        for i, n in zip(at, x.shape[lead:], strict=True):
            flat = add(mul(flat, index(n)), i)
        return flat

    values = s.reduce(s.results[0], size, Combine.MAX, body)
    flat_size = [math.prod(size)]
    return values, s.reduce(
        s.results[1], flat_size, Combine.ARGMAX, lambda ix, rx: body(ix, _unflattened(rx[0], size)), position
    )


def _unflattened(flat: Expr, size: Sizes) -> Ix:
    parts: list[Expr] = []
    for d, n in enumerate(size):
        part = floordiv(flat, index(math.prod(size[d + 1 :])))
        parts.append(part if d == 0 else mod(part, index(n)))
    return tuple(parts)


for _rank in (2, 3):
    RULES[f"aten.max_pool{_rank}d_with_indices.default"] = _max_pool(_rank)


def _average_pool(rank: int) -> Callable[..., Tensor]:
    def lower(
        s: Site, x: Tensor, kernel: Sizes, stride: Sizes = (), padding: Sizes = (0,), ceil_mode: bool = False,
        count_include_pad: bool = True, divisor: int | None = None,
    ) -> Tensor:  # fmt: skip
        size = _full(kernel, rank)
        geometry = (size, _full(stride, rank, size), _full(padding, rank), (1,) * rank)
        dtype, lead = wide(s.dtype), len(x.shape) - rank

        def body(ix: Ix, kx: Ix) -> Expr:
            guard, at = _reads(x, s.shape, ix[lead:], kx, geometry)
            return select(guard, cast(load(x, (*ix[:lead], *at)), dtype), const(0, dtype))

        def finish(acc: Expr, ix: Ix) -> Expr:
            if divisor is not None:
                return div(acc, const(divisor, dtype))
            return div(acc, _window_size(x, s.shape, ix[lead:], geometry, dtype, count_include_pad))

        return s.reduce(s.results[0], size, Combine.SUM, body, finish)

    return lower


def _window_size(
    x: Tensor, shape: Shape, ox: Ix, geometry: tuple[Sizes, Sizes, Sizes, Sizes], dtype: DType, padded: bool
) -> Expr:
    """The number of elements that count in a window: within the padded input, or within the input itself."""
    kernel, stride, padding, _ = geometry
    rank, whole = len(ox), 1
    out: Expr = index(1)
    for d in range(rank):
        extent = x.shape[-rank + d]
        low, high = (-padding[d], extent + padding[d]) if padded else (0, extent)
        first, last = -padding[d], (shape[-rank + d] - 1) * stride[d] - padding[d] + kernel[d]
        if first >= low and last <= high:
            whole *= kernel[d]
            continue
        start = sub(mul(ox[d], index(stride[d])), index(padding[d]))
        end = binary(Fn.MIN, add(start, index(kernel[d])), index(high))
        out = mul(out, sub(end, start if first >= low else binary(Fn.MAX, start, index(low))))
    return cast(mul(out, index(whole)), dtype)


for _rank in (1, 2, 3):
    RULES[f"aten.avg_pool{_rank}d.default"] = _average_pool(_rank)


@rule("_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool1d.default")
def _adaptive_average_pool(s: Site, x: Tensor, size: Sizes) -> Tensor:
    dtype, lead = wide(s.dtype), len(x.shape) - len(size)
    widest, reads = _adaptive(x, size)

    def body(ix: Ix, kx: Ix) -> Expr:
        guard, at = reads(ix, kx)
        return select(guard, cast(load(x, (*ix[:lead], *at)), dtype), const(0, dtype))

    def finish(acc: Expr, ix: Ix) -> Expr:
        count: Expr = index(1)
        for o, n, m in zip(ix[lead:], x.shape[lead:], size, strict=True):
            begin, end = _share(o, n, m)
            count = mul(count, index(n // m) if n % m == 0 else sub(end, begin))
        return div(acc, cast(count, dtype))

    return s.reduce(s.results[0], widest, Combine.SUM, body, finish)


@rule("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def _adaptive_max_pool(s: Site, x: Tensor, size: Sizes) -> tuple[Tensor, Tensor]:
    return _maxima(s, x, *_adaptive(x, size))


def _share(o: Expr, n: int, m: int) -> tuple[Expr, Expr]:
    """Where output position `o` of `m` begins and ends in `n` input positions: floor(o n / m), ceil((o + 1) n / m)."""
    if n % m == 0:
        begin = mul(o, index(n // m))
        return begin, add(begin, index(n // m))
    return floordiv(mul(o, index(n)), index(m)), floordiv(add(mul(o, index(n)), index(n + m - 1)), index(m))


def _adaptive(x: Tensor, size: Sizes) -> tuple[Sizes, Callable[[Ix, Ix], tuple[Expr, Ix]]]:
    """The widest share a dimension, and guard and input position of a point of it: guarded where a share is narrower."""
    if 0 in size:
        raise UnsupportedError("adaptive pooling to an empty size")
    lead = len(x.shape) - len(size)
    extents = x.shape[lead:]

    def reads(ix: Ix, kx: Ix) -> tuple[Expr, Ix]:
        guard: Expr = TRUE
        at: list[Expr] = []
        for o, k, n, m in zip(ix[lead:], kx, extents, size, strict=True):
            begin, end = _share(o, n, m)
            at.append(add(begin, k))
            guard = guard if n % m == 0 else both(guard, compare(Fn.LT, at[-1], end))
        return guard, tuple(at)

    widest = (max(-(-(o + 1) * n // m) - o * n // m for o in range(m)) for n, m in zip(extents, size, strict=True))
    return tuple(widest), reads


# Resizing -------------------------------------------------------------------------------------------------------------


@rule("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec")
def _nearest(s: Site, x: Tensor, size: Sizes | None, factors: tuple[float, ...] | None = None) -> Tensor:
    lead = 2
    scales = _scales(x.shape[lead:], s.shape[lead:], factors)

    def at(o: Expr, n: int, m: int, scale: float) -> Expr:
        if m % n == 0 and scale == n / m:
            return floordiv(o, index(m // n))
        f = mul(cast(o, DType.F32), const(scale, DType.F32))
        return clamped(cast(unary(Fn.FLOOR, f), DType.I64), n)

    def body(ix: Ix) -> Expr:
        rows = zip(ix[lead:], x.shape[lead:], s.shape[lead:], scales, strict=True)
        return load(x, (*ix[:lead], *(at(*row) for row in rows)))

    return s.map(s.shape, s.dtype, body)


def _scales(old: Shape, new: Shape, factors: Sequence[float] | None) -> list[float]:
    """Input steps an output step."""
    if factors is not None:
        return [1 / f for f in factors]
    return [n / m for n, m in zip(old, new, strict=True)]


@rule("upsample_bilinear2d.vec", "upsample_linear1d.vec", "upsample_trilinear3d.vec")
def _linear_resize(
    s: Site, x: Tensor, size: Sizes | None, align: bool, factors: tuple[float, ...] | None = None
) -> Tensor:  # fmt: skip
    lead, dtype = 2, DType.F64 if s.dtype is DType.F64 else DType.F32
    scales: list[Number] = list(_scales(x.shape[lead:], s.shape[lead:], factors))
    if align:
        scales = [(n - 1) / (m - 1) if m > 1 else 0.0 for n, m in zip(x.shape[lead:], s.shape[lead:], strict=True)]

    def source(o: Expr, n: int, scale: Number) -> tuple[Expr, Expr, Expr]:
        """Lower and upper input position and the upper one's weight."""
        f = cast(o, dtype)
        half = const(0.5, dtype)
        real = mul(f, const(scale, dtype)) if align else sub(mul(add(f, half), const(scale, dtype)), half)
        real = binary(Fn.MAX, real, const(0, dtype))
        low = clamped(cast(unary(Fn.FLOOR, real), DType.I64), n)
        high = binary(Fn.MIN, add(low, index(1)), index(n - 1))
        return low, high, sub(real, cast(low, dtype))

    def body(ix: Ix) -> Expr:
        found = [source(o, n, k) for o, n, k in zip(ix[lead:], x.shape[lead:], scales, strict=True)]

        def blend(chosen: Ix, rest: list[tuple[Expr, Expr, Expr]]) -> Expr:
            if not rest:
                return cast(load(x, (*ix[:lead], *chosen)), dtype)
            low, high, weight = rest[0]
            near, far = blend((*chosen, low), rest[1:]), blend((*chosen, high), rest[1:])
            return add(mul(near, sub(const(1, dtype), weight)), mul(far, weight))

        return blend((), found)

    return s.map(s.shape, s.dtype, body)


