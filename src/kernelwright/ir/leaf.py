"""Leaves of contractions: library call, register-tile micro-kernel or plain loops, and the micro-kernel's numbers.

What it does: finds the roles of a contraction's axes, says whether a micro-kernel can run it, and chooses register tile, K
block and packing (decisions `leaf.`, `mr.`, `nr.`, `kc.`, `pack_m.`, `pack_n.` with the output's name).
What it does not do: choose the tile loops around the leaf (see `ir.tiling`). Called by `ir.plan`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelwright.errors import ScheduleError
from kernelwright.ir.expr import Acc, Axis, DType, Expr, Load, axes_in, loads_in, transform, walk
from kernelwright.ir.fuse import fresh, sides, stored_value, with_ops
from kernelwright.ir.graph import AxisDef, Contract, Graph, Library, Map, Op, Role, Tensor
from kernelwright.ir.knobs import Choices
from kernelwright.ir.simplify import affine
from kernelwright.ir.stages import strides
from kernelwright.ir.tile import MicroKernel, Packing
from kernelwright.records import Machine

LOCAL_ROWS = 192  # up to so many rows (two tiles) N may as well be packed where it is used


@dataclass(frozen=True)
class Roles:
    """A contraction's axes by role. `swap`: the lhs is the N side. `operands`: (M side, N side)."""

    m: tuple[AxisDef, ...]
    n: tuple[AxisDef, ...]
    batch: tuple[AxisDef, ...]
    k: tuple[AxisDef, ...]
    swap: bool
    operands: tuple[Expr, Expr]


def product(axes: tuple[AxisDef, ...]) -> int:
    """The number of points."""
    n = 1
    for a in axes:
        n *= a.extent
    return n


def roles(op: Contract) -> Roles | None:
    """The roles for a micro-kernel; None where it has none (no N side owns the innermost axis, wrong dtype, empty)."""
    m, n, batch = sides(op)
    if not (m and n and op.reduce_axes) or len(m) + len(n) + len(batch) != len(op.axes) or op.accumulate is not DType.F32:
        return None
    if product(op.axes) * product(op.reduce_axes) == 0 or op.axes[-1] in batch:
        return None
    if any(not e.dtype.is_float or e.dtype is DType.F64 for o in (op.lhs, op.rhs) for e in walk(o)
           if isinstance(e, Load) and not _is_index(e, o)):  # fmt: skip
        return None
    swap = op.axes[-1] in m
    k = tuple(sorted(op.reduce_axes, key=lambda a: -_stride_of(op.lhs if not swap else op.rhs, a.name)))
    if swap:
        return Roles(n, m, batch, k, True, (op.rhs, op.lhs))
    return Roles(m, n, batch, k, False, (op.lhs, op.rhs))


def _is_index(load: Load, whole: Expr) -> bool:
    return any(load is inner for e in walk(whole) if isinstance(e, Load) for i in e.index for inner in loads_in(i))


def _stride_of(operand: Expr, axis: str) -> int:
    """A rank of `axis` in the operand's own order: outer dimensions first (0 where it is not read by a plain load)."""
    for load in loads_in(operand):
        for d, e in enumerate(load.index):
            if axis in axes_in(e):
                return len(load.index) - d
    return 0


def is_plain(operand: Expr) -> bool:
    """Whether the operand is one affine load, so that it can be read where it lies."""
    return isinstance(operand, Load) and operand.dtype is DType.F32 and all(affine(e) is not None for e in operand.index)


def choose_leaves(graph: Graph, choices: Choices, machine: Machine) -> tuple[Graph, frozenset[str]]:
    """Settle `leaf.<tensor>` of each contraction: library ones become Library steps; the micro-kernels' names come back."""
    ops: list[Op] = []
    tensors = dict(graph.tensors)
    micro: set[str] = set()
    for op in graph.ops:
        if not isinstance(op, Contract):
            ops.append(op)
            continue
        found = roles(op)
        options = ["loops"] if found is None else ["micro", "loops"]
        default = "micro" if found is not None and _suits(found, machine) else "loops"
        if op.library is not None:
            options.append("library")
        leaf = choices.word(f"leaf.{op.output}", options, default)
        if leaf == "library":
            ops.extend(_as_library(op, tensors))
        else:
            ops.append(op)
            if leaf == "micro":
                micro.add(op.output)
    return with_ops(replace(graph, tensors=tensors), ops), frozenset(micro)


def _suits(found: Roles, machine: Machine) -> bool:
    lanes = machine.vector_bytes // 4
    m, n, k = product(found.m), product(found.n), product(found.k)
    return m >= 4 and n >= lanes and k >= 8 and m * n * k >= 1 << 13


def _as_library(op: Contract, tensors: dict[str, Tensor]) -> list[Op]:
    assert op.library is not None
    if op.finish is None:
        return [Library((op.output,), op.library, op.origin)]
    name = fresh(f"{op.output}_library", tensors)
    tensor = tensors[op.output]
    made = Tensor(name, tensor.shape, op.accumulate if op.accumulate is not DType.F64 else tensor.dtype, Role.TEMP)
    tensors[name] = made
    value = Load(name, tuple(Axis(a.name) for a in op.axes), made.dtype)
    body = transform(op.finish, lambda e: stored_value(value, e.dtype) if isinstance(e, Acc) else e)
    return [Library((name,), op.library, op.origin), Map(op.output, op.axes, stored_value(body, tensor.dtype), op.origin)]


