"""A small runner for printed programs, for tests: compiles with g++ and calls the steps through ctypes.

What it does: one process, no sandbox, library steps by a callback. What it does not do: time (see lab.timing).
"""

from __future__ import annotations

import ctypes
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernelwright.codegen.cpp import Printed
from kernelwright.ir.expr import DType
from kernelwright.records import GeneratedStep, LibraryStep, TensorSpec

FLAGS = ["-O3", "-shared", "-fPIC", "-ffp-contract=fast", "-Wall", "-Wextra", "-Wno-psabi", "-Wno-unused-function", "-Werror"]
ISA = {
    "avx512": ["-DKW_ISA_AVX512", "-march=x86-64-v4"],
    "avx2": ["-DKW_ISA_AVX2", "-march=x86-64-v3"],
    "portable": ["-DKW_ISA_PORTABLE"],
}
NUMPY = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i64": np.int64, "i32": np.int32,
    "i16": np.int16, "i8": np.int8, "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip


class Pool(ctypes.Structure):
    """struct kw_pool."""

    _fields_ = [("parallel", ctypes.c_void_p), ("thread_num", ctypes.c_void_p), ("threads", ctypes.c_int)]


def serial_pool() -> Pool:
    """No threads."""
    return Pool(None, None, 1)


def torch_pool(threads: int) -> Pool:
    """The OpenMP runtime that torch brought into this process."""
    import torch  # noqa: F401

    line = next(line for line in Path("/proc/self/maps").read_text().splitlines() if "libgomp" in line)
    library = ctypes.CDLL(line.split(maxsplit=5)[5])
    address = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in ("GOMP_parallel", "omp_get_thread_num")}
    return Pool(address["GOMP_parallel"], address["omp_get_thread_num"], threads)


def machine_has(isa: str) -> bool:
    """Whether this machine can run code for `isa`."""
    flags = Path("/proc/cpuinfo").read_text()
    return {"avx512": "avx512bw", "avx2": "avx2"}.get(isa, "sse2") in flags


def compile_printed(
    printed: Printed, folder: Path, isa: str = "avx2", compiler: str = "g++", extra: tuple[str, ...] = ()
) -> Path:
    """The shared object of `printed`. Warnings are errors."""
    return compile_text(printed.source, folder, isa, compiler, extra)


def compile_text(text: str, folder: Path, isa: str = "avx2", compiler: str = "g++", extra: tuple[str, ...] = ()) -> Path:
    """The shared object of a translation unit."""
    name = hashlib.sha256((text + isa + compiler + repr(extra)).encode()).hexdigest()[:16]
    source, target = folder / f"{name}.cpp", folder / f"{name}.so"
    if target.exists():
        return target
    source.write_text(text)
    command = [compiler, *FLAGS, *ISA[isa], *extra, str(source), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return target


def aligned(size: int, dtype: np.dtype, fill: int = 0xFF, alignment: int = 64, shift: int = 0) -> np.ndarray:
    """An array of `size` elements at an address that is `shift` bytes after a multiple of `alignment`."""
    raw = np.full(size * dtype.itemsize + 2 * alignment, fill, dtype=np.uint8)
    start = (-raw.ctypes.data) % alignment + shift
    return raw[start : start + size * dtype.itemsize].view(dtype)


def exactly(size: int, dtype: np.dtype, fill: int = 0xFF, alignment: int = 64, shift: int = 0) -> np.ndarray:
    """As `aligned` to 16 bytes only, in an allocation that ends with the array, so that a sanitizer sees what goes beyond."""
    del alignment
    raw = np.full(size * dtype.itemsize + shift, fill, dtype=np.uint8)
    return raw[shift:].view(dtype)


def empty(spec: TensorSpec, shift: int = 0) -> np.ndarray:
    """An array for `spec`, filled with 0xFF bytes (NaN)."""
    dtype = np.dtype(NUMPY[spec.dtype])
    count = int(np.prod(spec.shape)) if spec.shape else 1
    return aligned(count, dtype, shift=shift).reshape(spec.shape)


class Native:
    """A compiled program with its buffers: `run(inputs)` gives the outputs by name."""

    def __init__(self, printed: Printed, library: Path, pool: Pool | None = None, shift: int = 0) -> None:
        self.manifest = printed.manifest
        self.library = ctypes.CDLL(str(library))
        self.pool = pool or serial_pool()
        self.shift = shift
        threads = max(self.pool.threads, 1)
        workspace = self.manifest.workspace_bytes + threads * self.manifest.local_bytes
        self.workspace = aligned(workspace, np.dtype(np.uint8))
        self.packed = aligned(self.manifest.packed_bytes, np.dtype(np.uint8))
        self.tensors: dict[str, np.ndarray] = {}

    def bind(self, given: dict[str, np.ndarray]) -> None:
        """Place all tensors; what is not given is filled with NaN. Packs the weights."""
        m = self.manifest
        specs = {s.name: s for s in (*m.inputs, *m.weights, *m.constants, *m.outputs, *m.temporaries)}
        for name in m.slots:
            array = empty(specs[name], self.shift)
            if name in given:
                array[...] = given[name].astype(array.dtype) if specs[name].dtype != "bf16" else given[name]
            self.tensors[name] = array
        self.pointers = (ctypes.c_void_p * len(m.slots))(*(self.tensors[n].ctypes.data for n in m.slots))
        if m.packed_bytes:
            self.library.kw_prepare(self.pointers, ctypes.c_void_p(self.packed.ctypes.data), ctypes.byref(self.pool))

    def call(self, library_step: Callable[[LibraryStep, dict[str, np.ndarray]], None] | None = None) -> None:
        """Run all steps on the bound tensors."""
        for step in self.manifest.steps:
            if isinstance(step, GeneratedStep):
                getattr(self.library, step.symbol)(
                    self.pointers, ctypes.c_void_p(self.workspace.ctypes.data), ctypes.c_void_p(self.packed.ctypes.data),
                    ctypes.byref(self.pool),
                )  # fmt: skip
            else:
                assert library_step is not None, step.target
                library_step(step, self.tensors)

    def run(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs by name."""
        self.bind(given)
        self.call()
        return {n: self.tensors[n] for n in self.manifest.returns}


def to_bf16(x: np.ndarray) -> np.ndarray:
    """Float32 to bfloat16 bits, ties to even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(x: np.ndarray) -> np.ndarray:
    """Bfloat16 bits to float32."""
    return (x.astype(np.uint32) << 16).view(np.float32)


__all__ = ["DType", "Native", "Pool", "compile_printed", "from_bf16", "machine_has", "serial_pool", "to_bf16", "torch_pool"]
