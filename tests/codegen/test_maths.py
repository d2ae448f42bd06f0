"""The prelude's maths: greatest error in units in the last place against float64, and the special values."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import native
import numpy as np
import pytest

from kernelwright.codegen.cpp_prelude import paste

NAMES = ("exp", "expm1", "log", "log1p", "log2", "sigmoid", "tanh", "erf", "sin", "cos", "sqrt", "rsqrt")
EXACT = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sin": np.sin, "cos": np.cos, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip
# The greatest error allowed, in ulp; what was measured stands in the prelude's comments.
LIMIT = {
    "exp": 1.5, "expm1": 2.0, "log": 1.5, "log1p": 2.0, "log2": 1.5, "sigmoid": 2.5, "tanh": 1.5, "erf": 1.5, "sin": 1.5,
    "cos": 1.5, "sqrt": 0.5001, "rsqrt": 1.5,
}  # fmt: skip
SPANS = {
    "exp": (-87.3, 88.7), "expm1": (-30, 88.7), "sigmoid": (-87, 30), "tanh": (-12, 12), "erf": (-5, 5), "sin": (-1e5, 1e5),
    "cos": (-1e5, 1e5),
}  # fmt: skip
MORE = {"sin": (-3, 3), "cos": (-3, 3), "exp": (-2, 2), "tanh": (-1, 1), "erf": (-1, 1), "expm1": (-1, 1), "sigmoid": (-4, 4)}


@pytest.fixture(scope="module", params=["avx2", "portable"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Every function over arrays: `<name>_v` by vectors, `<name>_s` by scalars, `<name>_d` for doubles."""
    isa = request.param
    if not native.machine_has(isa):
        pytest.skip(f"this machine has no {isa}")
    snippets = [f"kw_{n}" for n in NAMES] + ["kw_load", "kw_store"]
    lines = [paste(snippets), "constexpr int W = kw_bytes / 4;"]
    for n in NAMES:
        lines.append(
            f'extern "C" void {n}_v(const float* x, float* y, long n) '
            f"{{ for (long i = 0; i < n; i += W) kw_store(y + i, kw_{n}(kw_load<W>(x + i))); }}\n"
            f'extern "C" void {n}_s(const float* x, float* y, long n) {{ for (long i = 0; i < n; ++i) y[i] = kw_{n}(x[i]); }}\n'
            f'extern "C" void {n}_d(const double* x, double* y, long n) {{ for (long i = 0; i < n; ++i) y[i] = kw_{n}(x[i]); }}'
        )
    folder: Path = tmp_path_factory.mktemp("maths")
    return ctypes.CDLL(str(native.compile_text("\n".join(lines), folder, isa)))


def apply(library: ctypes.CDLL, name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    call = getattr(library, name)
    call(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_long(x.size))
    return y


def sweep(name: str) -> np.ndarray:
    """Evenly over the span, over a smaller one, and over all exponents."""
    rng = np.random.default_rng(0)
    exponents = np.exp2(rng.uniform(-126, 127, 40000))
    if name in ("log", "log2", "sqrt", "rsqrt"):
        near = rng.uniform(0.3, 3, 200000)
        return np.concatenate([exponents, near]).astype(np.float32)[: 240000 // 16 * 16]
    if name == "log1p":
        return np.concatenate([exponents, rng.uniform(-0.999, 4, 200000)]).astype(np.float32)
    low, high = SPANS[name]
    small = np.exp2(rng.uniform(-60, 0, 40000)) * rng.choice([-1, 1], 40000)
    parts = [rng.uniform(low, high, 200000), rng.uniform(*MORE[name], 100000), small]
    return np.concatenate(parts).astype(np.float32)[: 340000 // 16 * 16]


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """The greatest distance in units of float32's last place at the exact value."""
    spacing = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(found.astype(np.float64) - exact) / spacing))


@pytest.mark.parametrize("name", NAMES)
def test_error(library: ctypes.CDLL, name: str) -> None:
    x = sweep(name)
    with np.errstate(all="ignore"):
        exact = EXACT[name](x.astype(np.float64))
    found = apply(library, f"{name}_v", x)
    worst = ulps(found, exact)
    assert worst <= LIMIT[name], worst
    np.testing.assert_array_equal(found[:4000], apply(library, f"{name}_s", x[:4000]))
    np.testing.assert_allclose(apply(library, f"{name}_d", x[:1000].astype(np.float64)), exact[:1000], rtol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_special_values(library: ctypes.CDLL, name: str) -> None:
    tiny = np.float32(1e-42)
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny, 1e38, -1e38, 200, -200, 1, -1, 89, -104, -90], np.float32)
    with np.errstate(all="ignore"):
        exact = EXACT[name](x.astype(np.float64)).astype(np.float32)
    found = apply(library, f"{name}_v", x)
    if name in ("sin", "cos"):
        np.testing.assert_allclose(found, exact, rtol=3e-7, atol=0)
        return
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    np.testing.assert_allclose(found, exact, rtol=4e-7, atol=3e-45 if name != "sigmoid" else 2e-38)
