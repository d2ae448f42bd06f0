"""Hand-written kernels and references, packaged as results for the tests of this folder."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType

from kernelwright.records import (
    Candidate,
    Case,
    CaseRole,
    Evidence,
    EvidenceKind,
    Fill,
    GeneratedStep,
    Interval,
    Machine,
    Manifest,
    Measurement,
    Precision,
    Sample,
    Status,
    Task,
    TensorSpec,
)
from kernelwright.result.certificate import Certificate, CheckedCase, Roofline, Versions, claim_of
from kernelwright.result.folder import Product, ResultFolder, write_result

MACHINE = Machine("Zen 3", "avx2", 32, 2, 32768, 524288, 1 << 25, 150.0, 75.0, None, (), 1.0, "g++ 12", "2026-01-01")
MEASUREMENT = Measurement(
    ("ours", "eager", "compile"),
    tuple(Sample(n, (100.0 + n, 210.0 + n, 180.0 - n)) for n in range(20)),
    {"ours": 110.0, "eager": 220.0, "compile": 170.0},
    {"eager": Interval(2.0, 1.95, 2.05), "compile": Interval(1.6, 1.5, 1.7)},
    0.02, 2, "warm", 0.3, {"max-autotune": "needs triton"},
)  # fmt: skip

# y = x * weight + bias, with the weights packed as their doubles, so that a stale packing shows.
AFFINE = """
struct kw_pool { void (*parallel)(void (*)(void*), void*, unsigned, unsigned); int (*thread_num)(void); int threads; };
#if defined(KW_ISA_PORTABLE)
extern "C" const char kw_isa[] = "portable";
#else
extern "C" const char kw_isa[] = "vector";
#endif
extern "C" void kw_prepare(void* const* t, char* packed, const kw_pool*) {
    for (int i = 0; i < 4; ++i) {
        ((float*)packed)[i] = 2 * ((float*)t[1])[i];
        ((float*)packed)[4 + i] = 2 * ((float*)t[2])[i];
    }
}
extern "C" void kw_run_0(void* const* t, char*, char* packed, const kw_pool*) {
    const float *x = (const float*)t[0], *p = (const float*)packed;
    float* y = (float*)t[3];
    for (int i = 0; i < 12; ++i) y[i] = (x[i] * p[i % 4] + p[4 + i % 4]) / 2;
}
"""
AFFINE_REFERENCE = '''
"""y = x * weight + bias."""
import torch

CALLS = []


class Affine(torch.nn.Module):
    def __init__(self, width: int, start: float = 1.0) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((width,), start))
        self.register_buffer("bias", torch.arange(width, dtype=torch.float32))
        self.inner = torch.nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        CALLS.append(tuple(x.shape))
        return self.inner(x) * self.weight + self.bias


def get_inputs():
    return [torch.randn(3, 4)]


def get_init_inputs():
    return [4]
'''
AFFINE_MANIFEST = Manifest(
    inputs=(TensorSpec("x", (3, 4), "f32"),),
    weights=(TensorSpec("weight", (4,), "f32", "weight"), TensorSpec("bias", (4,), "f32", "bias")),
    constants=(), outputs=(TensorSpec("y", (3, 4), "f32"),), temporaries=(), slots=("x", "weight", "bias", "y"),
    returns=("y",), output_tree="tensor", steps=(GeneratedStep("kw_run_0"),), workspace_bytes=0, local_bytes=0,
    packed_bytes=32,
)  # fmt: skip

# y = a - b + table, a function of two inputs with a constant.
DIFFERENCE = """
extern "C" void kw_run_0(void* const* t, char*, char*, const void*) {
    const float *a = (const float*)t[0], *b = (const float*)t[1], *c = (const float*)t[2];
    for (int i = 0; i < 3; ++i) ((float*)t[3])[i] = a[i] - b[i] + c[i];
}
"""
DIFFERENCE_REFERENCE = """
import torch
import constants_of_mine

CALLS = []


def difference(a, b, scale=None):
    CALLS.append(1)
    return (a - b + torch.tensor(constants_of_mine.TABLE)) * (1 if scale is None else scale)
"""
DIFFERENCE_MANIFEST = Manifest(
    inputs=(TensorSpec("a", (3,), "f32"), TensorSpec("b", (3,), "f32")), weights=(),
    constants=(TensorSpec("table", (3,), "f32", "lifted_0"),), outputs=(TensorSpec("y", (3,), "f32"),), temporaries=(),
    slots=("a", "b", "table", "y"), returns=("y",), output_tree="tensor", steps=(GeneratedStep("kw_run_0"),),
    workspace_bytes=0, local_bytes=0, packed_bytes=0,
)  # fmt: skip

_loaded = itertools.count()


def task(path: Path, entry: str, is_function: bool = False, training: bool = False) -> Task:
    cases = (Case("nominal", CaseRole.TIME, Fill.REFERENCE, 1),)
    return Task(entry, str(path), entry, is_function, None, training, Precision.STRICT, cases, "0123456789abcdef0")


def draft(of: Task, candidate: Candidate, measurement: Measurement = MEASUREMENT) -> Certificate:
    evidence = Evidence(EvidenceKind.COMPILED, Status.PASS, "avx2", "compiled in 0.1 s", "g++ 12", "g++ -O3 kernel.cpp")
    return Certificate(
        1, "2026-01-01T00:00:00+00:00", "affine-1", of, candidate.digest, candidate.schedule, claim_of(measurement),
        Versions("0.1", "2.13.0", "3.11", "g++ 12", "Linux 6"), MACHINE, (measurement,),
        (CheckedCase("nominal", "reference", 1, True, 1e-8, 2e-8, 4e-8),), (evidence,),
        Roofline(1 << 20, 1e6, 40.0, 150.0, 50.0, "memory", 0.5), 1.0, "kernelwright replay certificate.json", {},
    )  # fmt: skip


def write_affine(
    folder: Path,
    training: bool = False,
    kernel: str = AFFINE,
    reference: str = AFFINE_REFERENCE,
    source_folder: Path | None = None,
) -> ResultFolder:
    source_folder = source_folder or folder.parent.parent
    path = source_folder / f"{folder.name}_reference.py"
    path.write_text(reference)
    made = task(path, "Affine", training=training)
    candidate = Candidate("cpu", kernel, AFFINE_MANIFEST, schedule="tile.y.i = 4")
    return write_result(folder, Product(made, candidate, {}), draft(made, candidate), lambda c: f"<p>{c.digest}</p>")


def write_difference(folder: Path, keywords: tuple[str, ...] = (), table: str = "[1.0, 2.0, 3.0]") -> ResultFolder:
    import struct

    (folder.parent / "constants_of_mine.py").write_text(f"TABLE = {table}\n")
    path = folder.parent / "difference_reference.py"
    path.write_text(DIFFERENCE_REFERENCE)
    made = task(path, "difference", is_function=True)
    candidate = Candidate("cpu", DIFFERENCE, DIFFERENCE_MANIFEST)
    product = Product(made, candidate, {"lifted_0": struct.pack("<3f", 1, 2, 3)}, keywords)
    return write_result(folder, product, draft(made, candidate), lambda c: "")


def load(result: ResultFolder | Path) -> ModuleType:
    """module.py as a user's importlib would load it, under a new name."""
    path = result.module if isinstance(result, ResultFolder) else result / "module.py"
    spec = importlib.util.spec_from_file_location(f"packaged_{next(_loaded)}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
