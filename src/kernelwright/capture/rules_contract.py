"""Rules for contractions: matrix products, convolutions and attention.

What it does: expresses each as a Contract in index expressions, without materialised transposes, windows or groups' copies;
the equivalent ATen call is kept in `Contract.library`. What has no M or N axis becomes a Reduce (`Site.contract` does it).
What it does not do: transposed convolution and attention with dropout (they stay library calls).
Registered in `capture.rules.RULES`; called by `capture.lower`.
"""

# ruff: noqa: PLR0917 (rules have ATen's own arguments)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.capture.rules import rule
from kernelwright.capture.rules_reduce import softmax_parts
from kernelwright.capture.rules_view import viewed
from kernelwright.capture.site import (
    TRUE,
    Ix,
    Meta,
    Number,
    Shape,
    Site,
    add,
    aligned,
    both,
    cast,
    compare,
    const,
    div,
    floordiv,
    inside,
    library_call,
    load,
    mod,
    mul,
    select,
    sub,
    unary,
    wide,
)
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import DType, Expr, Fn, dtype_of, index
from kernelwright.ir.graph import LibraryCall, Tensor

Finish = Callable[[Expr, Ix], Expr]


def product(s: Site, a: Tensor, b: Tensor, shape: Shape, *, library: LibraryCall, finish: Finish | None = None) -> Tensor:
    """torch.matmul(a, b) of shape `shape`, with batch dimensions broadcast."""
    rows, columns = len(a.shape) > 1, len(b.shape) > 1
    batch = shape[: len(shape) - rows - columns]

    def left(ix: Ix, rx: Ix) -> Expr:
        if not rows:
            return load(a, rx)
        return load(a, (*aligned(a.shape[:-2], batch, ix[: len(batch)]), ix[len(batch)], *rx))

    def right(ix: Ix, rx: Ix) -> Expr:
        if not columns:
            return load(b, rx)
        return load(b, (*aligned(b.shape[:-2], batch, ix[: len(batch)]), *rx, ix[-1]))

    return s.contract(Meta(shape, s.dtype), a.shape[-1:], lhs=left, rhs=right, library=library, finish=finish)


@rule("mm.default", "bmm.default", "matmul.default", "dot.default", "mv.default")
def _matmul(s: Site, a: Tensor, b: Tensor) -> Tensor:
    if not s.dtype.is_float:
        raise UnsupportedError("an integer matrix product")
    return product(s, a, b, s.shape, library=library_call(s.target, a, b))


