"""Compiles a kernel file for this machine and runs it on torch tensors through the native entry.

What it does: picks the instruction set, compiles (cached by content), finds the OpenMP runtime that torch itself uses, keeps
workspace and packed weights, calls the generated steps and the ATen calls between them, returns the outputs.
What it does not do: check its arguments (shapes, dtypes and layout are the caller's promise) or judge anything.
Who calls it: the Lab's worker; and each result's module.py, where the text of this file is embedded and Kernelwright is absent:
so it imports nothing but the standard library and torch.

The native entry: `kw_run_0(tensors, workspace, packed, pool)`, ... and `kw_prepare(tensors, packed, pool)`, see below `Pool`.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# No -ffast-math: besides changing results, g++ before 13 then links code that turns denormals off for the whole process.
FLAGS = ("-std=gnu++17", "-O3", "-shared", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
ISA_FLAGS = {
    "avx512": ("-march=x86-64-v4", "-DKW_ISA_AVX512"),
    "avx2": ("-march=x86-64-v3", "-DKW_ISA_AVX2"),
    "portable": ("-DKW_ISA_PORTABLE",),
}
ISA_NEEDS = {  # as /proc/cpuinfo spells what x86-64-v4 and x86-64-v3 contain
    "avx512": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "avx2": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
}
COMPILERS = ("g++", "clang++", "g++-14", "g++-13", "g++-12", "g++-11", "clang++-20", "clang++-19", "clang++-18", "c++")
INSTALL_HINT = "install one with `sudo apt-get install g++` (Debian, Ubuntu) or `sudo dnf install gcc-c++` (Fedora, RHEL)"
COMPILE_SECONDS = 300
ALIGNMENT = 64


class NoCompiler(Exception):  # noqa: N818
    """There is no C++ compiler here; the text says how to get one."""


class CompileFailed(Exception):  # noqa: N818
    """The compiler refused the kernel; the text is its first error."""


def detect_isa() -> str:
    """The best of "avx512", "avx2", "portable" that this CPU runs. KERNELWRIGHT_ISA may name a lesser one."""
    wanted = os.environ.get("KERNELWRIGHT_ISA", "")
    best = "portable"
    if platform.machine() in ("x86_64", "AMD64"):
        flags = _cpu_flags()
        if flags >= ISA_NEEDS["avx2"]:
            best = "avx512" if flags >= ISA_NEEDS["avx512"] else "avx2"
    order = list(ISA_FLAGS)
    return wanted if wanted in order and order.index(wanted) >= order.index(best) else best


def _cpu_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in text.splitlines() if line.startswith("flags")), set())


def compile_source(
    source: Path, folder: Path, flags: Sequence[str] = (), isa: str | None = None, compiler: str | None = None
) -> Path:
    """The shared object of `source`, compiled into `folder` unless it is there already. Whole or not at all.

    Raises NoCompiler, CompileFailed, or OSError where `folder` can't be written.
    """
    isa = isa or detect_isa()
    text = source.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    found = compiler or _find_compiler()
    options = (*FLAGS, *ISA_FLAGS[isa], *flags)
    version = os.stat(found)
    key = "\x00".join((found, str(version.st_size), str(version.st_mtime_ns), *options)).encode() + b"\x00" + text
    target = folder / f"kernel-{hashlib.sha256(key).hexdigest()[:24]}.so"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as partial:
        made = Path(partial) / "kernel.so"
        command = [found, *options, "-x", "c++", "-o", str(made), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=COMPILE_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise CompileFailed(f"{found} took more than {COMPILE_SECONDS} s") from error
        if done.returncode != 0 or not made.exists():
            said = done.stderr.decode(errors="replace").splitlines()
            raise CompileFailed(next((line for line in said if "error" in line), f"{found} ended with {done.returncode}"))
        os.replace(made, target)
    return target


def _find_compiler() -> str:
    for name in filter(None, (os.environ.get("KERNELWRIGHT_CXX"), os.environ.get("CXX"), *COMPILERS)):
        path = shutil.which(name)
        if path is not None:
            return path
    raise NoCompiler(f"no C++ compiler was found; {INSTALL_HINT}")


class Pool(ctypes.Structure):
    """struct kw_pool: how a kernel starts its threads. `parallel` null: it runs on the calling thread alone."""

    _fields_ = (("parallel", ctypes.c_void_p), ("thread_num", ctypes.c_void_p), ("threads", ctypes.c_int))


def find_openmp() -> tuple[int, int] | None:
    """Addresses of GOMP_parallel and omp_get_thread_num in the very runtime that torch uses; None where that is not certain.

    Looked up among torch's own dependencies, then proven: the runtime must follow torch.set_num_threads.
    """
    import torch

    candidates = (Path(torch.__file__).parent / "lib" / "libtorch_cpu.so", None)
    for name in candidates:
        try:
            library = ctypes.CDLL(None if name is None else str(name))
            parallel, thread_num, limit = library.GOMP_parallel, library.omp_get_thread_num, library.omp_get_max_threads
        except (OSError, AttributeError):
            continue
        if _follows_torch(limit):
            addresses = tuple(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (parallel, thread_num))
            return addresses[0], addresses[1]
    return None


def _follows_torch(limit: Callable[[], int]) -> bool:
    import torch

    before = torch.get_num_threads()
    try:
        for threads in (before + 1, before):
            torch.set_num_threads(threads)
            if limit() != threads:
                return False
    finally:
        torch.set_num_threads(before)
    return True


class Runner:
    """One compiled kernel, ready to be called. Calls from several threads take turns.

    `manifest` is the decoded JSON of the candidate's Manifest. `constants`: the reference's literal tensors, by name.
    `empty(shape, dtype=...)` makes the outputs (the Lab gives one that prefills them).
    """

    def __init__(
        self,
        library: Path,
        manifest: Mapping[str, Any],
        constants: Mapping[str, Any] | None = None,
        empty: Callable[..., Any] | None = None,
    ) -> None:
        import torch

        self._torch = torch
        self._manifest = manifest
        self._empty = empty or torch.empty
        self._library = ctypes.CDLL(str(library))
        self._lock = threading.Lock()
        self._slots = {name: i for i, name in enumerate(manifest["slots"])}
        self._table = (ctypes.c_void_p * max(1, len(self._slots)))()
        self._pool = Pool(None, None, 1)
        self._openmp = find_openmp()
        self._threads = 0
        self._workspace: Any = None
        self._packed: Any = None
        self._entry_arguments: tuple[Any, ...] = ()
        self._kept: dict[str, Any] = {}  # tensors that live as long as the runner or its weights: name -> tensor
        for spec in manifest["constants"]:
            self._keep(spec["name"], (constants or {})[spec["name"]])
        steps = manifest["steps"]
        self._from_library = {name for step in steps if "target" in step for name in step["outputs"] if name is not None}
        self._own = [spec for spec in manifest["temporaries"] if spec["name"] not in self._from_library]
        for spec in self._own:
            self._keep(spec["name"], torch.empty(tuple(spec["shape"]), dtype=_dtype(torch, spec["dtype"])))
        self._weights_given = not manifest["weights"]
        self._stale = True
        self._prepare = self._entry("kw_prepare", 3) if manifest["packed_bytes"] else None
        self._read_manifest()

    def _read_manifest(self) -> None:
        """Turn the manifest's names into slot numbers and callables, once."""
        manifest = self._manifest
        self._inputs = [spec["name"] for spec in manifest["inputs"]]
        self._input_slots = [(i, self._slots[name]) for i, name in enumerate(self._inputs) if name in self._slots]
        self._fresh = [
            (spec["name"], tuple(spec["shape"]), _dtype(self._torch, spec["dtype"]), self._slots.get(spec["name"]))
            for spec in manifest["outputs"]
            if spec["name"] not in self._from_library
        ]
        specs = {spec["name"]: spec for kind in ("outputs", "temporaries") for spec in manifest[kind]}
        self._steps = [
            self._entry(step["symbol"], 4) if "symbol" in step else _LibraryCall(self._torch, step, specs)
            for step in manifest["steps"]
        ]
        self._all_generated = all(not isinstance(step, _LibraryCall) for step in self._steps)
        self._returns = list(manifest["returns"])
        self._tree = manifest["output_tree"]
        fresh = [name for name, *_ in self._fresh]
        self._only_fresh = self._all_generated and self._returns == fresh

    def set_weights(self, weights: Sequence[Any]) -> None:
        """The weights in the manifest's order: dense, kept alive here. Their packed form is made again at the next call.

        To be called again whenever their values or places change.
        """
        with self._lock:
            for spec, weight in zip(self._manifest["weights"], weights, strict=True):
                self._keep(spec["name"], weight)
            self._weights_given = True
            self._stale = True

    def __call__(self, inputs: Sequence[Any]) -> Any:
        """Run on dense tensors in the manifest's order. Returns a tensor, or a tuple, list or None as the reference does."""
        with self._lock:
            threads = self._torch.get_num_threads()
            if threads != self._threads:
                self._set_threads(threads)
            table = self._table
            for i, place in self._input_slots:
                table[place] = inputs[i].data_ptr()
            outputs: list[Any] = []
            for _, shape, dtype, slot in self._fresh:
                output = self._empty(shape, dtype=dtype)
                if slot is not None:
                    table[slot] = output.data_ptr()
                outputs.append(output)
            if self._stale:
                self._renew()
            if self._only_fresh:
                for step in self._steps:
                    step(*self._entry_arguments)
            else:
                outputs = self._run_mixed(inputs, outputs)
        if self._tree == "tensor":
            return outputs[0]
        return tuple(outputs) if self._tree == "tuple" else outputs if self._tree == "list" else None

    def _run_mixed(self, inputs: Sequence[Any], outputs: list[Any]) -> list[Any]:
        """The general way: ATen calls between generated steps, and results that are inputs or weights themselves."""
        tensors = dict(self._kept)
        tensors.update(zip(self._inputs, inputs, strict=True))
        tensors.update((name, output) for (name, *_), output in zip(self._fresh, outputs, strict=True))
        for step in self._steps:
            if not isinstance(step, _LibraryCall):
                step(*self._entry_arguments)
                continue
            for name, result in step(tensors):
                tensors[name] = result
                slot = self._slots.get(name)
                if slot is not None:
                    self._table[slot] = result.data_ptr()
        own = {self._kept[spec["name"]].untyped_storage().data_ptr() for spec in self._own}
        results = [tensors[name] for name in self._returns]
        # A view of a buffer that the next call writes again must not leave.
        return [result.clone() if result.untyped_storage().data_ptr() in own else result for result in results]

    def _renew(self) -> None:
        """Pack the weights again. Weights may have moved; constants and temporaries never do."""
        if not self._weights_given:
            raise RuntimeError("set_weights must be called first")
        if self._prepare is not None:
            self._prepare(ctypes.addressof(self._table), self._entry_arguments[2], ctypes.addressof(self._pool))
        self._stale = False

    def _set_threads(self, threads: int) -> None:
        """Follow torch.set_num_threads: the pool's limit, and each thread's part of the workspace."""
        if self._openmp is not None and threads > 1:
            self._pool = Pool(self._openmp[0], self._openmp[1], threads)
        else:
            self._pool = Pool(None, None, 1)
        needed = self._manifest["workspace_bytes"] + self._pool.threads * self._manifest["local_bytes"]
        if self._workspace is None or self._workspace.numel() < needed + ALIGNMENT:
            self._workspace = self._torch.empty(needed + ALIGNMENT, dtype=self._torch.uint8)
        if self._packed is None:
            self._packed = self._torch.empty(self._manifest["packed_bytes"] + ALIGNMENT, dtype=self._torch.uint8)
        table, pool = ctypes.addressof(self._table), ctypes.addressof(self._pool)
        self._entry_arguments = (table, _aligned(self._workspace), _aligned(self._packed), pool)
        self._threads = threads

    def _keep(self, name: str, tensor: Any) -> None:
        self._kept[name] = tensor
        if name in self._slots:
            self._table[self._slots[name]] = tensor.data_ptr()

    def _entry(self, symbol: str, arguments: int) -> Any:
        function = getattr(self._library, symbol)
        function.argtypes = [ctypes.c_void_p] * arguments
        function.restype = None
        return function


