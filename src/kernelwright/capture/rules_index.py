"""Rules for operators that are indexed by tensors: Maps with a Load in a Load's index.

What it does: gather, index_select, embedding, advanced indexing, one_hot and bucketize. Positions from data are clamped into
the tensor, so that generated code never reads outside it (PyTorch raises for such positions).
What it does not do: scatters, which have no form in the IR. Registered in `capture.rules.RULES`; called by `capture.lower`.
"""



from __future__ import annotations

from kernelwright.capture.rules import rule
from kernelwright.capture.rules_view import clamped
from kernelwright.capture.site import (
    Ix,
    Meta,
    Site,
    add,
    aligned,
    axis_number,
    cast,
    compare,
    const,
    load,
    select,
    wide,
)
from kernelwright.errors import UnsupportedError
from kernelwright.ir.expr import DType, Expr, Fn, index
from kernelwright.ir.graph import Combine, Tensor


def position(entry: Expr, extent: int, negative: bool = False) -> Expr:
    """A position read from data, in I64 and within [0, extent); `negative` ones count from the end."""
    at = cast(entry, DType.I64)
    if negative:
        at = select(compare(Fn.LT, at, index(0)), add(at, index(extent)), at)
    return clamped(at, extent)


@rule("gather.default")
def _gather(s: Site, x: Tensor, dim: int, positions: Tensor, **_: object) -> Tensor:
    if not x.shape:
        return s.map(s.shape, s.dtype, lambda ix: load(x, ()))
    dim = axis_number(dim, len(x.shape))

    def body(ix: Ix) -> Expr:
        return load(x, [position(load(positions, ix), x.shape[dim]) if d == dim else i for d, i in enumerate(ix)])

    return s.map(s.shape, s.dtype, body)


@rule("index_select.default")
def _index_select(s: Site, x: Tensor, dim: int, positions: Tensor) -> Tensor:
    if not x.shape or not positions.shape:
        raise UnsupportedError("index_select on 0-d tensors")
    dim = axis_number(dim, len(x.shape))

    def body(ix: Ix) -> Expr:
        chosen = position(load(positions, (ix[dim],)), x.shape[dim])
        return load(x, [chosen if d == dim else i for d, i in enumerate(ix)])

    return s.map(s.shape, s.dtype, body)


@rule("embedding.default")
def _embedding(s: Site, table: Tensor, positions: Tensor, *_: object, **__: object) -> Tensor:
    return s.map(
        s.shape, s.dtype, lambda ix: load(table, (position(load(positions, ix[:-1]), table.shape[0]), ix[-1]))
    )


@rule("index.Tensor", "_unsafe_index.Tensor")
def _index(s: Site, x: Tensor, indices: tuple[Tensor | None, ...]) -> Tensor:
    """Advanced indexing: the indexed dimensions, broadcast together, stand where they stood if adjacent, else first."""
    used = [d for d, t in enumerate(indices) if t is not None]
    tensors = [t for t in indices if t is not None]
    if any(t.dtype in (DType.BOOL, DType.U8) for t in tensors):
        raise UnsupportedError("indexing by a mask")
    rank = max(len(t.shape) for t in tensors)
    adjacent = used == list(range(used[0], used[-1] + 1))
    first = used[0] if adjacent else 0
    shared = s.shape[first : first + rank]

    def body(ix: Ix) -> Expr:
        common = ix[first : first + rank]
        rest = iter(ix[:first] + ix[first + rank :])
        at: list[Expr] = []
        for d, extent in enumerate(x.shape):
            chosen = indices[d] if d < len(indices) else None
            if chosen is None:
                at.append(next(rest))
            else:
                at.append(position(load(chosen, aligned(chosen.shape, shared, common)), extent, negative=True))
        return load(x, at)

    return s.map(s.shape, s.dtype, body)


@rule("one_hot.default")
def _one_hot(s: Site, x: Tensor, _: int = -1) -> Tensor:
    return s.map(
        s.shape,
        s.dtype,
        lambda ix: select(compare(Fn.EQ, cast(load(x, ix[:-1]), DType.I64), ix[-1]), const(1, s.dtype), const(0, s.dtype)),
    )


@rule("bucketize.Tensor")
def _bucketize(s: Site, x: Tensor, boundaries: Tensor, *, right: bool = False, **_: object) -> Tensor:
    """The number of boundaries below each value (or not above it, with `right`)."""
    dtype = wide(x.dtype) if x.dtype.is_float else wide(boundaries.dtype) if boundaries.dtype.is_float else DType.I64
    fn = Fn.LE if right else Fn.LT

    def body(ix: Ix, rx: Ix) -> Expr:
        below = compare(fn, cast(load(boundaries, rx), dtype), cast(load(x, ix), dtype))
        return cast(below, DType.I64)

    return s.reduce(Meta(s.shape, s.dtype), boundaries.shape, Combine.SUM, body)
