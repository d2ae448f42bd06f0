"""Comparison of a candidate's output with the reference's, by contract.

What it does: prepares a `Truth` (the framework's output, the float64 oracle, and how far rounding alone may move the answer),
and judges an output against it in plain numpy: positions of NaN and Inf, exact equality of integers and booleans, error budgets
of floats, and *where* an output fails. Runs in the Lab's own process, on bytes that no worker writes any more.
What it does not do: load torch, run anything, or know about aliasing and strides (a candidate's outputs are dense by ADR 1).

The budget (strict). With e = y - y64 and e_fw = y_fw - y64 over one output:
    RMS(e) <= max(2 RMS(e_fw), floor)      max|e| <= max(4 max|e_fw|, 2 floor_max), or |e_i| <= max(8, 2c) eps |y64_i|
A framework's error may be 0 by luck (a scalar, a copy), so there is a floor, c * eps * RMS(y64) with
    c = max(8, sqrt(K) / 8)
8 eps covers a chain of functions of 1 to 2 ulp each, and a short running sum whose roundings all go one way (130 equal terms:
5 eps, seen). K is the longest reduction: a float32 sum of K positive terms in n sequential lanes has a relative error of about
sqrt(K / 3) / n * eps / 2 (random walk of the partial sums' roundings), which is 0.036 sqrt(K) eps for the narrowest vector that
we call reasonable, n = 8. So 1/8 admits any vectorised order with room and rejects a scalar running sum of many terms; a
truncation to bf16 (2^-9 a value, 2^14 eps) and to fp16 (2^11 eps) is far outside. Where terms cancel, errors are relative to
the terms and not to the sum: the floor is also at least c * RMS(y64(x') - y64(x)), where x' is all inputs and weights moved by
half an ulp (the backward error that any stable algorithm has), capped at 1024 eps RMS(y64) so that a discontinuous
reference can't open the budget.
Contracts other than strict scale that same backward term by their own stated rounding of operands, and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelwright.ir.expr import DType
from kernelwright.records import Precision

Array = npt.NDArray[Any]

RMS_FACTOR = 2.0
MAX_FACTOR = 4.0
LEAST_FLOOR = 8.0
DEPTH_FLOOR = 1.0 / 8.0
ELEMENT_FLOOR = 8.0
CONDITION_CAP = 1024.0
CHUNK = 1 << 13  # elements: in the L1 and L2 caches, and below the size from which BLAS's dot starts threads

EPSILON = {DType.F64: 2.0**-52, DType.F32: 2.0**-23, DType.F16: 2.0**-10, DType.BF16: 2.0**-7}
# Smallest normal number: below it a kernel may flush to zero.
TINY = {DType.F64: 2.0**-1022, DType.F32: 2.0**-126, DType.F16: 2.0**-14, DType.BF16: 2.0**-126}
# The floor of short types: their outputs are rounded once, and 4 eps would be 3%.
SHORT_FLOOR = 0.5

# By how much a contract may round the operands of its products, in units of strict's half ulp of f32 (2^-24).
# split6 keeps 22 to 24 bits of each operand, split3 16 (bf16 hi + lo), bf16 8.
OPERAND_ROUNDING = {Precision.STRICT: 1.0, Precision.SPLIT6: 4.0, Precision.SPLIT3: 2.0**8, Precision.BF16: 2.0**16}

NUMPY = {
    DType.F64: np.float64, DType.F32: np.float32, DType.F16: np.float16, DType.BF16: np.uint16, DType.I64: np.int64,
    DType.I32: np.int32, DType.I16: np.int16, DType.I8: np.int8, DType.U8: np.uint8, DType.BOOL: np.bool_,
}  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """What one output should be. `reference` holds the framework's own output in its dtype (bf16 as uint16)."""

    name: str
    dtype: DType
    reference: Array
    exact: Array | None  # float64; None for integers and booleans
    finite: bool  # the reference has neither NaN nor Inf, nor has the oracle
    rms_framework: float
    max_framework: float
    rms_exact: float
    rms_condition: float  # RMS(y64(x') - y64(x)); 0 where it was not measured
    max_condition: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.reference.shape)