class _LibraryCall:
    """One ATen call of the manifest, its arguments decoded once. Called with the tensors by name; gives (name, result)."""

    def __init__(self, torch: Any, step: Mapping[str, Any], specs: Mapping[str, Mapping[str, Any]]) -> None:
        namespace, name, overload = step["target"].split(".")
        self._operator = getattr(getattr(getattr(torch.ops, namespace), name), overload)
        decoded = json.loads(step["arguments"])
        self._arguments = [_resolver(torch, value) for value in decoded["args"]]
        self._keywords = {key: _resolver(torch, value) for key, value in decoded["kwargs"].items()}
        self._outputs = [
            (i, name, *_form(torch, specs.get(name)))
            for i, name in enumerate(step["outputs"])
            if name is not None
        ]

    def __call__(self, tensors: Mapping[str, Any]) -> list[tuple[str, Any]]:
        arguments = [resolve(tensors) for resolve in self._arguments]
        result = self._operator(*arguments, **{key: resolve(tensors) for key, resolve in self._keywords.items()})
        results = result if isinstance(result, (tuple, list)) else (result,)
        return [(name, _dense(results[i], shape, dtype)) for i, name, shape, dtype in self._outputs]


def _form(torch: Any, spec: Mapping[str, Any] | None) -> tuple[tuple[int, ...] | None, Any]:
    """Shape and dtype that were recorded; None for a tensor that only other ATen calls read."""
    return (None, None) if spec is None else (tuple(spec["shape"]), _dtype(torch, spec["dtype"]))


