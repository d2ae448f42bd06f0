"""Contraction stages built by hand, and a driver that prints them into one translation unit, for test_contract*.py."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from kernelwright.codegen import cpp_contract
from kernelwright.codegen.cpp_context import C_TYPE, Context, Used
from kernelwright.codegen.cpp_prelude import paste
from kernelwright.ir.expr import Axis, Const, DType, Expr, Fn, Load, call, index
from kernelwright.ir.graph import AxisDef, Contract, Graph, Role, Tensor
from kernelwright.ir.schedule import Schedule
from kernelwright.ir.tile import Buffer, Limit, Loop, MicroKernel, Nest, Packing, Place, Program, Stage

NUMPY = {DType.F32: np.float32, DType.F64: np.float64, DType.BF16: np.uint16, DType.F16: np.float16}
F32 = DType.F32
FLAGS = {"avx2": ["-DKW_ISA_AVX2", "-march=x86-64-v3"], "portable": ["-DKW_ISA_PORTABLE"],
         "avx512": ["-DKW_ISA_AVX512", "-march=x86-64-v4"]}  # fmt: skip


@dataclass(frozen=True)
class ContractCase:
    """One stage with its nest; `oracle` maps float64 copies of the inputs to the float64 answer."""

    name: str
    op: Contract
    tensors: dict[str, Tensor]
    loops: tuple[Loop, ...]
    micro: MicroKernel
    oracle: object
    limits: tuple[Limit, ...] = ()
    mask: object = None  # where the answer is defined
    scale: float = 1.0
    seed: int = 0

    def program(self) -> Program:
        stage = Stage((self.op,), leaf=self.micro, limits=self.limits)
        nest = Nest(self.name, self.loops, 0, 1, (stage,))
        inputs = tuple(n for n, t in self.tensors.items() if t.role is Role.INPUT)
        graph = Graph(self.name, self.tensors, (self.op,), inputs, (self.op.output,))
        buffers = {n: Buffer(n, Place.ARGUMENT) for n in self.tensors}
        return Program(graph, Schedule(), self.tensors, (nest,), buffers, 0, 0)


def tensor(name: str, *shape: int, dtype: DType = F32, role: Role = Role.INPUT) -> Tensor:
    return Tensor(name, shape, dtype, role)


def load(t: Tensor, *at: Expr | str) -> Load:
    return Load(t.name, tuple(Axis(i) if isinstance(i, str) else i for i in at), t.dtype)


def plus(a: Expr | str, b: Expr | int) -> Expr:
    a = Axis(a) if isinstance(a, str) else a
    return call(Fn.ADD, a, index(b) if isinstance(b, int) else b)


def times(a: str, factor: int) -> Expr:
    return call(Fn.MUL, Axis(a), index(factor)) if factor != 1 else Axis(a)


def inside(at: Expr, extent: int) -> Expr:
    """0 <= at < extent."""
    low = call(Fn.GE, at, index(0))
    return call(Fn.AND, low, call(Fn.LT, at, index(extent)), dtype=DType.BOOL)


def padded(t: Tensor, *at: Expr, spatial: int) -> Expr:
    """A load that is zero outside of the last `spatial` dimensions."""
    condition: Expr | None = None
    for expr, extent in zip(at[-spatial:], t.shape[-spatial:], strict=True):
        one = inside(expr, extent)
        condition = one if condition is None else call(Fn.AND, condition, one, dtype=DType.BOOL)
    assert condition is not None
    return call(Fn.SELECT, condition, Load(t.name, at, t.dtype), Const(0.0, t.dtype))


def axes(**extents: int) -> tuple[AxisDef, ...]:
    return tuple(AxisDef(n, e) for n, e in extents.items())


def micro(m: str, n: str, k: str, *, mr: int = 6, nr: int = 2, kc: int = 256, **more: object) -> MicroKernel:
    """Axes as space-separated names; pack_m / pack_n / swap by keyword, LOCAL and False by default."""
    base = MicroKernel(tuple(m.split()), tuple(n.split()), tuple(k.split()), False, mr, nr, kc, Packing.LOCAL, Packing.LOCAL)
    return replace(base, **more)  # type: ignore[arg-type]


@dataclass
class Unit:
    """A translation unit that runs several cases. `entry(case)` is the exported symbol."""

    used: Used = field(default_factory=Used)
    parts: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)

    def add(self, case: ContractCase) -> None:
        program = case.program()
        nest = program.steps[0]
        assert isinstance(nest, Nest)
        stage = nest.stages[0]
        context = Context(program, nest, stage, self.used)
        panels = cpp_contract.packed_layout(stage, nest, program)
        context.panels = {p.side: f"panel_{p.side}" for p in panels}
        body = []
        for i, (n, t) in enumerate(case.tensors.items()):
            kind = C_TYPE[t.dtype]
            body.append(f"  {kind}* __restrict p_{n} = ({kind}*)t[{i}];")
        for panel in panels:
            lines = cpp_contract.print_prepare(stage, nest, context, panel)
            body += [f"  for (long slice = 0; slice < {panel.slices}; ++slice) {{", *lines, "  }"]
        for loop in case.loops:
            a = loop.axis
            body += [f"  for (long {a}_0 = 0; {a}_0 < {loop.extent}; {a}_0 += {loop.step}) {{"]
            body += [f"  const long {a}_end = {a}_0 + {loop.step} < {loop.extent} ? {a}_0 + {loop.step} : {loop.extent};"]
        body += ["  {", *cpp_contract.print_contract_stage(stage, nest, context), "  }", *["  }"] * len(case.loops)]
        head = f'extern "C" void run_{case.name}(void* const* t, char* scratch, char* panel_m, char* panel_n) {{'
        size = {p.side: p.bytes for p in panels}
        scratch = cpp_contract.scratch_bytes(stage, nest, program)
        self.parts += [head, *body, "}", f'extern "C" long sizes_{case.name}(int i) {{']
        self.parts += [f"  const long s[3] = {{{scratch}, {size.get('m', 0)}, {size.get('n', 0)}}};", "  return s[i];", "}"]
        byte_counts = ", ".join(str(t.bytes) for t in case.tensors.values())
        names = f"run_{case.name}, sizes_{case.name}"
        self.checks += [f"  {{ const long s[] = {{{byte_counts}}}; check({len(case.tensors)}, s, {names}); }}"]

    def source(self) -> str:
        for snippet in ("kw_f16", "kw_bf16"):
            self.used.snippets.setdefault(snippet)
        return paste(self.used.snippets) + "\n" + "\n".join(self.parts) + "\n"

    def main(self) -> str:
        """A main that runs every case on exactly sized heap blocks, for the sanitizers."""
        return f"""
