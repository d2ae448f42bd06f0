"""Element-wise rules and type promotion, against PyTorch."""

# ruff: noqa: E501, PLR0124 (tables)

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from capture_harness import check, check_all

torch.manual_seed(1)

FLOATS = {
    "relu": torch.relu, "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "exp": torch.exp, "expm1": torch.expm1,
    "log": lambda x: torch.log(x.abs() + 1), "log1p": lambda x: torch.log1p(x.abs()), "log2": lambda x: torch.log2(x.abs() + 1),
    "log10": lambda x: torch.log10(x.abs() + 1), "sqrt": lambda x: torch.sqrt(x.abs()), "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "reciprocal": lambda x: torch.reciprocal(x.abs() + 1), "tanh": torch.tanh, "sigmoid": torch.sigmoid, "erf": torch.erf,
    "sin": torch.sin, "cos": torch.cos, "tan": lambda x: torch.tan(x / 4), "floor": torch.floor, "ceil": torch.ceil,
    "sinh": torch.sinh, "cosh": torch.cosh, "exp2": torch.exp2, "erfc": torch.erfc,
    "round": torch.round, "trunc": torch.trunc, "silu": F.silu, "mish": F.mish, "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid, "relu6": F.relu6, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": F.softplus, "softplus_beta": lambda x: F.softplus(x * 10, 2.0, 5.0), "leaky": lambda x: F.leaky_relu(x, 0.2),
    "elu": F.elu, "selu": F.selu, "celu": lambda x: F.celu(x, 0.5), "hardtanh": F.hardtanh, "softsign": F.softsign,
    "logsigmoid": F.logsigmoid, "tanhshrink": F.tanhshrink, "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "hardshrink": F.hardshrink, "softshrink": F.softshrink,
    "clamp": lambda x: x.clamp(-0.5, 0.5), "clamp_min": lambda x: x.clamp(min=0.1), "clamp_max": lambda x: torch.clamp_max(x, 0.1),
    "pow2": lambda x: x**2, "pow3": lambda x: x**3, "pow_half": lambda x: x.abs() ** 0.5, "pow_-1": lambda x: (x.abs() + 1) ** -1,
    "pow_1.7": lambda x: x.abs() ** 1.7, "2^x": lambda x: 2**x, "square": torch.square, "rsub": lambda x: 3 - x,
    "div_scalar": lambda x: x / 3, "scalar_div": lambda x: 3 / (x.abs() + 1), "floor_divide": lambda x: x // 0.75,
    "remainder": lambda x: x % 0.75, "fmod": lambda x: torch.fmod(x, 0.75), "isnan": torch.isnan, "isinf": torch.isinf,
    "isfinite": torch.isfinite, "eq": lambda x: x == x, "gt": lambda x: x > 0, "where": lambda x: torch.where(x > 0, x, 2.0),
    "to_i64": lambda x: (x * 10).to(torch.int64), "to_bool": lambda x: x.bool(), "nan_to_num": torch.nan_to_num,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_unary(dtype: torch.dtype) -> None:
    x = torch.randn(3, 7).to(dtype)
    # a value on a step of the function may fall to the other side in half precision
    steps = {"floor_divide", "remainder", "fmod", "hardswish"} if dtype in (torch.bfloat16, torch.float16) else set()
    check_all({k: f for k, f in FLOATS.items() if k not in steps}, x, tolerance=5e-2 if steps else None)


def test_nan_and_infinity_pass_through() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0])
    names = ["relu", "clamp", "sigmoid", "tanh", "exp", "isnan", "isinf", "isfinite", "hardtanh", "abs", "leaky", "nan_to_num"]
    check_all({n: FLOATS[n] for n in names}, x)


def test_binary_with_broadcasting() -> None:
    check_all(
        {
            "add": torch.add, "add_alpha": lambda a, b: torch.add(a, b, alpha=2), "sub": torch.sub, "mul": torch.mul,
            "sub_alpha": lambda a, b: torch.sub(a, b, alpha=0.5), "div": lambda a, b: a / (b.abs() + 1), "max": torch.maximum,
            "min": torch.minimum, "atan2": torch.atan2, "pow": lambda a, b: a.abs() ** b, "lt": torch.lt, "ge": torch.ge,
            "addcmul": lambda a, b: torch.addcmul(a, a, b, value=0.5), "lerp": lambda a, b: torch.lerp(a, b, 0.3),
            "addcdiv": lambda a, b: torch.addcdiv(a, a, b.abs() + 1), "clamp": lambda a, b: torch.clamp(a, min=b, max=b + 1),
            "masked_fill": lambda a, b: a.masked_fill(b > 0, -1.5), "where": lambda a, b: torch.where(b > 0, a, b),
            "floor_mode": lambda a, b: torch.div(a, b.abs() + 1, rounding_mode="floor"),
            "trunc_mode": lambda a, b: torch.div(a, b.abs() + 1, rounding_mode="trunc"),
        },
        torch.randn(4, 1, 5), torch.randn(3, 5),
    )  # fmt: skip


