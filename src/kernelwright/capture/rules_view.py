"""Rules for operators that only move elements, or make them from nothing: one Map with one Load each.

What it does: views, permutations, expansion, slices, concatenation, padding, flips, rolls, windows as views, triangles,
ranges and fills, with indices as simple as the operator allows (a view that splits or merges dimensions divides only there).
What it does not do: indexing by tensors (see `rules_index`). Registered in `capture.rules.RULES`; called by `capture.lower`.
"""

# ruff: noqa: PLR0917 (rules have ATen's own arguments)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.capture.rules import rule
from kernelwright.capture.site import (
    TRUE,
    Ix,
    Number,
    Shape,
    Site,
    add,
    axis_number,
    binary,
    both,
    broadcast,
    cast,
    compare,
    const,
    floordiv,
    inside,
    load,
    mod,
    mul,
    select,
    sub,
)
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import DType, Expr, Fn, index
from kernelwright.ir.graph import Role, Tensor


def regrouped(old: Shape, new: Shape, ix: Ix) -> Ix:
    """The index into a dense tensor of shape `old` of the element that a view of shape `new` has at `ix`.

    Both shapes are walked together in the smallest groups of dimensions with equal products, so that only what is split or
    merged is divided; dimensions of extent 1 take no part.
    """
    if 0 in old:
        return tuple(index(0) for _ in old)
    found: list[Expr] = [index(0)] * len(old)
    olds = [d for d, n in enumerate(old) if n != 1]
    news = [d for d, n in enumerate(new) if n != 1]
    a = b = 0
    while a < len(olds):
        group, wanted, have, got = [olds[a]], [news[b]], old[olds[a]], new[news[b]]
        a, b = a + 1, b + 1
        while have != got:
            if have < got:
                have *= old[olds[a]]
                group.append(olds[a])
                a += 1
            else:
                got *= new[news[b]]
                wanted.append(news[b])
                b += 1
        flat = _flattened([ix[d] for d in wanted], [new[d] for d in wanted])
        stride = have
        for position, d in enumerate(group):
            stride //= old[d]
            part = floordiv(flat, index(stride))
            found[d] = part if position == 0 else mod(part, index(old[d]))
    return tuple(found)


def _flattened(ix: Sequence[Expr], extents: Sequence[int]) -> Expr:
    """The row-major position of `ix` within `extents`."""
    total: Expr = index(0)
    stride = 1
    for i, n in zip(reversed(ix), reversed(extents), strict=True):
        term = mul(i, index(stride))
        total = term if stride == 1 else add(term, total)
        stride *= n
    return total


def viewed(s: Site, x: Tensor, shape: Shape) -> Tensor:
    """`x` with another shape of the same size; `x` itself where the shape is equal."""
    if x.shape == shape:
        return x
    return s.map(shape, x.dtype, lambda ix: load(x, regrouped(x.shape, shape, ix)))


@rule(
    "view.default", "_unsafe_view.default", "reshape.default", "unsqueeze.default", "squeeze.dims", "squeeze.dim",
    "squeeze.default", "flatten.using_ints", "unflatten.int", "view_copy.default", "_reshape_copy.default",
)  # fmt: skip
def _view(s: Site, x: Tensor, *_: object) -> Tensor:
    return viewed(s, x, s.shape)


@rule("alias.default", "detach.default", "lift_fresh_copy.default", "contiguous.default", "detach_.default")
def _alias(s: Site, x: Tensor, **_: object) -> Tensor:
    return x


@rule("clone.default")
def _clone(s: Site, x: Tensor, **_: object) -> Tensor:
    """A copy only of what the caller owns: a temporary and its clone are one tensor."""
    return x if x.role is Role.TEMP else s.map(s.shape, s.dtype, lambda ix: load(x, ix))