@rule("linear.default")
def _linear(s: Site, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if len(weight.shape) != 2:
        raise UnsupportedError("linear with a 1-d weight")
    return s.contract(
        Meta(s.shape, s.dtype),
        weight.shape[1:],
        lhs=lambda ix, rx: load(x, (*ix[:-1], *rx)),
        rhs=lambda ix, rx: load(weight, (ix[-1], *rx)),
        library=library_call("aten.linear.default", x, weight),
        finish=None if bias is None else lambda acc, ix: add(acc, cast(load(bias, ix[-1:]), dtype_of(acc))),
    )


@rule("addmm.default", "baddbmm.default")
def _addmm(s: Site, c: Tensor, a: Tensor, b: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    def finish(acc: Expr, ix: Ix) -> Expr:
        scaled = acc if alpha == 1 else mul(acc, const(alpha, dtype_of(acc)))
        if beta == 0:
            return scaled
        added = cast(load(c, aligned(c.shape, s.shape, ix)), dtype_of(acc))
        return add(scaled, added if beta == 1 else mul(added, const(beta, dtype_of(acc))))

    plain = library_call("aten.mm.default" if s.target == "aten.addmm.default" else "aten.bmm.default", a, b)
    return product(s, a, b, s.shape, library=plain, finish=finish)


# Convolution ----------------------------------------------------------------------------------------------------------


@rule("convolution.default")
def _convolution(
    s: Site,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
) -> Tensor:
    if len(x.shape) != len(w.shape):
        raise UnsupportedError("convolution without a batch dimension")
    rank = len(w.shape) - 2
    geometry = [_per_dimension(v, rank) for v in (stride, padding, dilation)]
    window = _scattered(x, *geometry) if transposed else _window(x, *geometry)
    call = library_call(s.target, x, w, None, stride, padding, dilation, transposed, output_padding, groups)
    return _grouped(s, x, w, bias, (window, transposed, groups, call))


def _per_dimension(value: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return value * rank if len(value) == 1 else value


Window = Callable[[Ix, Ix], tuple[Expr, tuple[Expr, ...]]]  # (output position, kernel position) -> guard, input position


def _window(x: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Window:
    """Input position o * stride - padding + k * dilation, guarded where there is padding."""

    def at(ox: Ix, kx: Ix) -> tuple[Expr, tuple[Expr, ...]]:
        guard: Expr = TRUE
        found: list[Expr] = []
        for d, (o, k) in enumerate(zip(ox, kx, strict=True)):
            i = sub(add(mul(o, index(stride[d])), mul(k, index(dilation[d]))), index(padding[d]))
            found.append(i)
            guard = both(guard, inside(i, 0, x.shape[d + 2])) if padding[d] else guard
        return guard, tuple(found)

    return at


def _scattered(x: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Window:
    """Transposed: the input position i with i * stride - padding + k * dilation = o, where there is one."""

    def at(ox: Ix, kx: Ix) -> tuple[Expr, tuple[Expr, ...]]:
        guard: Expr = TRUE
        found: list[Expr] = []
        for d, (o, k) in enumerate(zip(ox, kx, strict=True)):
            scaled = sub(add(o, index(padding[d])), mul(k, index(dilation[d])))
            if stride[d] > 1:
                whole = compare(Fn.EQ, mod(scaled, index(stride[d])), index(0))
                guard = both(guard, whole)
            i = floordiv(scaled, index(stride[d]))
            found.append(i)
            guard = both(guard, inside(i, 0, x.shape[d + 2]))
        return guard, tuple(found)

    return at


def _grouped(
    s: Site, x: Tensor, w: Tensor, bias: Tensor | None, plan: tuple[Window, bool, int, LibraryCall]
) -> Tensor:
    window, transposed, groups, call = plan
    inputs, outputs, kernel = x.shape[1] // groups, s.shape[1] // groups, w.shape[2:]
    depthwise = inputs == 1
    split = groups > 1 and not depthwise
    shape = (s.shape[0], groups, outputs, *s.shape[2:]) if split else s.shape
    lead = 3 if split else 2

    def group_of(ix: Ix) -> Expr:
        return index(0) if groups == 1 else ix[1] if split else floordiv(ix[1], index(outputs))

    def channel(ix: Ix) -> Expr:
        """The output channel, over all groups."""
        return add(mul(ix[1], index(outputs)), ix[2]) if split else ix[1]

    def inner(rx: Ix) -> Expr:
        return index(0) if depthwise else rx[0]

    def kernel_point(rx: Ix) -> Ix:
        return rx if depthwise else rx[1:]

    def weight(ix: Ix, rx: Ix) -> Expr:
        if not transposed:
            return load(w, (channel(ix), inner(rx), *kernel_point(rx)))
        own = ix[2] if split else ix[1] if groups == 1 else sub(ix[1], mul(group_of(ix), index(outputs)))
        return load(w, (add(mul(group_of(ix), index(inputs)), inner(rx)), own, *kernel_point(rx)))

    def data(ix: Ix, rx: Ix) -> Expr:
        guard, at = window(ix[lead:], kernel_point(rx))
        element = load(x, (ix[0], add(mul(group_of(ix), index(inputs)), inner(rx)), *at))
        return select(guard, element, const(0, x.dtype))

    def finish(acc: Expr, ix: Ix) -> Expr:
        assert bias is not None
        return add(acc, cast(load(bias, (channel(ix),)), dtype_of(acc)))

    over = kernel if depthwise else (inputs, *kernel)
    end = None if bias is None else finish
    out = s.contract(Meta(shape, s.dtype), over, lhs=weight, rhs=data, library=None if split else call, finish=end)
    return viewed(s, out, s.shape)


# Attention ------------------------------------------------------------------------------------------------------------


@rule("scaled_dot_product_attention.default")
def _attention(
    s: Site,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q k^T * scale + mask) v, with the scores in F32 for the half precisions."""
    if dropout > 0:
        raise UnsupportedError("attention with dropout")
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    dtype, batch = wide(q.dtype), s.shape[:-2]
    scores_shape = (*batch, q.shape[-2], k.shape[-2])

    def shared(x: Tensor, ix: Ix, *last: Expr) -> Expr:
        """Element of k or v for the query's batch position, its heads shared by groups of query heads."""
        lead = list(ix[: len(batch)])
        if enable_gqa and x.shape[-3] != q.shape[-3]:
            lead[-1] = floordiv(lead[-1], index(q.shape[-3] // x.shape[-3]))
            return load(x, (*aligned(x.shape[:-3], batch[:-1], tuple(lead[:-1])), lead[-1], *last))
        return load(x, (*aligned(x.shape[:-2], batch, tuple(lead)), *last))

    def masked(acc: Expr, ix: Ix) -> Expr:
        score = mul(acc, const(factor, dtype))
        low = const(-math.inf, dtype)
        if mask is not None:
            entry = load(mask, aligned(mask.shape, scores_shape, ix))
            score = select(entry, score, low) if mask.dtype is DType.BOOL else add(score, cast(entry, dtype))
        return select(compare(Fn.LE, ix[-1], ix[-2]), score, low) if is_causal else score

    scores = s.contract(
        Meta(scores_shape, dtype),
        q.shape[-1:],
        lhs=lambda ix, rx: load(q, (*aligned(q.shape[:-2], batch, ix[: len(batch)]), ix[-2], *rx)),
        rhs=lambda ix, rx: shared(k, ix, ix[-1], *rx),
        library=None,
        finish=masked,
    )
    weights = _attention_weights(s, scores)
    return s.contract(
        Meta(s.shape, s.dtype),
        k.shape[-2:-1],
        lhs=lambda ix, rx: load(weights, (*ix[:-1], *rx)),
        rhs=lambda ix, rx: cast(shared(v, ix, *rx, ix[-1]), dtype),
        library=library_call("aten.matmul.default", weights, v) if v.dtype is dtype and not enable_gqa else None,
    )


def _attention_weights(s: Site, scores: Tensor) -> Tensor:
    """Softmax over the last dimension; as in PyTorch, rows whose scores are all minus infinity, masked or not, give 0."""
    top, total = softmax_parts(s, scores, len(scores.shape) - 1)

    def body(ix: Ix) -> Expr:
        peak = load(top, ix[:-1])
        out = div(unary(Fn.EXP, sub(load(scores, ix), peak)), load(total, ix[:-1]))
        closed = compare(Fn.EQ, peak, const(-math.inf, scores.dtype))
        return select(closed, const(0, scores.dtype), out)

    return s.map(scores.shape, scores.dtype, body)
