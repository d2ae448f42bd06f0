"""The tile program: a scheduled Graph, explicit loops over tiles with structured statements inside.

What it does: defines Program and its parts. A Program is a list of steps; a step is a Nest (generated code) or a Library call.
A Nest is a loop nest over tiles that all its stages share; a Stage holds structured statements (the same Map, Reduce, Scan,
Contract as in the Graph, now on the tile's domain) and says how they are run inside the tile. No scalar loops appear: a
printer turns a stage into vector loops, block expressions or threads.
What it does not do: decide anything (see `ir.plan`). Called by plan (makes it), printers and the cost model (read it).

Meaning of a Nest. Its `loops` run tile bases 0, step, 2*step, ... below extent, outermost first. The first `parallel` loops
are collapsed into one range that threads take in chunks of `chunk` tiles. An operation axis whose name equals a loop's axis
ranges over that tile only: [base, min(base + step, extent)); every other axis ranges over its full extent, unless the stage
limits it. All operations of one nest use one name for one shared axis. Stages run in order for each tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kernelwright.ir.expr import Expr, Load
from kernelwright.ir.graph import Contract, Graph, Library, Structured, Tensor
from kernelwright.ir.schedule import Schedule


class Place(Enum):
    """Where a tensor lives while the program runs."""

    ARGUMENT = "argument"  # a caller's pointer: inputs, weights, constants, outputs, and all that library calls touch
    WORKSPACE = "workspace"  # at `offset` in the one planned workspace
    LOCAL = "local"  # a per-thread tile buffer inside one nest
    FORWARDED = "forwarded"  # never stored: made and used at the same index in one stage


@dataclass(frozen=True)
class Buffer:
    """The place of one tensor.

    For LOCAL, `shape` is the allocated shape (one extent a dimension, tile steps for tiled ones) and `base[d]` the loop axis
    whose tile base is subtracted from index d (None: the index is used as it is). `offset` is in bytes, 64-byte aligned: within
    the workspace for WORKSPACE, within the thread's local area for LOCAL. Where `alias` is set the tensor is another dense
    shape of that tensor's memory (same element order, dtype, place and offset): it has no storage of its own.
    """

    tensor: str
    place: Place
    offset: int = 0
    shape: tuple[int, ...] = ()
    base: tuple[str | None, ...] = ()
    alias: str | None = None


@dataclass(frozen=True)
class Loop:
    """One tile loop: `axis` runs over [0, extent) in steps of `step` elements. step >= extent means a single tile."""

    axis: str
    extent: int
    step: int


@dataclass(frozen=True)
class Limit:
    """In this stage `axis` ends before `upper` (an I64 expression of loop bases' axes; clamped to the extent).

    The plan adds one only where it proved that the elements beyond are not needed (a causal mask). With `when` it holds only in
    tiles where that BOOL, which an earlier stage of the nest made, is true; in others the axis runs to its end.
    """

    axis: str
    upper: Expr
    when: Load | None = None


class Packing(Enum):
    """How a micro-kernel reads one operand of a contraction."""

    DIRECT = "direct"  # straight from the tensor, which must be a plain affine Load
    LOCAL = "local"  # packed per tile and K block into a per-thread panel; the operand may be any expression
    AHEAD = "ahead"  # packed once per call into the workspace, before the nest runs
    PREPARED = "prepared"  # packed once at load: the operand depends on weights and constants only


@dataclass(frozen=True)
class MicroKernel:
    """The packed register-tile leaf of a Contract stage.

    `n_axes` are the axes that the vector side walks; the last one is the output's innermost axis. `m_axes` are the other
    side's. `k_axes` are the reduce axes in flattening order (outermost first). `swap`: the Contract's lhs is the N side.
    The register tile is `mr` rows by `nr` vectors; K is cut into blocks of `kc` flattened elements (>= K: one block).
    """

    m_axes: tuple[str, ...]
    n_axes: tuple[str, ...]
    k_axes: tuple[str, ...]
    swap: bool
    mr: int
    nr: int
    kc: int
    pack_m: Packing
    pack_n: Packing


class Store(Enum):
    """How a stage writes its outputs."""

    NORMAL = "normal"
    STREAM = "stream"  # non-temporal, where alignment allows it


@dataclass(frozen=True)
class Stage:
    """Statements that share one loop domain.

    Several `ops` are fused into the same loops: they have equal axes (a Reduce's axes plus its reduce_axes, as a set, equal a
    fused Map's axes), and a later one may load an earlier one's output at exactly the same index, which is forwarded in
    registers. `vector` is the vectorised axis (None: scalar code); `order` lists the stage's other loop axes, outermost
    first; `unroll` is the number of vectors a step (independent accumulators for a Reduce). A Contract stage has a `leaf` and
    exactly one op; `vector` and `order` are then the leaf's own.
    """

    ops: tuple[Structured, ...]
    vector: str | None = None
    order: tuple[str, ...] = ()
    unroll: int = 1
    store: Store = Store.NORMAL
    limits: tuple[Limit, ...] = ()
    leaf: MicroKernel | None = None

    @property
    def contract(self) -> Contract | None:
        """The contraction of a leaf stage."""
        op = self.ops[0]
        return op if isinstance(op, Contract) else None


@dataclass(frozen=True)
class Nest:
    """One generated loop nest. `name` is unique in the program and a C identifier. `threads`: 0 = all, 1 = run serially."""

    name: str
    loops: tuple[Loop, ...]
    parallel: int
    chunk: int
    stages: tuple[Stage, ...]
    threads: int = 0


Step = Nest | Library


@dataclass(frozen=True)
class Program:
    """A whole model as one program: steps in order, every tensor with its place, one planned workspace.

    `tensors` holds the graph's tensors and those that the plan added (partial results of split reductions, ...).
    `workspace_bytes` is the shared part; each thread has a further `local_bytes` (leaf panels not included: the printer
    adds its own and states the sum in its Manifest).
    """

    graph: Graph
    schedule: Schedule
    tensors: dict[str, Tensor]
    steps: tuple[Step, ...]
    buffers: dict[str, Buffer]
    workspace_bytes: int
    local_bytes: int
