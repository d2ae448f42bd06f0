"""The packed contraction leaf, compiled and compared with numpy in float64."""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from contract_cases import (
    F32,
    ContractCase,
    Unit,
    axes,
    build,
    inside,
    load,
    micro,
    padded,
    plus,
    run,
    tensor,
    times,
)

from kernelwright.codegen.cpp_context import Context, Used
from kernelwright.codegen.cpp_contract import packed_layout, print_contract_stage, print_prepare
from kernelwright.errors import ScheduleError
from kernelwright.ir.expr import Acc, Axis, Const, DType, Expr, Fn, Load, call, index
from kernelwright.ir.graph import Contract, Role
from kernelwright.ir.tile import Limit, Loop, Packing

LOCAL, AHEAD, PREPARED, DIRECT = Packing.LOCAL, Packing.AHEAD, Packing.PREPARED, Packing.DIRECT


def mm(name: str, m: int, n: int, k: int, *, tiles: tuple[int, int] | None = None, transpose: str = "", dtype: DType = F32,
       finish: bool = False, out: DType | None = None, roles: str = "", **leaf: object) -> ContractCase:  # fmt: skip
    """x[m, k] @ y[k, n]; `transpose` names operands that are stored transposed; `finish`: gelu-like of (acc + bias[n])."""
    role = {c: Role.WEIGHT if c in roles else Role.INPUT for c in "xy"}
    x = tensor("x", *((k, m) if "x" in transpose else (m, k)), dtype=dtype, role=role["x"])
    y = tensor("y", *((n, k) if "y" in transpose else (k, n)), dtype=dtype, role=role["y"])
    acc = DType.F64 if dtype is DType.F64 else F32
    z = tensor("z", m, n, dtype=out or (acc if dtype is not DType.BF16 else F32), role=Role.OUTPUT)
    b = tensor("b", n, dtype=acc)
    tensors = {t.name: t for t in (x, y, z)}
    ending: Expr | None = None
    if finish:
        tensors["b"] = b
        biased = call(Fn.ADD, Acc(acc), load(b, "j"))
        ending = call(Fn.MUL, biased, call(Fn.TANH, biased))
    op = Contract("z", axes(i=m, j=n), axes(p=k), load(x, *("pi" if "x" in transpose else "ip")),
                  load(y, *("jp" if "y" in transpose else "pj")), acc, ending)  # fmt: skip
    loops = () if tiles is None else (Loop("i", m, tiles[0]), Loop("j", n, tiles[1]))

    def oracle(x: np.ndarray, y: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
        r = (x.T if "x" in transpose else x) @ (y.T if "y" in transpose else y)
        return r if b is None else (r + b) * np.tanh(r + b)

    return ContractCase(name, op, tensors, loops, micro("i", "j", "p", **leaf), oracle, scale=0.3)  # type: ignore[arg-type]


def conv(name: str, channels: tuple[int, int, int], size: tuple[int, ...], kernel: tuple[int, ...], *, pad: int = 0,
         stride: int = 1, dilation: int = 1, groups: int = 1, rows: int | None = None, residual: bool = False,
         swap: bool = False, **leaf: object) -> ContractCase:  # fmt: skip
    """A convolution over NC<spatial> with bias (and residual + relu) in the finish."""
    batch, ic, oc = channels
    spatial = len(size)
    osize = tuple((s + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for s, k in zip(size, kernel, strict=True))
    o, w = [f"o{d}" for d in range(spatial)], [f"w{d}" for d in range(spatial)]
    grouped = groups > 1
    x = tensor("x", batch, groups, ic // groups, *size)
    f = tensor("f", groups, oc // groups, ic // groups, *kernel, role=Role.WEIGHT)
    z = tensor("z", batch, groups, oc // groups, *osize, role=Role.OUTPUT)
    c, r = tensor("c", groups, oc // groups), tensor("r", *z.shape)
    at = [plus(times(a, stride), plus(times(b, dilation), -pad)) for a, b in zip(o, w, strict=True)]
    image = (Axis("n"), Axis("g"), Axis("ci"), *at)
    lhs = load(f, "g", "co", "ci", *w)
    rhs: Expr = padded(x, *image, spatial=spatial) if pad else Load("x", image, F32)
    finish: Expr = call(Fn.ADD, Acc(F32), load(c, "g", "co"))
    if residual:
        finish = call(Fn.MAX, call(Fn.ADD, finish, load(r, "n", "g", "co", *o)), Const(0.0, F32))
    extents = dict(zip(["n", "g", "co", *o], z.shape, strict=True))
    op = Contract("z", axes(**extents), axes(ci=ic // groups, **dict(zip(w, kernel, strict=True))),
                  rhs if swap else lhs, lhs if swap else rhs, F32, finish)  # fmt: skip
    loops = [Loop("n", batch, 1)] + ([Loop("g", groups, 1)] if grouped else [])
    if rows:
        loops.append(Loop(o[0], osize[0], rows))
    tensors = {t.name: t for t in (x, f, z, c)} | ({"r": r} if residual else {})

    def oracle(x: np.ndarray, f: np.ndarray, c: np.ndarray, r: np.ndarray | None = None) -> np.ndarray:
        wide = np.pad(x, [(0, 0)] * 3 + [(pad, pad)] * spatial)
        total = np.zeros(z.shape)
        for tap in itertools.product(*(range(k) for k in kernel)):
            first = [t * dilation for t in tap]
            cut = tuple(slice(f0, f0 + (n - 1) * stride + 1, stride) for f0, n in zip(first, osize, strict=True))
            total += np.einsum("ngi...,goi->ngo...", wide[(slice(None),) * 3 + cut], f[(slice(None),) * 3 + tap])
        total += c.reshape(1, *c.shape, *[1] * spatial)
        return np.maximum(total + r, 0) if r is not None else total

    kernel_leaf = micro("co", " ".join(o), " ".join(["ci", *w]), swap=swap, **leaf)
    return ContractCase(name, op, tensors, tuple(loops), kernel_leaf, oracle, scale=0.3)


def attention(name: str, *, causal: bool, score: bool, **leaf: object) -> ContractCase:
    """One of attention's contractions: scores s[b, i, j] = q k^T, or out[b, i, d] = s v, with the causal limits."""
    b, s, d = 3, 45, 24
    limit = call(Fn.ADD, Axis("i"), index(16))
    if score:
        q, k, z = tensor("q", b, s, d), tensor("k", b, s, d), tensor("z", b, s, s, role=Role.OUTPUT)
        op = Contract("z", axes(b=b, i=s, j=s), axes(d=d), load(q, *"bid"), load(k, *"bjd"), F32)
        kernel = micro("i", "j", "d", **leaf)
        limits = (Limit("j", limit),) if causal else ()
        tensors = (q, k, z)
        mask = (lambda: np.arange(s)[None, :] < np.minimum(np.arange(s) // 16 * 16 + 16, s)[:, None]) if causal else None
        return ContractCase(name, op, {t.name: t for t in tensors}, (Loop("b", b, 1), Loop("i", s, 16)), kernel,
                            lambda q, k: np.einsum("bid,bjd->bij", q, k), limits, mask)  # fmt: skip
    p, v, z = tensor("p", b, s, s), tensor("v", b, s, d), tensor("z", s, b, d, role=Role.OUTPUT)
    op = Contract("z", axes(i=s, b=b, d=d), axes(j=s), load(p, *"bij"), load(v, *"bjd"), F32)
    limits = (Limit("j", limit),) if causal else ()

    def oracle(p: np.ndarray, v: np.ndarray) -> np.ndarray:
        keep = np.arange(s)[None, :] < (np.arange(s) // 16 * 16 + 16)[:, None] if causal else 1.0
        return np.einsum("bij,bjd->ibd", p * keep, v)

    return ContractCase(name, op, {t.name: t for t in (p, v, z)}, (Loop("b", b, 1), Loop("i", s, 16)),
                        micro("i", "d", "j", **leaf), oracle, limits)  # fmt: skip


def prologue(name: str) -> ContractCase:
    """relu(x[b, i, k] * s[k]) @ y with two m axes and a batch axis inside the stage, output transposed: z[e, b, i, j]."""
    x, s, y = tensor("x", 2, 5, 33), tensor("s", 33), tensor("y", 3, 33, 19)
    z = tensor("z", 3, 2, 5, 19, role=Role.OUTPUT)
    lhs = call(Fn.MAX, call(Fn.MUL, load(x, *"bik"), load(s, "k")), Const(0.0, F32))
    op = Contract("z", axes(e=3, b=2, i=5, j=19), axes(k=33), lhs, load(y, *"ekj"), F32)
    return ContractCase(name, op, {t.name: t for t in (x, s, y, z)}, (), micro("b i", "j", "k", kc=16, mr=4),
                        lambda x, s, y: np.einsum("bik,ekj->ebij", np.maximum(x * s, 0), y))  # fmt: skip


def conditional() -> ContractCase:
    """A guard that is not affine along the run: every element is evaluated on its own."""
    x, y, z = tensor("x", 11, 13), tensor("y", 13, 17), tensor("z", 11, 17, role=Role.OUTPUT)
    half = call(Fn.FLOORDIV, Axis("j"), index(3))
    rhs = call(Fn.SELECT, call(Fn.EQ, call(Fn.MOD, Axis("j"), index(2)), index(0)), load(y, "k", "j"), Const(2.0, F32))
    rhs = call(Fn.SELECT, inside(plus(half, -1), 4), Load("y", (Axis("k"), plus(half, -1)), F32), rhs)

    def oracle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        j = np.arange(17)
        other = np.where(j % 2 == 0, y, 2.0)
        return x @ np.where((j // 3 - 1 >= 0) & (j // 3 - 1 < 4), y[:, np.clip(j // 3 - 1, 0, 16)], other)

    op = Contract("z", axes(i=11, j=17), axes(k=13), load(x, *"ik"), rhs, F32)
    return ContractCase("conditional", op, {t.name: t for t in (x, y, z)}, (), micro("i", "j", "k"), oracle)


def segments() -> ContractCase:
    """Two n axes whose output rows are apart: a row of the register tile is stored in segments."""
    x, y, z = tensor("x", 7, 9), tensor("y", 9, 5, 11), tensor("z", 5, 7, 11, role=Role.OUTPUT)
    finish = call(Fn.ADD, Acc(F32), call(Fn.CAST, Axis("b"), dtype=F32))
    op = Contract("z", axes(a=5, i=7, b=11), axes(k=9), load(x, *"ik"), load(y, *"kab"), F32, finish)
    return ContractCase("segments", op, {t.name: t for t in (x, y, z)}, (Loop("a", 5, 3),), micro("i", "a b", "k"),
                        lambda x, y: np.einsum("ik,kab->aib", x, y) + np.arange(11))  # fmt: skip


CASES = [
    mm("mm_small", 1, 1, 1),
    mm("mm_prime", 37, 41, 53),
    mm("mm_blocks", 37, 67, 131, kc=32),
    mm("mm_blocks_finish", 37, 67, 131, tiles=(20, 40), kc=32, finish=True),
    mm("mm_tall", 61, 3, 700, kc=1000),
    mm("mm_wide", 2, 200, 40),
    mm("mm_xt", 37, 41, 53, transpose="x", tiles=(12, 32)),
    mm("mm_yt", 37, 41, 53, transpose="y", tiles=(12, 32), kc=20),
    mm("mm_xyt", 37, 41, 53, transpose="xy"),
    mm("mm_direct", 37, 41, 53, pack_m=DIRECT, pack_n=DIRECT),
    mm("mm_direct_blocks", 37, 48, 53, tiles=(12, 32), kc=16, pack_m=DIRECT, pack_n=DIRECT, finish=True),
    mm("mm_direct_t", 37, 41, 53, transpose="x", pack_m=DIRECT, pack_n=DIRECT),
    mm("mm_ahead", 37, 100, 53, tiles=(12, 32), kc=16, pack_m=AHEAD, pack_n=AHEAD),
    mm("mm_ahead_t", 37, 100, 53, transpose="xy", tiles=(20, 40), kc=16, pack_m=AHEAD, pack_n=AHEAD, finish=True),
    mm("mm_prepared", 37, 100, 53, tiles=(20, 40), kc=16, pack_m=PREPARED, pack_n=PREPARED, roles="xy"),
    mm("mm_prepared_t", 37, 100, 53, transpose="y", tiles=(37, 64), pack_m=DIRECT, pack_n=PREPARED, roles="y", finish=True),
    mm("mm_4x3", 37, 100, 53, mr=4, nr=3, kc=16),
    mm("mm_14x2", 37, 100, 53, mr=14, nr=2),
    mm("mm_f64", 23, 41, 53, dtype=DType.F64, kc=16, finish=True),
    mm("mm_f64_t", 23, 41, 53, dtype=DType.F64, transpose="y", pack_m=DIRECT),
    mm("mm_bf16", 23, 41, 53, dtype=DType.BF16, finish=True),
    mm("mm_f16", 23, 41, 53, dtype=DType.F16, out=DType.F16),
    prologue("prologue"),
    conditional(),
    segments(),
    conv("conv3", (2, 3, 13), (11, 9), (3, 3), pad=1, residual=True),
    conv("conv3_rows", (1, 8, 12), (14, 14), (3, 3), pad=1, rows=4, residual=True, kc=36, pack_m=PREPARED),
    conv("conv3_direct", (1, 8, 12), (14, 14), (3, 3), pad=1, rows=5, kc=40, pack_m=DIRECT),
    conv("conv_stride", (1, 5, 7), (15, 17), (3, 3), pad=1, stride=2, rows=3),
    conv("conv_dilated", (1, 5, 7), (15, 17), (3, 3), pad=2, dilation=2, pack_m=DIRECT),
    conv("conv7", (1, 3, 16), (23, 23), (7, 7), pad=3, stride=2, rows=4, pack_m=PREPARED),
    conv("conv1x1", (2, 20, 14), (6, 8), (1, 1), pack_m=PREPARED, pack_n=DIRECT, kc=8, residual=True),
    conv("conv1x1_tail", (2, 20, 14), (5, 5), (1, 1), pack_m=DIRECT, pack_n=DIRECT, residual=True),
    conv("conv1d", (2, 6, 10), (50,), (5,), pad=2, pack_m=DIRECT),
    conv("conv_grouped", (2, 8, 12), (9, 10), (3, 3), pad=1, groups=4, pack_m=PREPARED, residual=True),
    conv("conv_swap", (1, 5, 7), (8, 8), (3, 3), pad=1, swap=True, pack_n=AHEAD),
    attention("scores", causal=False, score=True, pack_m=DIRECT),
    attention("scores_causal", causal=True, score=True, pack_m=DIRECT),
    attention("scores_ahead", causal=True, score=True, pack_n=AHEAD),
    attention("values", causal=False, score=False, pack_m=DIRECT, pack_n=DIRECT),
    attention("values_causal", causal=True, score=False, kc=16, pack_m=DIRECT),
]
COMPILERS = [(c, i) for c in ("g++", "clang++-19", "clang++") for i in ("avx2", "portable") if shutil.which(c)]


@pytest.fixture(scope="module")
def unit() -> Unit:
    made = Unit()
    for case in CASES:
        made.add(case)
    return made


@pytest.fixture(scope="module", params=COMPILERS, ids="-".join)
def library(request: pytest.FixtureRequest, unit: Unit, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler, isa = request.param
    level = "-O3" if (compiler, isa) == ("g++", "avx2") else "-O1"  # one at full strength, the others quickly
    built = build(unit.source(), tmp_path_factory.mktemp("contract"), compiler, isa, level, "-shared", "-fPIC")
    return ctypes.CDLL(str(built))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_leaf_against_numpy(library: ctypes.CDLL, case: ContractCase) -> None:
    got, want = run(library, case)
    if case.mask is not None:
        keep = np.broadcast_to(case.mask(), got.shape)  # type: ignore[operator]
        got, want = got[keep], want[keep]
    dtype = case.tensors["z"].dtype
    tolerance = {DType.F32: 2e-5, DType.F64: 1e-13, DType.F16: 4e-3}[dtype]
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(want).max())))


def test_the_widest_vectors_compile(unit: Unit, tmp_path: Path) -> None:
    """AVX-512 code is compiled on any x86 machine; it runs only where the processor has it."""
    wide = Unit()
    wide.add(mm("wide", 37, 100, 53, mr=14, kc=16, transpose="y", finish=True))
    wide.add(conv("wide_conv", (1, 8, 28), (14, 14), (3, 3), pad=1, mr=14))
    assert build(wide.source(), tmp_path, "g++", "avx512").exists()


def test_no_access_out_of_bounds(unit: Unit, tmp_path: Path) -> None:
    """Every case once on exactly sized heap blocks under the address and undefined-behaviour sanitizers."""
    source = unit.source() + unit.main()
    program = build(source, tmp_path, "g++", "avx2", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def _stage(case: ContractCase) -> tuple[Context, list[str]]:
    program = case.program()
    nest = program.steps[0]
    context = Context(program, nest, nest.stages[0], Used())  # type: ignore[union-attr, arg-type]
    return context, print_contract_stage(context.stage, context.nest, context)


def test_the_text_names_tiles_and_packing() -> None:
    _, lines = _stage(conv("c", (1, 8, 12), (14, 14), (3, 3), pad=1, rows=5, kc=40, pack_m=DIRECT))
    assert lines[0] == (
        "// z: M = (co) 12, N = (o0, o1) 70, K = (ci, w0, w1) 72 in blocks of 36; register tile 6 x 2 vectors; "
        "M direct, N local"
    )


@pytest.mark.parametrize(
    "case",
    [
        mm("transposed", 8, 9, 10, transpose="y", pack_n=DIRECT),
        conv("guarded", (1, 2, 2), (5, 5), (3, 3), pad=1, pack_n=DIRECT),
        mm("not_all", 8, 9, 10, tiles=(4, 4), pack_n=DIRECT, dtype=DType.BF16),
    ],
    ids=lambda c: c.name,
)
def test_what_the_leaf_does_not_admit(case: ContractCase) -> None:
    with pytest.raises(ScheduleError):
        _stage(case)


def test_an_activation_cannot_be_packed_at_load() -> None:
    case = mm("m", 8, 9, 10, pack_n=PREPARED)
    program = case.program()
    nest = program.steps[0]
    context = Context(program, nest, nest.stages[0], Used(), {"n": "packed"})  # type: ignore[union-attr, arg-type]
    (panel,) = packed_layout(context.stage, context.nest, program)
    with pytest.raises(ScheduleError, match="no weight"):
        print_prepare(context.stage, context.nest, context, panel)