@dataclass(frozen=True)
class Allowance:
    """The error that a contract allows on one output."""

    rms: float
    maximum: float
    relative: float  # |e_i| <= relative * |y64_i| passes too
    tiny: float


@dataclass(frozen=True)
class Comparison:
    """The judgement of one output. `message` says where and how it fails, "" where it passes."""

    ok: bool
    message: str
    rms_error: float = 0.0
    max_error: float = 0.0
    rms_allowed: float = 0.0
    max_allowed: float = 0.0
    relative_error: float = 0.0  # RMS(e) / RMS(y64)


def decode(array: Array, dtype: DType) -> Array:
    """`array` as a numpy float or integer array: bf16 bits become float32, everything else stays."""
    if dtype is not DType.BF16:
        return array
    bits: Array = array.astype(np.uint32) << 16
    return bits.view(np.float32)


def prepare(name: str, dtype: DType, reference: Array, exact: Array | None, moved: Array | None = None) -> Truth:
    """The Truth of one output. `exact` is the float64 oracle (None: the reference stands for it, or integers); `moved` is the
    oracle at inputs moved by half an ulp.
    """
    if not dtype.is_float:
        return Truth(name, dtype, reference, None, True, 0.0, 0.0, 0.0, 0.0, 0.0)
    values = decode(reference, dtype)
    oracle = values.astype(np.float64) if exact is None else np.asarray(exact, np.float64).reshape(reference.shape)
    finite = _all_finite(values) and _all_finite(oracle)
    if finite:
        rms_fw, max_fw = _error(values, oracle)
        rms_exact, _ = _error(oracle, None)
        rms_cond, max_cond = (0.0, 0.0) if moved is None else _error(np.reshape(moved, reference.shape), oracle)
    else:
        keep = np.isfinite(values) & np.isfinite(oracle)
        rms_fw, max_fw = _error(values[keep], oracle[keep])
        rms_exact, _ = _error(oracle[keep], None)
        shaken = None if moved is None else np.reshape(moved, reference.shape)[keep]
        rms_cond, max_cond = (0.0, 0.0) if shaken is None else _error(shaken, oracle[keep])
    rms_cond, max_cond = (c if math.isfinite(c) else 0.0 for c in (rms_cond, max_cond))
    return Truth(name, dtype, reference, oracle, finite, rms_fw, max_fw, rms_exact, rms_cond, max_cond)


def masks_agree(truth: Truth) -> bool:
    """Whether framework and oracle have NaN and Inf at the same places: else the case says nothing about a candidate."""
    if truth.finite or truth.exact is None:
        return True
    values = decode(truth.reference, truth.dtype)
    return _same_specials(values, truth.exact)


def allowance(truth: Truth, precision: Precision, depth: int = 1) -> Allowance:
    """The budget of `truth` under `precision`; `depth` is K, the longest reduction (1: element-wise)."""
    eps = EPSILON[truth.dtype]
    short = truth.dtype in (DType.F16, DType.BF16)
    coefficient = SHORT_FLOOR if short else max(LEAST_FLOOR, DEPTH_FLOOR * math.sqrt(max(depth, 1)))
    cap = CONDITION_CAP * eps * truth.rms_exact
    rms_condition = min(truth.rms_condition, cap)
    max_condition = min(truth.max_condition, cap * max(1.0, truth.max_condition / max(truth.rms_condition, 1e-300)))
    operands = OPERAND_ROUNDING[precision]
    floor = coefficient * max(eps * truth.rms_exact, rms_condition * operands)
    return Allowance(
        rms=max(RMS_FACTOR * truth.rms_framework, floor) + TINY[truth.dtype],
        maximum=max(MAX_FACTOR * truth.max_framework, 2.0 * coefficient * max_condition * operands),
        relative=(2.0 if short else 1.0) * max(ELEMENT_FLOOR if not short else 1.0, 2.0 * coefficient) * eps,
        tiny=TINY[truth.dtype],
    )


