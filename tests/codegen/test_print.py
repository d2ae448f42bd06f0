"""Printed programs against the IR's meaning in numpy: every family, several shapes, all instruction sets that run here."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import native
import numpy as np
import programs as p
import pytest

from kernelwright.codegen.cpp import print_program
from kernelwright.ir.evaluate import evaluate
from kernelwright.ir.expr import DType
from kernelwright.ir.graph import Combine, Graph
from kernelwright.ir.plan import plan
from kernelwright.ir.schedule import Schedule

CASES: dict[str, Callable[[], Graph]] = {
    "gelu": lambda: p.gelu(3, 1001),
    "softmax": lambda: p.softmax(7, 333),
    "softmax_short": lambda: p.softmax(9, 5),
    "softmax_even": lambda: p.softmax(4, 1024),
    "layernorm": lambda: p.layernorm(5, 300),
    "rmsnorm_middle": lambda: p.rmsnorm_middle(2, 10, 77),
    "cumsum": lambda: p.cumsum(3, 75),
    "cumsum_even": lambda: p.cumsum(3, 64),
    "cumsum_reverse": lambda: p.cumsum(3, 75, reverse=True),
    "cumsum_exclusive": lambda: p.cumsum(3, 75, exclusive=True),
    "cumsum_both": lambda: p.cumsum(3, 13, reverse=True, exclusive=True),
    "cumsum_f64": lambda: p.cumsum(3, 75, dtype=DType.F64),
    "cumsum_i64": lambda: p.cumsum(3, 75, dtype=DType.I64),
    "cumsum_rows": lambda: p.cumsum_rows(9, 75),
    "cumsum_rows_reverse": lambda: p.cumsum_rows(9, 75, reverse=True),
    "argmax": lambda: p.argmax(6, 1003),
    "argmax_short": lambda: p.argmax(6, 3),
    "argmin": lambda: p.argmax(6, 203, Combine.ARGMIN),
    "argmax_u8": lambda: p.argmax(6, 203, dtype=DType.U8),
    "argmax_i64": lambda: p.argmax(6, 203, dtype=DType.I64),
    "argmax_rows": lambda: p.argmax_rows(10, 45),
    "maxpool": lambda: p.maxpool(3, 57),
    "maxpool_small": lambda: p.maxpool(3, 9),
    "maxpool_2": lambda: p.maxpool(3, 40, 2, 2, 0),
    "depthwise": lambda: p.depthwise(3, 41),
    "depthwise_small": lambda: p.depthwise(3, 6),
    "gather": lambda: p.gather(11, 37, 20),
    "causal": lambda: p.causal(40, 50),
    "transpose": lambda: p.transpose(20, 33),
    "total": lambda: p.total(30, 70),
    "integers": lambda: p.integers(5, 43),
    "halves": lambda: p.halves(5, 43),
    "unary": lambda: p.unary(5, 43),
    "unary_f64": lambda: p.unary(5, 43, DType.F64),
    "dot_rows": lambda: p.dot_rows(5, 643),
    "long_sum": lambda: p.dot_rows(2, 50001),
}


def inputs_of(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    """Random inputs; indices stay inside the first 11 rows."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in graph.inputs:
        t = graph.tensors[name]
        dtype = np.dtype(native.NUMPY[t.dtype.value])
        if t.dtype is DType.BF16:
            found[name] = native.to_bf16(rng.standard_normal(t.shape))
        elif t.dtype.is_float:
            found[name] = rng.standard_normal(t.shape).astype(dtype)
        elif t.dtype is DType.BOOL:
            found[name] = rng.random(t.shape) < 0.5
        else:
            high = 11 if name == "pick" else 120
            found[name] = rng.integers(0 if name == "pick" or dtype.kind == "u" else -high, high, t.shape).astype(dtype)
    return found


def widened(graph: Graph, name: str, array: np.ndarray) -> np.ndarray:
    """An array as `evaluate` takes it (bfloat16 as float32)."""
    return native.from_bf16(array) if graph.tensors[name].dtype is DType.BF16 else array


def check(graph: Graph, folder: Path, isa: str, shift: int = 0, pool: native.Pool | None = None, *, compiler: str = "g++",
          extra: tuple[str, ...] = ()) -> None:  # fmt: skip
    """Plan, print, compile, run and compare."""
    given = inputs_of(graph)
    with np.errstate(all="ignore"):
        expected = evaluate(graph, {n: widened(graph, n, a) for n, a in given.items()})
    printed = print_program(plan(graph, Schedule(), p.MACHINE))
    library = native.compile_printed(printed, folder, isa, compiler, extra)
    got = native.Native(printed, library, pool, shift).run(given)
    for name, want in expected.items():
        dtype = graph.tensors[name].dtype
        found = widened(graph, name, got[name])
        tolerance = {DType.BF16: 1e-2, DType.F16: 2e-3, DType.F64: 1e-12}.get(dtype, 3e-6)
        if dtype.is_float:
            text = f"{name}\n{printed.source[-3000:]}"
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance * 10, err_msg=text)
        else:
            np.testing.assert_array_equal(found, want, err_msg=name)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("native")


@pytest.mark.parametrize("isa", ["avx2", "portable"])
@pytest.mark.parametrize("case", CASES)
def test_against_numpy(case: str, isa: str, folder: Path) -> None:
    if not native.machine_has(isa):
        pytest.skip(f"this machine has no {isa}")
    check(CASES[case](), folder, isa)


@pytest.mark.parametrize("case", ["gelu", "softmax", "maxpool", "argmax", "total"])
def test_threads(case: str, folder: Path) -> None:
    check(CASES[case](), folder, "portable", pool=native.torch_pool(2))


@pytest.mark.parametrize("case", ["gelu", "softmax", "rmsnorm_middle"])
def test_misaligned(case: str, folder: Path) -> None:
    check(CASES[case](), folder, "portable", shift=4)


@pytest.mark.parametrize("case", ["gelu", "softmax", "argmax", "maxpool", "halves", "unary", "causal"])
def test_clang(case: str, folder: Path) -> None:
    compiler = next((c for c in ("clang++", "clang++-19") if shutil.which(c)), None)
    if compiler is None:
        pytest.skip("no clang++ here")
    check(CASES[case](), folder, "portable", compiler=compiler)


@pytest.mark.parametrize("columns", [1000, 30000, 1000000])
def test_sums_are_as_accurate_as_the_framework(columns: int, folder: Path) -> None:
    """The strict contract on sums: RMS error at most twice PyTorch's own, on numbers with a mean."""
    import torch

    rng = np.random.default_rng(1)
    rows = 16
    x = rng.uniform(0, 1, (rows, columns)).astype(np.float32)
    graph = p.dot_rows(rows, columns)
    printed = print_program(plan(graph, Schedule(), p.MACHINE))
    library = native.compile_printed(printed, folder, "avx2" if native.machine_has("avx2") else "portable")
    got = native.Native(printed, library).run({"x": x, "w": np.ones(columns, np.float32)})["y"]
    exact = x.astype(np.float64).sum(1)
    own = np.sqrt(np.mean((got - exact) ** 2))
    theirs = np.sqrt(np.mean((torch.from_numpy(x).sum(1).numpy() - exact) ** 2))
    assert own <= 2 * theirs, (own, theirs)