extern "C" void* aligned_alloc(unsigned long, unsigned long);
extern "C" void free(void*);
static void* block(long n) {{
  n = (n + 63) / 64 * 64;
  float* p = (float*)aligned_alloc(64, n ? n : 64);
  for (long i = 0; i < n / 4; ++i) p[i] = 0.5f;
  return p;
}}
extern "C" void* malloc(unsigned long);
static void check(int n, const long* bytes, void (*run)(void* const*, char*, char*, char*), long (*sizes)(int)) {{
  void* t[16];
  for (int i = 0; i < n; ++i) {{
    t[i] = malloc(bytes[i]);
    for (long j = 0; j < bytes[i] / 4; ++j) ((float*)t[i])[j] = 0.25f;
  }}
  char* s[3];
  for (int i = 0; i < 3; ++i) s[i] = (char*)block(sizes(i));
  run(t, s[0], s[1], s[2]);
  for (int i = 0; i < n; ++i) free(t[i]);
  for (int i = 0; i < 3; ++i) free(s[i]);
}}
int main() {{
{chr(10).join(self.checks)}
}}
"""


def build(source: str, folder: Path, compiler: str, isa: str, *flags: str) -> Path:
    """The shared library (or, without -shared among the flags, the program)."""
    text = folder / f"{compiler}-{isa}.cpp"
    text.write_text(source)
    out = folder / f"{compiler}-{isa}.so"
    done = subprocess.run(
        [compiler, "-O3", "-w", *FLAGS[isa], *(flags or ("-shared", "-fPIC")), str(text), "-o", str(out)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:3000]
    return out


def aligned(size: int) -> np.ndarray:
    raw = np.zeros(size + 128, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def bf16(values: np.ndarray) -> np.ndarray:
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def widen(values: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype is DType.BF16:
        return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return values.astype(np.float64)


def run(library: ctypes.CDLL, case: ContractCase) -> tuple[np.ndarray, np.ndarray]:
    """(the output, the float64 answer)."""
    rng = np.random.default_rng(case.seed)
    arrays = {}
    for name, t in case.tensors.items():
        values = rng.standard_normal(t.shape) * case.scale
        array = bf16(values) if t.dtype is DType.BF16 else values.astype(NUMPY[t.dtype])
        arrays[name] = np.full_like(array, np.nan) if name == case.op.output and t.dtype is not DType.BF16 else array
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays.values()))
    sizes = getattr(library, f"sizes_{case.name}")
    sizes.restype = ctypes.c_long
    extra = [aligned(sizes(i)) for i in range(3)]
    for e in extra:
        e[:] = 255  # NaN in every lane that is not written
    getattr(library, f"run_{case.name}")(pointers, *(ctypes.c_void_p(e.ctypes.data) for e in extra))
    inputs = {n: widen(a, case.tensors[n].dtype) for n, a in arrays.items() if n != case.op.output}
    answer = case.oracle(**inputs)  # type: ignore[operator]
    return widen(arrays[case.op.output], case.tensors[case.op.output].dtype), answer