def compare(got: Array, truth: Truth, precision: Precision, depth: int = 1) -> Comparison:
    """Judge `got` (bf16 as uint16). A wrong shape or dtype is a failure, never an exception."""
    if got.dtype != truth.reference.dtype:
        return Comparison(False, f"{truth.name}: dtype {got.dtype}, expected {truth.dtype.value}")
    if got.shape != truth.reference.shape:
        return Comparison(False, f"{truth.name}: shape {list(got.shape)}, expected {list(truth.shape)}")
    if got.size == 0:
        return Comparison(True, "")
    if truth.exact is None:
        return _compare_exactly(got, truth)
    allowed = allowance(truth, precision, depth)
    values = decode(got, truth.dtype)
    if truth.finite:
        rms, largest = _error(values, truth.exact)
    else:
        reference = decode(truth.reference, truth.dtype)
        if not _same_specials(values, reference):
            bad = _special_codes(values) != _special_codes(reference)
            return Comparison(False, f"{truth.name}: NaN or Inf at other places: {describe(bad, got, truth)}")
        keep = np.isfinite(reference) & np.isfinite(truth.exact)
        rms, largest = _error(values[keep], truth.exact[keep])
    return _verdict(got, truth, allowed, rms, largest)


def _verdict(got: Array, truth: Truth, allowed: Allowance, rms: float, largest: float) -> Comparison:
    assert truth.exact is not None
    values = decode(got, truth.dtype)
    relative = rms / truth.rms_exact if truth.rms_exact > 0 else rms
    numbers = (rms, largest, allowed.rms, allowed.maximum, relative)
    if math.isnan(rms) or math.isinf(rms):
        bad = ~np.isfinite(values) & np.isfinite(truth.exact)
        where = describe(bad, got, truth)
        return Comparison(False, f"{truth.name}: NaN or Inf where the reference has none: {where}", *numbers)
    if rms <= allowed.rms and largest <= allowed.maximum + allowed.tiny:
        return Comparison(True, "", *numbers)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(values - truth.exact)
        limit = np.maximum(allowed.maximum, allowed.relative * np.abs(truth.exact)) + allowed.tiny
        bad = error > limit
        bad &= np.isfinite(error)
    if rms <= allowed.rms and not bad.any():
        return Comparison(True, "", *numbers)
    what = f"rms error {rms:.3g} (allowed {allowed.rms:.3g}), max {largest:.3g} (allowed {allowed.maximum:.3g})"
    if not bad.any():
        hint = _rounding_hint(relative, truth.dtype)
        return Comparison(False, f"{truth.name}: {what}; the error is spread over the output{hint}", *numbers)
    hint = _rounding_hint(relative, truth.dtype) if bad.mean() > 0.05 else ""
    return Comparison(False, f"{truth.name}: {what}; {describe(bad, got, truth)}{hint}", *numbers)


def _rounding_hint(relative: float, dtype: DType) -> str:
    eps = EPSILON[dtype]
    if relative < 2048 * eps:
        return "; it looks like rounding: sum in more lanes, pairwise or in double, or use a more exact function"
    return ""


def _compare_exactly(got: Array, truth: Truth) -> Comparison:
    """Bytes of booleans: 0xFF, which marks what was not written, is as true to numpy as 1 is."""
    a, b = (got.view(np.uint8), truth.reference.view(np.uint8)) if truth.dtype is DType.BOOL else (got, truth.reference)
    if np.array_equal(a, b):
        return Comparison(True, "")
    bad = a != b
    return Comparison(False, f"{truth.name}: {describe(bad, got, truth)}", relative_error=float(bad.mean()))


def _all_finite(array: Array) -> bool:
    flat = array.reshape(-1)
    return all(bool(np.isfinite(flat[i : i + CHUNK]).all()) for i in range(0, flat.size, CHUNK))


def _error(values: Array, exact: Array | None) -> tuple[float, float]:
    """RMS and maximum of values - exact, in float64, in chunks that fit the cache. Any NaN or Inf gives a non-finite RMS."""
    a = values.reshape(-1)
    b = None if exact is None else exact.reshape(-1)
    if a.size == 0:
        return 0.0, 0.0
    buffer = np.empty(min(CHUNK, a.size), np.float64)
    total, largest = 0.0, 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, a.size, CHUNK):
            part = a[start : start + CHUNK]
            e = buffer[: part.size]
            if b is None:
                e[:] = part
            else:
                np.subtract(part, b[start : start + CHUNK], out=e)
            square = float(np.dot(e, e))
            if not math.isfinite(square) and bool(np.isfinite(e).all()):
                square = float(np.finfo(np.float64).max) / a.size
            total += square
            largest = max(largest, float(e.max()), -float(e.min()))
    return math.sqrt(total / a.size) if math.isfinite(total) else math.nan, largest


