"""The Context of the C++ printer: what is in scope at a place of the printed text, and what the text has used.

What it does: gives the C++ name of every tensor, axis and temporary, turns (tensor, index) into an address, and records
which prelude snippets and tensors were used, so that only those are pasted.
What it does not do: print expressions (see `cpp_expr`) or loops (see `cpp_nest`). Called by every module of the printer.

In scope inside the tile body of a nest:

| C++ name | meaning |
|---|---|
| `p_<tensor>` | `T* __restrict` of a tensor: argument, workspace or this thread's local buffer |
| `<axis>_0`, `<axis>_end` | `const long`: the tile's first index and one past its last, for each axis in `nest.loops` |
| `<axis>` | `long`: the running index of an axis whose loop is open |
| `scratch` | `char*`, 64-byte aligned: this thread's `cpp_contract.scratch_bytes` (the largest of the program) |
| `Context.panels["m"]`, `["n"]` | C++ text of a `float*`: the AHEAD or PREPARED panel of that side, 64-byte aligned |
| `pool`, `thread` | `const kw_pool*` and this thread's number |
| `kw_bytes` | `constexpr int`: bytes of a vector: 64, 32 or 16 |
| `vec<T, N>` | the compiler's vector of N elements of T (`float`, `double`, `i64`, `i32`, `i16`, `i8`, `u8`) |

An axis that is not in `nest.loops` runs over [0, extent). `Context.bounds` gives both ends as text for any axis.

What `cpp.py` asks of `cpp_contract` for a Contract stage with a leaf:

- `print_contract_stage(stage, nest, context) -> list[str]`: the statements for one tile, without outer indentation. They are
  put in a block of their own, so any C++ name may be declared. `constexpr int W` is the leaf's own to declare.
- `scratch_bytes(stage, nest, program) -> int`: bytes of `scratch` that it needs (for the widest ISA), a constant.
- `packed_layout(stage, nest, program) -> tuple[Panel, ...]`: the AHEAD and PREPARED panels; `cpp.py` places them and fills
  `Context.panels` by side. Sizes are for the widest ISA where they depend on it.
- `print_prepare(stage, nest, context, panel) -> list[str]` and `print_ahead(...)` alike: statements that fill part `slice` (a
  `const long` in scope, 0 <= slice < panel.slices) of the panel from the operand. Slices run in parallel and in any order;
  the statements declare the tile variables (`<axis>_0`, `<axis>_end`) that they need from `slice`.
  `kw_prepare` runs the former once, the `kw_run_<i>` of the nest the latter before the nest's loops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kernelwright.codegen.cpp_index import Linear, Range, flatten, interval
from kernelwright.ir.expr import DType, Expr, axes_in, loads_in
from kernelwright.ir.graph import Tensor, all_axes
from kernelwright.ir.tile import Buffer, Nest, Packing, Place, Program, Stage

C_TYPE = {
    DType.F64: "double", DType.F32: "float", DType.F16: "f16", DType.BF16: "bf16", DType.I64: "i64",
    DType.I32: "i32", DType.I16: "i16", DType.I8: "i8", DType.U8: "u8", DType.BOOL: "u8",
}  # fmt: skip  (the type of an element in memory)


RESERVED = frozenset(re.findall(
    r"\w+",
    "W U u left pool thread scratch slice tile frame local data slot auto bool break case char class const continue default "
    "delete do double else enum export extern false float for friend goto if inline int long new operator private public "
    "register return short signed sizeof static struct switch template this throw true try typedef union unsigned using "
    "vec virtual void volatile while i8 i16 i32 i64 u8 f16 bf16",
))  # fmt: skip


def identifier(name: str) -> str:
    """The name of an axis as a C++ variable, or of a tensor as a part of one."""
    text = re.sub(r"\W", "_", name)
    return f"{text}_" if text in RESERVED or text.startswith("kw_") else text


@dataclass(frozen=True)
class Panel:
    """A packed operand of a Contract stage: its side ("m" or "n"), when it is packed, its bytes, its number of slices."""

    side: str
    packing: Packing
    bytes: int
    slices: int


@dataclass
class Used:
    """What a translation unit has used so far, in first-use order (dicts as ordered sets)."""

    snippets: dict[str, None] = field(default_factory=dict)
    tensors: dict[str, None] = field(default_factory=dict)
    counter: int = 0


@dataclass
class Context:
    """One nest's (and stage's) surroundings. `used` is shared by all contexts of one nest.

    `panels` maps "m" / "n" to the C++ text of the pointer of an AHEAD or PREPARED operand of this stage.
    """

    program: Program
    nest: Nest
    stage: Stage
    used: Used
    panels: dict[str, str] = field(default_factory=dict)

    def use(self, snippet: str) -> str:
        """Note that the printed text calls `snippet` of the prelude (a name in `prelude/*.cpp`); returns the name."""
        self.used.snippets[snippet] = None
        return snippet

    def fresh(self, stem: str) -> str:
        """A C++ name that is not yet used in this nest, `<stem><number>`."""
        self.used.counter += 1
        return f"{stem}{self.used.counter}"

    def tensor(self, name: str) -> Tensor:
        return self.program.tensors[name]

    def buffer(self, name: str) -> Buffer:
        return self.program.buffers[name]

    def tiled(self, axis: str) -> bool:
        """True where `axis` is a loop of the nest."""
        return any(loop.axis == axis for loop in self.nest.loops)

    def extent(self, axis: str) -> int:
        """The full extent of `axis` in this stage."""
        for op in self.stage.ops:
            for definition in all_axes(op):
                if definition.name == axis:
                    return definition.extent
        for loop in self.nest.loops:
            if loop.axis == axis:
                return loop.extent
        raise KeyError(axis)

    def single(self, axis: str) -> bool:
        """True where `axis` has one value only, so that it is printed as 0 and has no loop."""
        return self.extent(axis) == 1

    def ranges(self) -> dict[str, Range]:
        """The values that each axis of the stage and each loop of the nest can take."""
        found = {loop.axis: (0, loop.extent - 1) for loop in self.nest.loops}
        for op in self.stage.ops:
            found |= {a.name: (0, a.extent - 1) for a in all_axes(op)}
        return found

    def bounds(self, axis: str) -> tuple[str, str]:
        """C++ text of the first index and one past the last index of `axis` in this tile (without the stage's limits)."""
        name = identifier(axis)
        return (f"{name}_0", f"{name}_end") if self.tiled(axis) else ("0", str(self.extent(axis)))

    def width(self, axis: str) -> tuple[int, bool]:
        """(the largest number of elements of `axis` in a tile, whether every tile has exactly that many)."""
        extent = self.extent(axis)
        for loop in self.nest.loops:
            if loop.axis == axis:
                step = min(loop.step, extent)
                return step, extent % step == 0
        return extent, True

    def offset(self, tensor: str, index: tuple[Expr, ...]) -> Linear:
        """The element offset of `index` in the tensor's buffer; LOCAL buffers subtract their tile bases (axis `<axis>_0`)."""
        buffer = self.buffer(tensor)
        if buffer.place is not Place.LOCAL:
            return flatten(index, self.tensor(tensor).shape)
        form, stride = flatten(index, buffer.shape), 1
        terms = dict(form.terms)
        for base, extent in zip(reversed(buffer.base), reversed(buffer.shape), strict=True):
            if base is not None:
                start = f"{identifier(base)}_0"
                terms[start] = terms.get(start, 0) - stride
            stride *= extent
        return Linear(form.constant, tuple(terms.items()), form.opaque)

    def pointer(self, tensor: str) -> str:
        """The C++ name of the tensor's base pointer (of type C_TYPE[dtype]); a view has its base's."""
        tensor = self.buffer(tensor).alias or tensor
        self.used.tensors[tensor] = None
        return f"p_{identifier(tensor)}"

    def in_bounds(self, tensor: str, index: tuple[Expr, ...]) -> bool:
        """True where `index` provably lies inside the tensor for all values of the axes."""
        ranges = self.ranges()
        for expr, extent in zip(index, self.tensor(tensor).shape, strict=True):
            bounds = interval(expr, ranges)
            if bounds is None or bounds[0] < 0 or bounds[1] >= extent:
                return False
        return True

    def safe(self, expr: Expr) -> bool:
        """True where every load in `expr` is provably in bounds, so that it may be evaluated where it is not needed."""
        return all(self.in_bounds(load.tensor, load.index) for load in loads_in(expr))


def depends(expr: Expr, axis: str) -> bool:
    """True where `expr` changes with `axis`."""
    return axis in axes_in(expr)