def _dense(tensor: Any, shape: tuple[int, ...] | None, dtype: Any) -> Any:
    """As the next step expects it: row-major, of the recorded shape and dtype."""
    if shape is None:
        return tensor
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        raise RuntimeError(f"an ATen call gave {tensor.dtype} {tuple(tensor.shape)} where {dtype} {shape} was recorded")
    return tensor.contiguous()


def _resolver(torch: Any, value: Any) -> Callable[[Mapping[str, Any]], Any]:
    """A function from the tensors at hand to an argument. JSON as codegen.manifest writes it."""
    if isinstance(value, dict):
        if "tensor" in value:
            name = value["tensor"]
            return lambda tensors: tensors[name]
        value = float(value["float"]) if "float" in value else _dtype(torch, value["dtype"])
    elif isinstance(value, list):
        parts = [_resolver(torch, part) for part in value]
        return lambda tensors: [part(tensors) for part in parts]
    return lambda _tensors: value


def _dtype(torch: Any, short: str) -> Any:
    names = {
        "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64",
        "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool",
    }  # fmt: skip
    return getattr(torch, names[short])


def _aligned(buffer: Any) -> int:
    """The first address in `buffer` that is a multiple of ALIGNMENT; the buffer was made larger by as much."""
    address: int = buffer.data_ptr()
    return -(-address // ALIGNMENT) * ALIGNMENT
