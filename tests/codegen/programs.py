"""Small representative graphs for the printer's tests, and how a graph is planned for this machine's kind.

What it does: builds Graphs by hand, with the operations that a capture would give. What it does not do: run them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from kernelwright.ir.expr import Acc, Axis, Call, Const, DType, Expr, Fn, Load, call, dtype_of, index, loads_in
from kernelwright.ir.graph import AxisDef, Combine, Graph, Map, Op, Reduce, Role, Scan, Tensor
from kernelwright.records import Bandwidth, Machine

F32 = DType.F32
MACHINE = Machine(
    cpu="test", isa="avx2", vector_bytes=32, threads=2, l1_bytes=32768, l2_bytes=524288, l3_bytes=33554432, fma_gflops=200,
    fma_gflops_core=100, amx_bf16_gflops=None, bandwidth=(Bandwidth(1 << 25, 40, 60, 40),), fork_join_us=1, compiler="g++",
    measured_at="",
)  # fmt: skip


@dataclass
class Builder:
    """Collects operations; `done` gives the Graph. Axis names are those of the caller."""

    name: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)

    def input(self, name: str, *shape: int, dtype: DType = F32) -> str:
        self.tensors[name] = Tensor(name, shape, dtype, Role.INPUT)
        return name

    def load(self, name: str, *where: Expr | str | int) -> Load:
        place = tuple(Axis(w) if isinstance(w, str) else index(w) if isinstance(w, int) else w for w in where)
        return Load(name, place, self.tensors[name].dtype)

    def map(self, name: str, axes: dict[str, int], body: Expr, role: Role = Role.TEMP) -> str:
        self._add(name, axes, dtype_of(body), role)
        self.ops.append(Map(name, _axes(axes), body, name))
        return name

    def reduce(self, name: str, axes: dict[str, int], over: dict[str, int], combine: Combine, body: Expr, *,
               finish: Expr | None = None) -> str:  # fmt: skip
        kind = DType.I64 if combine in (Combine.ARGMAX, Combine.ARGMIN) else dtype_of(body)
        self._add(name, axes, dtype_of(finish) if finish is not None else kind, Role.TEMP)
        self.ops.append(Reduce(name, _axes(axes), _axes(over), combine, body, kind, finish, name))
        return name

    def scan(self, name: str, axes: dict[str, int], axis: str, combine: Combine, body: Expr, *,
             reverse: bool = False, exclusive: bool = False) -> str:  # fmt: skip
        self._add(name, axes, dtype_of(body), Role.TEMP)
        self.ops.append(Scan(name, _axes(axes), axis, combine, body, dtype_of(body), reverse, exclusive, None, name))
        return name

    def _add(self, name: str, axes: dict[str, int], dtype: DType, role: Role) -> None:
        self.tensors[name] = Tensor(name, tuple(axes.values()), dtype, role)

    def done(self, *outputs: str) -> Graph:
        """The graph; `outputs` become OUTPUT tensors."""
        for name in outputs:
            if self.tensors[name].role is Role.TEMP:
                old = self.tensors[name]
                self.tensors[name] = Tensor(name, old.shape, old.dtype, Role.OUTPUT)
        inputs = tuple(n for n, t in self.tensors.items() if t.role is Role.INPUT)
        return Graph(self.name, self.tensors, tuple(self.ops), inputs, outputs)


def _axes(axes: dict[str, int]) -> tuple[AxisDef, ...]:
    return tuple(AxisDef(k, v) for k, v in axes.items())


def f32(value: float) -> Const:
    return Const(value, F32)


def add(a: Expr, b: Expr) -> Call:
    return call(Fn.ADD, a, b)


def sub(a: Expr, b: Expr) -> Call:
    return call(Fn.SUB, a, b)


def mul(a: Expr, b: Expr) -> Call:
    return call(Fn.MUL, a, b)


def select(condition: Expr, a: Expr, b: Expr) -> Call:
    return call(Fn.SELECT, condition, a, b)


def both(a: Expr, b: Expr) -> Call:
    return call(Fn.AND, a, b, dtype=DType.BOOL)


def inside(position: Expr, extent: int) -> Call:
    """0 <= position < extent."""
    return both(call(Fn.GE, position, index(0)), call(Fn.LT, position, index(extent)))


def gelu(rows: int, columns: int) -> Graph:
    b = Builder("gelu")
    x = b.load(b.input("x", rows, columns), "i", "j")
    erf = call(Fn.ERF, mul(x, f32(math.sqrt(0.5))))
    b.map("y", {"i": rows, "j": columns}, mul(mul(x, f32(0.5)), add(erf, f32(1.0))))
    return b.done("y")


def softmax(rows: int, columns: int) -> Graph:
    b = Builder("softmax")
    x = b.load(b.input("x", rows, columns), "i", "j")
    b.reduce("top", {"i": rows}, {"j": columns}, Combine.MAX, x)
    e = call(Fn.EXP, sub(x, b.load("top", "i")))
    b.map("e", {"i": rows, "j": columns}, e)
    b.reduce("total", {"i": rows}, {"j": columns}, Combine.SUM, b.load("e", "i", "j"))
    b.map("y", {"i": rows, "j": columns}, call(Fn.DIV, b.load("e", "i", "j"), b.load("total", "i")))
    return b.done("y")


def layernorm(rows: int, columns: int) -> Graph:
    b = Builder("layernorm")
    x = b.load(b.input("x", rows, columns), "i", "j")
    w, c = b.load(b.input("w", columns), "j"), b.load(b.input("b", columns), "j")
    mean = mul(Acc(F32), f32(1 / columns))
    b.reduce("mean", {"i": rows}, {"j": columns}, Combine.SUM, x, finish=mean)
    d = sub(x, b.load("mean", "i"))
    scale = call(Fn.RSQRT, add(mul(Acc(F32), f32(1 / columns)), f32(1e-5)))
    b.reduce("scale", {"i": rows}, {"j": columns}, Combine.SUM, mul(d, d), finish=scale)
    b.map("y", {"i": rows, "j": columns}, add(mul(mul(d, b.load("scale", "i")), w), c))
    return b.done("y")


def rmsnorm_middle(batch: int, channels: int, points: int) -> Graph:
    """Over the middle dimension."""
    b = Builder("rmsnorm_middle")
    x = b.load(b.input("x", batch, channels, points), "n", "c", "p")
    scale = call(Fn.RSQRT, add(mul(Acc(F32), f32(1 / channels)), f32(1e-5)))
    b.reduce("scale", {"n": batch, "p": points}, {"c": channels}, Combine.SUM, mul(x, x), finish=scale)
    b.map("y", {"n": batch, "c": channels, "p": points}, mul(x, b.load("scale", "n", "p")))
    return b.done("y")


def cumsum(rows: int, columns: int, reverse: bool = False, exclusive: bool = False, dtype: DType = F32) -> Graph:
    b = Builder("cumsum")
    x = b.load(b.input("x", rows, columns, dtype=dtype), "i", "j")
    b.scan("y", {"i": rows, "j": columns}, "j", Combine.SUM, x, reverse=reverse, exclusive=exclusive)
    return b.done("y")


def cumsum_rows(rows: int, columns: int, reverse: bool = False) -> Graph:
    """Along the first dimension."""
    b = Builder("cumsum_rows")
    x = b.load(b.input("x", rows, columns), "i", "j")
    b.scan("y", {"i": rows, "j": columns}, "i", Combine.SUM, x, reverse=reverse)
    return b.done("y")


def argmax(rows: int, columns: int, combine: Combine = Combine.ARGMAX, dtype: DType = F32) -> Graph:
    b = Builder("argmax")
    x = b.load(b.input("x", rows, columns, dtype=dtype), "i", "j")
    b.reduce("y", {"i": rows}, {"j": columns}, combine, x)
    return b.done("y")


def argmax_rows(rows: int, columns: int) -> Graph:
    """Over the first dimension."""
    b = Builder("argmax_rows")
    b.reduce("y", {"j": columns}, {"i": rows}, Combine.ARGMAX, b.load(b.input("x", rows, columns), "i", "j"))
    return b.done("y")


def maxpool(planes: int, size: int, kernel: int = 3, stride: int = 2, padding: int = 1) -> Graph:
    b = Builder("maxpool")
    out = (size + 2 * padding - kernel) // stride + 1
    b.input("x", planes, size, size)
    h = add(mul(Axis("h"), index(stride)), sub(Axis("p"), index(padding)))
    w = add(mul(Axis("w"), index(stride)), sub(Axis("q"), index(padding)))
    value = b.load("x", "c", h, w)
    body = select(both(inside(h, size), inside(w, size)), value, f32(-math.inf)) if padding else value
    b.reduce("y", {"c": planes, "h": out, "w": out}, {"p": kernel, "q": kernel}, Combine.MAX, body)
    return b.done("y")


def depthwise(planes: int, size: int, kernel: int = 3) -> Graph:
    """A padded depthwise convolution of stride 1."""
    b = Builder("depthwise")
    b.input("x", planes, size, size)
    weight = b.load(b.input("k", planes, kernel, kernel), "c", "p", "q")
    h, w = (add(Axis(o), sub(Axis(k), index(kernel // 2))) for o, k in (("h", "p"), ("w", "q")))
    body = select(both(inside(h, size), inside(w, size)), mul(b.load("x", "c", h, w), weight), f32(0.0))
    b.reduce("y", {"c": planes, "h": size, "w": size}, {"p": kernel, "q": kernel}, Combine.SUM, body)
    return b.done("y")


def gather(rows: int, columns: int, picks: int) -> Graph:
    """Rows of a table, and one element of each row (cross-entropy's access)."""
    b = Builder("gather")
    b.input("x", rows, columns)
    where = b.load(b.input("pick", picks, dtype=DType.I64), "i")
    b.map("y", {"i": picks, "j": columns}, mul(b.load("x", where, "j"), f32(2.0)))
    b.map("z", {"i": picks}, b.load("x", where, call(Fn.MOD, Axis("i"), index(columns))))
    return b.done("y", "z")


def causal(rows: int, columns: int) -> Graph:
    """A causal mask, and a shift by one with a guard on the vector axis."""
    b = Builder("causal")
    x = b.load(b.input("x", rows, columns), "i", "j")
    b.map("y", {"i": rows, "j": columns}, select(call(Fn.LE, Axis("j"), Axis("i")), x, f32(-math.inf)))
    before = sub(Axis("j"), index(1))
    b.map("z", {"i": rows, "j": columns}, select(call(Fn.GE, before, index(0)), b.load("x", "i", before), x))
    return b.done("y", "z")


def transpose(rows: int, columns: int) -> Graph:
    b = Builder("transpose")
    b.input("x", columns, rows)
    b.map("y", {"i": rows, "j": columns}, add(b.load("x", "j", "i"), f32(1.0)))
    return b.done("y")


def total(rows: int, columns: int) -> Graph:
    """Sum, minimum, product, any and all of everything, to 0-d tensors and along rows."""
    b = Builder("total")
    x = b.load(b.input("x", rows, columns), "i", "j")
    flag = b.load(b.input("m", rows, columns, dtype=DType.BOOL), "i", "j")
    b.reduce("sum", {}, {"i": rows, "j": columns}, Combine.SUM, x)
    b.reduce("least", {"i": rows}, {"j": columns}, Combine.MIN, x)
    b.reduce("prod", {"i": rows}, {"j": columns}, Combine.PROD, x)
    b.reduce("any", {"i": rows}, {"j": columns}, Combine.ANY, flag)
    b.reduce("all", {"j": columns}, {"i": rows}, Combine.ALL, flag)
    return b.done("sum", "least", "prod", "any", "all")


def integers(rows: int, columns: int) -> Graph:
    """Integer arithmetic, casts and comparisons in mixed types."""
    b = Builder("integers")
    x = b.load(b.input("x", rows, columns, dtype=DType.I32), "i", "j")
    n = b.load(b.input("n", rows, columns, dtype=DType.I64), "i", "j")
    u = b.load(b.input("u", rows, columns, dtype=DType.U8), "i", "j")
    axes = {"i": rows, "j": columns}
    b.map("q", axes, call(Fn.FLOORDIV, x, Const(7, DType.I32)))
    b.map("r", axes, call(Fn.MOD, n, Const(-5, DType.I64)))
    b.map("s", axes, add(u, Const(200, DType.U8)))
    b.map("t", axes, call(Fn.GT, call(Fn.CAST, x, dtype=DType.I64), n))
    wide = call(Fn.CAST, n, dtype=F32)
    b.map("f", axes, add(wide, call(Fn.CAST, call(Fn.LT, u, Const(100, DType.U8)), dtype=F32)))
    return b.done("q", "r", "s", "t", "f")


def halves(rows: int, columns: int) -> Graph:
    """16-bit floats."""
    b = Builder("halves")
    x = b.load(b.input("x", rows, columns, dtype=DType.F16), "i", "j")
    z = b.load(b.input("z", rows, columns, dtype=DType.BF16), "i", "j")
    axes = {"i": rows, "j": columns}
    b.map("y", axes, mul(x, Const(1.5, DType.F16)))
    b.map("v", axes, call(Fn.CAST, add(call(Fn.CAST, z, dtype=F32), call(Fn.CAST, x, dtype=F32)), dtype=DType.BF16))
    return b.done("y", "v")


def unary(rows: int, columns: int, dtype: DType = F32) -> Graph:
    """Functions of one or two floats that have no polynomial."""
    b = Builder("unary")
    x = b.load(b.input("x", rows, columns, dtype=dtype), "i", "j")
    z = b.load(b.input("z", rows, columns, dtype=dtype), "i", "j")
    axes = {"i": rows, "j": columns}
    for fn in (Fn.FLOOR, Fn.CEIL, Fn.TRUNC, Fn.ROUND, Fn.ABS, Fn.SIGN, Fn.NEG):
        b.map(f"o_{fn.value}", axes, call(fn, x))
    for fn in (Fn.MIN, Fn.MAX, Fn.MOD, Fn.FMOD, Fn.FLOORDIV, Fn.ATAN2):
        b.map(f"o_{fn.value}", axes, call(fn, x, z))
    b.map("o_pow", axes, call(Fn.POW, call(Fn.ABS, x), z))
    b.map("o_bits", axes, select(call(Fn.NOT, call(Fn.ISNAN, x)), x, z))
    return b.done(*(n for n in b.tensors if n.startswith("o_")))


def dot_rows(rows: int, columns: int) -> Graph:
    """A weighted sum over a broadcast vector with a row factor."""
    b = Builder("dot_rows")
    x = b.load(b.input("x", rows, columns), "i", "j")
    w = b.load(b.input("w", columns), "j")
    b.reduce("y", {"i": rows}, {"j": columns}, Combine.SUM, mul(x, w))
    return b.done("y")


def used_axes(expr: Expr) -> set[str]:
    """The tensors that an expression reads (for assertions in tests)."""
    return {load.tensor for load in loads_in(expr)}