def _special_codes(values: Array) -> Array:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf."""
    codes: Array = np.asarray(np.isnan(values), np.uint8) + 2 * (values == np.inf) + 3 * (values == -np.inf)
    return codes


def _same_specials(a: Array, b: Array) -> bool:
    return bool(np.array_equal(_special_codes(a), _special_codes(b)))


def describe(bad: Array, got: Array, truth: Truth) -> str:
    """Where an output fails, for a person or an agent: count, first place, the values there, and the pattern of the places."""
    count, total = int(bad.sum()), bad.size
    if count == 0:
        return "no single element stands out"
    values, expected = decode(got, truth.dtype), decode(truth.reference, truth.dtype)
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad.reshape(-1))), bad.shape))
    place = f"[{', '.join(map(str, first))}]"
    parts = [f"{count} of {total} elements differ, first at {place}: got {values[first]:.6g}, expected {expected[first]:.6g}"]
    parts += _hints_of_values(bad, got, values, expected)
    where = places(bad)
    if where:
        parts.append(where)
    return "; ".join(parts)


def _hints_of_values(bad: Array, got: Array, values: Array, expected: Array) -> list[str]:
    limit = 1 << 20
    at = np.flatnonzero(bad.reshape(-1))[:limit]
    raw = np.ascontiguousarray(got.reshape(-1)[at]).view(np.uint8).reshape(at.size, -1)
    unwritten = int((raw == 0xFF).all(axis=1).sum())
    if unwritten and got.dtype != np.bool_:
        return ["never written" if unwritten == at.size else f"{unwritten} of them never written"]
    y, r = values.reshape(-1)[at].astype(np.float64), expected.reshape(-1)[at].astype(np.float64)
    if not (y != 0).any():
        return ["all of them are zero"]
    usable = np.isfinite(y) & np.isfinite(r) & (np.abs(r) > 1e-30)
    if usable.sum() >= 8:
        ratio, offset = y[usable] / r[usable], y[usable] - r[usable]
        middle = float(np.median(ratio))
        if float(np.abs(ratio - middle).max()) < 1e-4 * abs(middle) and abs(middle - 1) > 1e-3:
            return [f"all of them are off by the factor {middle:.6g}"]
        step = float(np.median(offset))
        if float(np.abs(offset - step).max()) < 1e-4 * abs(step):
            return [f"all of them are off by {step:.6g}"]
    return []


def places(bad: Array) -> str:
    """The pattern of the failing places along each axis, "" where there is none to tell."""
    if bad.all():
        return "every element" if bad.size > 1 else ""
    found = []
    for axis, extent in enumerate(bad.shape):
        if extent == 1:
            continue
        others = tuple(d for d in range(bad.ndim) if d != axis)
        hit = np.flatnonzero(bad.any(axis=others) if others else bad)
        if hit.size < extent:
            found.append(f"axis {axis}: {_along(hit, extent)}")
    if not found and bad.ndim > 1:
        flat = np.flatnonzero(bad.reshape(-1))
        if flat.size == flat[-1] - flat[0] + 1:
            return f"flat: {_along(flat, bad.size)}"
    return "; ".join(found)


def _along(hit: Array, extent: int) -> str:
    first, last = int(hit[0]), int(hit[-1])
    if hit.size == last - first + 1:
        if last == extent - 1:
            return f"only the last {hit.size} of {extent} (a tile's edge?)" if hit.size > 1 else f"only the last of {extent}"
        if first == 0:
            return f"only the first {hit.size} of {extent}"
        return f"only {first}..{last} of {extent}" if hit.size > 1 else f"only index {first} of {extent}"
    step = int(np.gcd.reduce(np.diff(hit)))
    if hit.size > 2 and step > 1:
        return f"one in {step} (index % {step} == {first % step})"
    return f"{hit.size} of {extent} indices"
