"""The comparison: right answers in another order pass, wrong ones fail and say where."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernelwright.ir.expr import DType
from kernelwright.lab.compare import Truth, compare, masks_agree, places, prepare
from kernelwright.records import Precision

STRICT = Precision.STRICT
RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def truth_of(y: np.ndarray, exact: np.ndarray) -> Truth:
    return prepare("out0", DType.F32, y, exact)


@pytest.fixture
def matmul() -> tuple[np.ndarray, np.ndarray, Truth]:
    a, b = f32(96, 256), f32(256, 80)
    moved = (a.astype(np.float64) * (1 + 2.0**-24 * np.sign(f32(96, 256)))) @ b.astype(np.float64)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return a, b, prepare("out0", DType.F32, a @ b, exact, moved)


def test_reordered_sum_passes(matmul: tuple[np.ndarray, np.ndarray, Truth]) -> None:
    a, b, truth = matmul
    total = np.zeros((96, 80), np.float32)
    for k in reversed(range(256)):
        total += np.outer(a[:, k], b[k])
    got = compare(total, truth, STRICT, depth=256)
    assert got.ok, got.message


@pytest.mark.parametrize("depth", [1024, 65536, 1 << 20])
def test_eight_lane_sum_of_positive_values_passes_and_a_scalar_one_does_not(depth: int) -> None:
    x = RNG.random((16, depth)).astype(np.float32)
    exact = x.astype(np.float64).sum(1)
    truth = truth_of(x.sum(1), exact)
    lanes = np.cumsum(x.reshape(16, -1, 8), axis=1, dtype=np.float32)[:, -1].sum(1)
    assert compare(lanes, truth, STRICT, depth).ok
    if depth > 65536:
        scalar = np.cumsum(x, axis=1, dtype=np.float32)[:, -1]
        wrong = compare(scalar, truth, STRICT, depth)
        assert not wrong.ok
        assert "rounding" in wrong.message


@pytest.mark.parametrize("short", ["bf16 output", "bf16 inputs", "fp16 output", "zeros", "shuffled"])
def test_fakes_fail(matmul: tuple[np.ndarray, np.ndarray, Truth], short: str) -> None:
    a, b, truth = matmul

    def bf16(x: np.ndarray) -> np.ndarray:
        return ((x.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)

    got = {
        "bf16 output": bf16(a @ b),
        "bf16 inputs": bf16(a) @ bf16(b),
        "fp16 output": (a @ b).astype(np.float16).astype(np.float32),
        "zeros": np.zeros((96, 80), np.float32),
        "shuffled": (a @ b)[::-1].copy(),
    }[short]
    assert not compare(got, truth, STRICT, depth=256).ok


def test_contracts_widen_by_their_own_bound(matmul: tuple[np.ndarray, np.ndarray, Truth]) -> None:
    a, b, truth = matmul

    def cut(x: np.ndarray, mask: int) -> np.ndarray:
        return (x.view(np.uint32) & mask).view(np.float32)

    sixteen = cut(a, 0xFFFFFF00) @ cut(b, 0xFFFFFF00)
    eight = cut(a, 0xFFFF0000) @ cut(b, 0xFFFF0000)
    assert not compare(sixteen, truth, STRICT, 256).ok
    assert compare(sixteen, truth, Precision.SPLIT3, 256).ok
    assert not compare(eight, truth, Precision.SPLIT3, 256).ok
    assert compare(eight, truth, Precision.BF16, 256).ok


def test_elementwise_ulps_pass_and_a_part_in_ten_thousand_does_not() -> None:
    x = f32(1000)
    y = np.exp(x)
    truth = truth_of(y, np.exp(x.astype(np.float64)))
    assert compare(np.nextafter(y, np.float32(np.inf)), truth, STRICT).ok
    assert not compare(y * np.float32(1.0001), truth, STRICT).ok


def test_copies_with_zero_framework_error() -> None:
    y = f32(64, 64)
    truth = truth_of(y, y.astype(np.float64))
    assert compare(y.copy(), truth, STRICT).ok
    assert not compare(y.T.copy(), truth, STRICT).ok


def test_cancelling_mean_of_many_gets_the_backward_floor() -> None:
    x = f32(1 << 16)
    exact = np.asarray(x.astype(np.float64).mean())
    moved = np.asarray((x.astype(np.float64) * (1 + 2.0**-24 * np.sign(f32(1 << 16)))).mean())
    y = np.asarray(np.float32(exact))
    truth = prepare("out0", DType.F32, y, exact, moved)
    lanes = np.asarray(np.cumsum(x.reshape(-1, 16), axis=0, dtype=np.float32)[-1].sum(dtype=np.float32) / np.float32(1 << 16))
    assert compare(lanes, truth, STRICT, 1 << 16).ok
    assert not compare(np.asarray(np.float32(0)), truth, STRICT, 1 << 16).ok


def test_last_tile_is_named() -> None:
    y = f32(32, 70)
    truth = truth_of(y, y.astype(np.float64))
    got = y.copy()
    got[:, 64:] = 0
    message = compare(got, truth, STRICT).message
    assert "axis 1: only the last 6 of 70" in message
    assert "all of them are zero" in message
    assert "first at [0, 64]" in message


def test_unwritten_is_named() -> None:
    y = f32(8, 8)
    got = np.full(8 * 8 * 4, 0xFF, np.uint8).view(np.float32).reshape(8, 8)
    message = compare(got, truth_of(y, y.astype(np.float64)), STRICT).message
    assert "never written" in message
    assert "every element" in message


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ((slice(None, None, 8),), "axis 0: one in 8 (index % 8 == 0)"),
        ((slice(None), slice(0, 2)), "axis 1: only the first 2 of 24"),
        ((slice(None), 5), "axis 1: only index 5 of 24"),
        ((slice(40, None),), "axis 0: only the last 24 of 64"),
        ((slice(None), slice(3, 7)), "axis 1: only 3..6 of 24"),
    ],
)
def test_patterns_of_places(place: tuple[object, ...], said: str) -> None:
    bad = np.zeros((64, 24), bool)
    bad[place] = True
    assert said in places(bad)


def test_constant_factor_is_named() -> None:
    y = f32(100)
    assert "off by the factor 2" in compare(y * 2, truth_of(y, y.astype(np.float64)), STRICT).message
    assert "off by 1" in compare(y + 1, truth_of(y, y.astype(np.float64)), STRICT).message


def test_specials_must_be_where_the_reference_has_them() -> None:
    y = f32(100)
    y[3], y[5], y[7] = np.nan, np.inf, -np.inf
    truth = truth_of(y, y.astype(np.float64))
    assert masks_agree(truth)
    assert compare(y.copy(), truth, STRICT).ok
    for at, value in ((3, 0.0), (5, -np.inf), (9, np.nan), (5, np.nan), (11, np.inf)):
        got = y.copy()
        got[at] = value
        verdict = compare(got, truth, STRICT)
        assert not verdict.ok
        assert f"first at [{at}]" in verdict.message


def test_overflow_in_float32_alone_makes_the_case_useless() -> None:
    y = np.array([np.inf, 1], np.float32)
    assert not masks_agree(truth_of(y, np.array([1e39, 1.0])))


def test_nan_where_the_reference_is_finite() -> None:
    y = f32(10)
    got = y.copy()
    got[9] = np.nan
    assert "only the last of 10" in compare(got, truth_of(y, y.astype(np.float64)), STRICT).message


def test_integers_and_booleans_are_exact() -> None:
    y = np.arange(10)
    truth = prepare("index", DType.I64, y, None)
    assert compare(y.copy(), truth, STRICT).ok
    assert not compare(y + (y == 4), truth, STRICT).ok
    flags = prepare("flag", DType.BOOL, y > 3, None)
    assert not compare(y > 4, flags, STRICT).ok


def test_shape_and_dtype_are_never_broadcast() -> None:
    y = np.ones((4, 4), np.float32)
    truth = truth_of(y, y.astype(np.float64))
    assert "shape [4, 1], expected [4, 4]" in compare(np.ones((4, 1), np.float32), truth, STRICT).message
    assert "dtype float64" in compare(np.ones((4, 4)), truth, STRICT).message


def test_scalars_and_empty_outputs() -> None:
    scalar = truth_of(np.asarray(np.float32(2.5)), np.asarray(2.5))
    assert compare(np.asarray(np.float32(2.5)), scalar, STRICT).ok
    assert not compare(np.asarray(np.float32(2.6)), scalar, STRICT).ok
    nothing = truth_of(np.asarray(np.float32(np.nan)), np.asarray(np.nan))
    assert masks_agree(nothing)
    assert compare(np.asarray(np.float32(np.nan)), nothing, STRICT).ok
    assert not compare(np.asarray(np.float32(np.inf)), nothing, STRICT).ok
    empty = truth_of(np.zeros((0, 4), np.float32), np.zeros((0, 4)))
    assert compare(np.zeros((0, 4), np.float32), empty, STRICT).ok


def test_bf16_and_f16_outputs() -> None:
    x = f32(4096)
    bits = ((x.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
    truth = prepare("out0", DType.BF16, bits, x.astype(np.float64))
    assert compare(bits.copy(), truth, STRICT).ok
    assert not compare(bits & np.uint16(0xFFF0), truth, STRICT).ok
    half = prepare("out0", DType.F16, x.astype(np.float16), x.astype(np.float64))
    assert compare(x.astype(np.float16), half, STRICT).ok
    assert not compare((x * 1.01).astype(np.float16), half, STRICT).ok


def test_huge_values_do_not_overflow_the_judge() -> None:
    y = np.full(16, 3e38, np.float32)
    truth = truth_of(y, y.astype(np.float64))
    assert compare(y.copy(), truth, STRICT).ok
    assert not compare(-y, truth, STRICT).ok
    double = np.full(16, 1e300)
    assert compare(double.copy(), prepare("d", DType.F64, double, double), STRICT).ok
    assert not compare(-double, prepare("d", DType.F64, double, double), STRICT).ok


def test_a_discontinuous_reference_cannot_open_the_budget() -> None:
    y = np.sign(f32(1000))
    moved = y.astype(np.float64).copy()
    moved[:5] *= -1
    truth = prepare("out0", DType.F32, y, y.astype(np.float64), moved)
    got = y.copy()
    got[500:520] = 0
    verdict = compare(got, truth, STRICT)
    assert not verdict.ok
    assert math.isfinite(verdict.rms_error)