@rule("permute.default", "permute_copy.default")
def _permute(s: Site, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    order = [axis_number(d, len(x.shape)) for d in dims]
    return s.map(s.shape, s.dtype, lambda ix: load(x, [ix[order.index(d)] for d in range(len(order))]))


@rule("transpose.int")
def _transpose(s: Site, x: Tensor, a: int, b: int) -> Tensor:
    order = list(range(len(x.shape)))
    if order:
        a, b = axis_number(a, len(order)), axis_number(b, len(order))
        order[a], order[b] = b, a
    return _permute(s, x, tuple(order))


@rule("t.default")
def _t(s: Site, x: Tensor) -> Tensor:
    return _permute(s, x, tuple(reversed(range(len(x.shape)))))


@rule("expand.default", "expand_copy.default")
def _expand(s: Site, x: Tensor, *_: object, **__: object) -> Tensor:
    return x if x.shape == s.shape else s.map(s.shape, s.dtype, lambda ix: broadcast(x, s.shape, ix))


@rule("repeat.default")
def _repeat(s: Site, x: Tensor, *_: object) -> Tensor:
    lead = len(s.shape) - len(x.shape)

    def body(ix: Ix) -> Expr:
        pairs = zip(ix[lead:], x.shape, s.shape[lead:], strict=True)
        return load(x, [i if n == m else mod(i, index(n)) for i, n, m in pairs])

    return s.map(s.shape, s.dtype, body)


@rule("slice.Tensor", "slice_copy.Tensor")
def _slice(s: Site, x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    dim, extent = axis_number(dim, len(x.shape)), x.shape[dim]
    first = 0 if start is None else min(max(start + extent if start < 0 else start, 0), extent)
    if x.shape == s.shape:
        return x

    def body(ix: Ix) -> Expr:
        return load(x, [add(mul(i, index(step)), index(first)) if d == dim else i for d, i in enumerate(ix)])

    return s.map(s.shape, s.dtype, body)


@rule("select.int", "select_copy.int")
def _select(s: Site, x: Tensor, dim: int, position: int) -> Tensor:
    dim = axis_number(dim, len(x.shape))
    at = index(position % x.shape[dim])
    return s.map(s.shape, s.dtype, lambda ix: load(x, (*ix[:dim], at, *ix[dim:])))


@rule("split_with_sizes.default", "split_with_sizes_copy.default")
def _split_with_sizes(s: Site, x: Tensor, sizes: tuple[int, ...], dim: int = 0) -> tuple[Tensor, ...]:
    return _pieces(s, x, axis_number(dim, len(x.shape)))


@rule("split.Tensor", "chunk.default", "split_copy.Tensor")
def _split(s: Site, x: Tensor, _: int, dim: int = 0) -> tuple[Tensor, ...]:
    return _pieces(s, x, axis_number(dim, len(x.shape)))


def _pieces(s: Site, x: Tensor, dim: int) -> tuple[Tensor, ...]:
    parts, first = [], 0
    for result in s.results:

        def body(ix: Ix, first: int = first) -> Expr:
            return load(x, [add(i, index(first)) if d == dim else i for d, i in enumerate(ix)])

        parts.append(s.map(result.shape, result.dtype, body))
        first += result.shape[dim]
    return tuple(parts)


@rule("unbind.int")
def _unbind(s: Site, x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    dim = axis_number(dim, len(x.shape))
    return tuple(
        s.map(r.shape, r.dtype, lambda ix, k=k: load(x, (*ix[:dim], index(k), *ix[dim:])))  # type: ignore[misc]
        for k, r in enumerate(s.results)
    )


@rule("cat.default")
def _cat(s: Site, tensors: tuple[Tensor, ...], dim: int = 0) -> Tensor:
    dim = axis_number(dim, len(s.shape))
    parts = [t for t in tensors if t.shape != (0,) or s.shape == (0,)]
    parts = [t for t in parts if t.shape[dim]] or parts[:1]

    def body(ix: Ix) -> Expr:
        end = s.shape[dim]
        out: Expr | None = None
        for part in reversed(parts):
            begin = end - part.shape[dim]
            mine = cast(load(part, [sub(i, index(begin)) if d == dim else i for d, i in enumerate(ix)]), s.dtype)
            out = mine if out is None else select(compare(Fn.LT, ix[dim], index(end)), mine, out)
            end = begin
        assert out is not None
        return out

    return s.map(s.shape, s.dtype, body)


@rule("stack.default")
def _stack(s: Site, tensors: tuple[Tensor, ...], dim: int = 0) -> Tensor:
    dim = axis_number(dim, len(s.shape))

    def body(ix: Ix) -> Expr:
        inner = (*ix[:dim], *ix[dim + 1 :])
        out: Expr = cast(load(tensors[-1], inner), s.dtype)
        for k in range(len(tensors) - 2, -1, -1):
            out = select(compare(Fn.EQ, ix[dim], index(k)), cast(load(tensors[k], inner), s.dtype), out)
        return out

    return s.map(s.shape, s.dtype, body)


@rule("constant_pad_nd.default")
def _constant_pad(s: Site, x: Tensor, pad: tuple[int, ...], filling: Number = 0) -> Tensor:
    before = [0] * len(x.shape)
    for k in range(len(pad) // 2):
        before[len(x.shape) - 1 - k] = pad[2 * k]

    def body(ix: Ix) -> Expr:
        at = [add(i, index(-p)) if p else i for i, p in zip(ix, before, strict=True)]
        guard: Expr = TRUE
        for i, n, m, p in zip(at, x.shape, s.shape, before, strict=True):
            guard = guard if p <= 0 and m - p <= n else both(guard, inside(i, 0, n))
        return select(guard, load(x, at), const(filling, s.dtype))

    return s.map(s.shape, s.dtype, body)


@rule("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def _reflection_pad(s: Site, x: Tensor, pad: tuple[int, ...]) -> Tensor:
    return _edge_pad(s, x, pad, _reflected)


@rule("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def _replication_pad(s: Site, x: Tensor, pad: tuple[int, ...]) -> Tensor:
    return _edge_pad(s, x, pad, clamped)


def _edge_pad(s: Site, x: Tensor, pad: tuple[int, ...], fold: Callable[[Expr, int], Expr]) -> Tensor:
    before = [0] * len(x.shape)
    for k in range(len(pad) // 2):
        before[len(x.shape) - 1 - k] = pad[2 * k]

    def body(ix: Ix) -> Expr:
        rows = zip(ix, before, x.shape, s.shape, strict=True)
        return load(x, [i if n == m and p == 0 else fold(sub(i, index(p)), n) for i, p, n, m in rows])

    return s.map(s.shape, s.dtype, body)


def clamped(i: Expr, extent: int) -> Expr:
    """`i` moved into [0, extent)."""
    return binary(Fn.MIN, binary(Fn.MAX, i, index(0)), index(extent - 1))


def _reflected(i: Expr, extent: int) -> Expr:
    """`i` mirrored at 0 and at extent - 1 (once)."""
    low = select(compare(Fn.LT, i, index(0)), sub(index(0), i), i)
    return select(compare(Fn.GE, i, index(extent)), sub(index(2 * extent - 2), i), low)


@rule("flip.default")
def _flip(s: Site, x: Tensor, dims: tuple[int, ...]) -> Tensor:
    turned = {axis_number(d, len(x.shape)) for d in dims}
    return s.map(
        s.shape,
        s.dtype,
        lambda ix: load(x, [sub(index(x.shape[d] - 1), i) if d in turned else i for d, i in enumerate(ix)]),
    )


@rule("roll.default")
def _roll(s: Site, x: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...] = ()) -> Tensor:
    if not dims:
        flat = (math.prod(x.shape),)
        start = index(-shifts[0] % max(flat[0], 1))

        def turned(ix: Ix) -> Expr:
            at = mod(add(_flattened(ix, x.shape), start), index(flat[0]))
            return load(x, regrouped(x.shape, flat, (at,)))

        return s.map(s.shape, s.dtype, turned)
    moves = {axis_number(d, len(x.shape)): n for d, n in zip(dims, shifts, strict=True)}

    def body(ix: Ix) -> Expr:
        at = []
        for d, i in enumerate(ix):
            extent = x.shape[d]
            shift = -moves.get(d, 0) % max(extent, 1)
            at.append(mod(add(i, index(shift)), index(extent)) if shift else i)
        return load(x, at)

    return s.map(s.shape, s.dtype, body)


@rule("unfold.default", "unfold_copy.default")
def _unfold(s: Site, x: Tensor, dim: int, size: int, step: int) -> Tensor:
    if not x.shape:
        raise UnsupportedError("unfold of a 0-d tensor")
    dim = axis_number(dim, len(x.shape))

    def body(ix: Ix) -> Expr:
        return load(x, [add(mul(i, index(step)), ix[-1]) if d == dim else i for d, i in enumerate(ix[:-1])])

    return s.map(s.shape, s.dtype, body)


@rule("slice_scatter.default")
def _slice_scatter(
    s: Site, x: Tensor, source: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`x` with a slice replaced by `source`."""
    dim = axis_number(dim, len(x.shape))
    extent, count = x.shape[dim], source.shape[dim]
    first = 0 if start is None else min(max(start + extent if start < 0 else start, 0), extent)

    def body(ix: Ix) -> Expr:
        offset = sub(ix[dim], index(first))
        guard = inside(offset, 0, (count - 1) * step + 1)
        if step > 1:
            guard = both(guard, compare(Fn.EQ, mod(offset, index(step)), index(0)))
        at = [floordiv(offset, index(step)) if d == dim else i for d, i in enumerate(ix)]
        return select(guard, cast(load(source, at), s.dtype), load(x, ix))

    return s.map(s.shape, s.dtype, body)


@rule("select_scatter.default")
def _select_scatter(s: Site, x: Tensor, source: Tensor, dim: int, position: int) -> Tensor:
    """`x` with one position of `dim` replaced by `source`."""
    dim = axis_number(dim, len(x.shape))
    at = index(position % x.shape[dim])

    def body(ix: Ix) -> Expr:
        replaced = cast(load(source, (*ix[:dim], *ix[dim + 1 :])), s.dtype)
        return select(compare(Fn.EQ, ix[dim], at), replaced, load(x, ix))

    return s.map(s.shape, s.dtype, body)


@rule("copy.default")
def _copy(s: Site, x: Tensor, source: Tensor, *_: object) -> Tensor:
    return s.map(s.shape, s.dtype, lambda ix: broadcast(source, s.shape, ix))


@rule("im2col.default")
def _im2col(
    s: Site, x: Tensor, kernel: tuple[int, int], dilation: tuple[int, int], padding: tuple[int, int], stride: tuple[int, int]
) -> Tensor:
    if len(x.shape) != 4:
        raise UnsupportedError("im2col without a batch dimension")
    kh, kw = kernel
    wide = (x.shape[3] + 2 * padding[1] - dilation[1] * (kw - 1) - 1) // stride[1] + 1

    def body(ix: Ix) -> Expr:
        n, c, at = ix
        row = _tap(floordiv(at, index(wide)), mod(floordiv(c, index(kw)), index(kh)), stride[0], dilation[0], padding[0])
        column = _tap(mod(at, index(wide)), mod(c, index(kw)), stride[1], dilation[1], padding[1])
        guard = both(
            inside(row, 0, x.shape[2]) if padding[0] else TRUE, inside(column, 0, x.shape[3]) if padding[1] else TRUE
        )
        return select(guard, load(x, (n, floordiv(c, index(kh * kw)), row, column)), const(0, s.dtype))

    return s.map(s.shape, s.dtype, body)


def _tap(o: Expr, k: Expr, stride: int, dilation: int, padding: int) -> Expr:
    """The input position that output position `o` reads at kernel position `k`."""
    return sub(add(mul(o, index(stride)), mul(k, index(dilation))), index(padding))


@rule("pixel_shuffle.default")
def _pixel_shuffle(s: Site, x: Tensor, factor: int) -> Tensor:
    r = index(factor)

    def body(ix: Ix) -> Expr:
        *lead, c, h, w = ix
        channel = add(mul(c, index(factor * factor)), add(mul(mod(h, r), r), mod(w, r)))
        return load(x, (*lead, channel, floordiv(h, r), floordiv(w, r)))

    return s.map(s.shape, s.dtype, body)


@rule("pixel_unshuffle.default")
def _pixel_unshuffle(s: Site, x: Tensor, factor: int) -> Tensor:
    r = index(factor)

    def body(ix: Ix) -> Expr:
        *lead, c, h, w = ix
        row = add(mul(h, r), mod(floordiv(c, r), r))
        return load(x, (*lead, floordiv(c, index(factor * factor)), row, add(mul(w, r), mod(c, r))))

    return s.map(s.shape, s.dtype, body)


@rule("diagonal.default", "diagonal_copy.default")
def _diagonal(s: Site, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    a, b = axis_number(dim1, len(x.shape)), axis_number(dim2, len(x.shape))

    def body(ix: Ix) -> Expr:
        rest = iter(ix[:-1])
        at = {a: add(ix[-1], index(max(-offset, 0))), b: add(ix[-1], index(max(offset, 0)))}
        return load(x, [at[d] if d in at else next(rest) for d in range(len(x.shape))])

    return s.map(s.shape, s.dtype, body)


@rule("tril.default")
def _tril(s: Site, x: Tensor, diagonal: int = 0) -> Tensor:
    return _triangle(s, x, lambda i, j: compare(Fn.LE, j, add(i, index(diagonal))))


@rule("triu.default")
def _triu(s: Site, x: Tensor, diagonal: int = 0) -> Tensor:
    return _triangle(s, x, lambda i, j: compare(Fn.GE, j, add(i, index(diagonal))))


def _triangle(s: Site, x: Tensor, keep: Callable[[Expr, Expr], Expr]) -> Tensor:
    return s.map(s.shape, s.dtype, lambda ix: select(keep(ix[-2], ix[-1]), load(x, ix), const(0, s.dtype)))


# Tensors from nothing -------------------------------------------------------------------------------------------------


@rule("full.default", "full_like.default", "new_full.default")
def _full(s: Site, *args: object, **_: object) -> Tensor:
    filling = args[-1]
    assert isinstance(filling, float | int)
    return _filled(s, filling)


@rule("scalar_tensor.default")
def _scalar_tensor(s: Site, filling: Number, **_: object) -> Tensor:
    return _filled(s, filling)


@rule(
    "zeros.default", "zeros_like.default", "new_zeros.default",
    "empty.memory_format", "empty_like.default", "new_empty.default", "empty_strided.default",
)  # fmt: skip
def _zeros(s: Site, *_: object, **__: object) -> Tensor:
    """Zeros; also for what PyTorch leaves undefined."""
    return _filled(s, 0)


@rule("ones.default", "ones_like.default", "new_ones.default")
def _ones(s: Site, *_: object, **__: object) -> Tensor:
    return _filled(s, 1)


@rule("fill.Scalar")
def _fill(s: Site, _: Tensor, filling: Number) -> Tensor:
    return _filled(s, filling)


def _filled(s: Site, filling: Number) -> Tensor:
    return s.map(s.shape, s.dtype, lambda ix: const(filling, s.dtype))


@rule("arange.start_step", "arange.start", "arange.default")
def _arange(s: Site, *args: Number, **_: object) -> Tensor:
    start: Number = args[0] if len(args) > 1 else 0
    step: Number = args[2] if len(args) > 2 else 1
    if not s.dtype.is_float:
        return s.map(s.shape, s.dtype, lambda ix: add(mul(ix[0], index(int(step))), index(int(start))))
    wide = DType.F64

    def body(ix: Ix) -> Expr:
        return add(mul(cast(ix[0], wide), const(step, wide)), const(start, wide))

    return s.map(s.shape, s.dtype, body)


@rule("eye.default", "eye.m")
def _eye(s: Site, *_: object, **__: object) -> Tensor:
    return s.map(
        s.shape, s.dtype, lambda ix: select(compare(Fn.EQ, ix[0], ix[1]), const(1, s.dtype), const(0, s.dtype))
    )