def register_tile(machine: Machine) -> tuple[int, int]:
    """Rows and vectors of the default register tile: 14x2 with 32 registers, 6x2 with 16."""
    return (14, 2) if machine.isa == "avx512" else (6, 2)


def micro_kernel(
    op: Contract, name: str, tensors: dict[str, Tensor], choices: Choices, machine: Machine, *, alone: bool
) -> MicroKernel:
    """The micro-kernel of `op`, whose decisions are named after tensor `name`. `alone`: its nest holds no other contraction."""
    found = roles(op)
    if found is None:
        raise ScheduleError(f"leaf.{name} = micro: no operand owns the innermost output axis")
    rows, vectors = register_tile(machine)
    registers = 32 if machine.isa == "avx512" else 16
    tried = [r for r in (4, 6, 8, 12, 14) if r <= rows + 2]
    mr = choices.number(f"mr.{name}", tried, min(rows, max(2, product(found.m))), 1, 30)
    nr = choices.number(f"nr.{name}", [v for v in (1, 2, 3, 4) if mr * v + v + 1 <= registers], vectors, 1, 8)
    if mr * nr + nr + 1 > registers:
        raise ScheduleError(f"mr.{name} = {mr}, nr.{name} = {nr}: the tile does not fit {registers} vector registers")
    k = product(found.k)
    kc = choices.number(f"kc.{name}", [c for c in (128, 192, 256, 384, 512, 1024) if c <= k], default_kc(k), 1, max(k, 1))
    direct = _m_direct(found, tensors)
    aside = Packing.DIRECT if direct else Packing.LOCAL
    pack_m = _packing(choices, f"pack_m.{name}", found.operands[0], tensors, direct=direct, aside=aside)
    aside = Packing.AHEAD if alone and once_ahead(found, tensors) else Packing.LOCAL
    pack_n = _packing(choices, f"pack_n.{name}", found.operands[1], tensors, direct=_n_direct(found, tensors), aside=aside)
    return MicroKernel(
        tuple(a.name for a in found.m), tuple(a.name for a in found.n), tuple(a.name for a in found.k),
        found.swap, mr, nr, kc, pack_m, pack_n,
    )  # fmt: skip


def default_kc(k: int) -> int:
    """One block up to 384; beyond, equal blocks of about 256, so that a panel of B stays in L1."""
    if k <= 384:
        return max(k, 1)
    blocks = -(-k // 320)
    return -(-k // blocks)


def _m_direct(found: Roles, tensors: dict[str, Tensor]) -> bool:
    """Rows can be broadcast from where they lie if K runs contiguously."""
    operand = found.operands[0]
    return isinstance(operand, Load) and is_plain(operand) and len(found.k) == 1 and (
        strides(operand.index, tensors[operand.tensor].shape, found.k[0].name) == 1
    )


def _n_direct(found: Roles, tensors: dict[str, Tensor]) -> bool:
    """Vectors can be loaded from where they lie if the innermost N axis is contiguous and the only one."""
    operand = found.operands[1]
    return isinstance(operand, Load) and is_plain(operand) and len(found.n) == 1 and (
        strides(operand.index, tensors[operand.tensor].shape, found.n[-1].name) == 1
    )


def once_ahead(found: Roles, tensors: dict[str, Tensor]) -> bool:
    """Whether the N side is better packed once before the nest: several tiles of M would each pack it again, and the panels
    are hardly larger than what they are made of (which a convolution's windows are not). Measured: docs/adr/0002.
    """
    loads = loads_in(found.operands[1])
    made_of = sum(tensors[name].size for name in {load.tensor for load in loads})
    return product(found.m) > LOCAL_ROWS and product(found.batch) * product(found.n) * product(found.k) <= 1.5 * made_of


def needs_all_rows(found: Roles, tensors: dict[str, Tensor]) -> bool:
    """Whether N is packed a tile at a time though M has many rows (a convolution): then a tile should hold them all."""
    weights = {tensors[load.tensor].role for load in loads_in(found.operands[1])} <= {Role.WEIGHT, Role.CONSTANT}
    return not weights and not once_ahead(found, tensors)


def _packing(
    choices: Choices, name: str, operand: Expr, tensors: dict[str, Tensor], *, direct: bool, aside: Packing
) -> Packing:
    """The decision `name`; `aside` is the default of an operand that can't be prepared at load."""
    made = {tensors[load.tensor].role for load in loads_in(operand)}
    options = [Packing.LOCAL.value]
    default = aside.value
    if made and made <= {Role.WEIGHT, Role.CONSTANT}:
        options.insert(0, Packing.PREPARED.value)
        default = Packing.PREPARED.value
    else:
        options.append(Packing.AHEAD.value)
    if direct:
        options.append(Packing.DIRECT.value)
    return Packing(choices.word(name, options, default))