def test_integers() -> None:
    check_all(
        {
            "true_div": lambda a, b: a / b, "floor_div": lambda a, b: a // b, "mod": lambda a, b: a % b, "fmod": torch.fmod,
            "trunc_div": lambda a, b: torch.div(a, b, rounding_mode="trunc"), "and": torch.bitwise_and, "or": torch.bitwise_or,
            "xor": torch.bitwise_xor, "not": lambda a, b: ~a, "shl": lambda a, b: a << 2, "shr": lambda a, b: a >> 1,
            "exp": lambda a, b: torch.exp(a / 8), "sqrt_int": lambda a, b: torch.sqrt(a.abs()), "pow": lambda a, b: a**2,
            "add_float": lambda a, b: a + 0.5, "sum": lambda a, b: a.sum(), "neg": lambda a, b: -a, "clamp": lambda a, b: a.clamp(-2, 2),
            "eq": lambda a, b: a == b, "gt_float": lambda a, b: a > 1.5, "relu": lambda a, b: torch.relu(a),
            "floor": lambda a, b: torch.floor(a), "logical": lambda a, b: torch.logical_xor(a, b),
        },
        torch.randint(-9, 10, (3, 5)), torch.tensor([-3, 2, 5, -1, 4]),
    )  # fmt: skip


def test_promotion() -> None:
    i32, u8 = torch.randint(0, 9, (4,), dtype=torch.int32), torch.randint(0, 9, (4,), dtype=torch.uint8)
    i8, b = torch.randint(-9, 9, (4,), dtype=torch.int8), torch.rand(4) > 0.5
    bf, f64 = torch.randn(4).bfloat16(), torch.tensor(0.3, dtype=torch.float64)
    check_all(
        {
            "i32+u8": lambda i, u, s, m, h, d: i + u, "u8+i8": lambda i, u, s, m, h, d: u + s, "b+b": lambda i, u, s, m, h, d: m + m,
            "b*i8": lambda i, u, s, m, h, d: m * s, "bf+i32": lambda i, u, s, m, h, d: h + i, "bf*0d": lambda i, u, s, m, h, d: h * d,
            "i32*0d": lambda i, u, s, m, h, d: i * d, "i32+2.5": lambda i, u, s, m, h, d: i + 2.5, "b+1": lambda i, u, s, m, h, d: m + 1,
            "bool_sum": lambda i, u, s, m, h, d: m.sum(), "u8_wraps": lambda i, u, s, m, h, d: u * 100,
            "cmp": lambda i, u, s, m, h, d: u < s, "cmp_0d": lambda i, u, s, m, h, d: h < d, "and": lambda i, u, s, m, h, d: m & (i > 3),
            "not": lambda i, u, s, m, h, d: ~m, "logical_not": lambda i, u, s, m, h, d: torch.logical_not(i),
            "i32_cumsum": lambda i, u, s, m, h, d: i.cumsum(0), "i8_mean": lambda i, u, s, m, h, d: s.float().mean(),
        },
        i32, u8, i8, b, bf, f64,
    )  # fmt: skip


def test_zero_dimensions_empty_tensors_and_strides() -> None:
    check(lambda x: torch.relu(x) + 1, torch.tensor(-2.0))
    check(lambda x: torch.relu(x) + 1, torch.randn(0, 3))
    check(lambda x: x.sum(0), torch.randn(0, 3))
    check(lambda x: x * 2, torch.randn(4, 3).t())


def test_scalar_inputs_are_baked_in() -> None:
    captured = check(lambda x, k, flag: x * k if flag else x, torch.randn(3), 2.5, True)
    assert captured.scalars == ((1, 2.5), (2, True))
    assert len(captured.graph.inputs) == 1
