"""Small hand-made graphs for the tests of fusion and planning, and a machine with tiny caches to tile them for."""

from __future__ import annotations

import numpy as np

from kernelwright.ir.evaluate import NUMPY
from kernelwright.ir.expr import Acc, Axis, Call, Const, DType, Expr, Fn, Load, call, index
from kernelwright.ir.graph import AxisDef, Combine, Contract, Graph, Map, Op, Reduce, Role, Scan, Tensor
from kernelwright.records import Machine

F = DType.F32


def machine(threads: int = 2, scale: int = 1) -> Machine:
    """A machine whose caches are `scale` times the usual (below 1 by integer division: pass 0 for tiny ones)."""
    l1, l2, l3 = (32768 * scale, 524288 * scale, 32 << 20) if scale else (512, 2048, 8192)
    return Machine("test", "avx2", 32, threads, l1, l2, l3, 100.0, 50.0, None, (), 1.0, "none", "never")


def axes(**extents: int) -> tuple[AxisDef, ...]:
    return tuple(AxisDef(n, e) for n, e in extents.items())


class Builder:
    """Collects tensors and operations of one graph."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.inputs: list[str] = []

    def tensor(self, name: str, shape: tuple[int, ...], role: Role, dtype: DType = F) -> str:
        self.tensors[name] = Tensor(name, shape, dtype, role, name if role is Role.WEIGHT else None)
        if role is Role.INPUT:
            self.inputs.append(name)
        return name

    def load(self, name: str, *where: str | Expr | int) -> Load:
        ix = tuple(Axis(w) if isinstance(w, str) else index(w) if isinstance(w, int) else w for w in where)
        return Load(name, ix, self.tensors[name].dtype)

    def emit(self, op: Op, dtype: DType = F, role: Role = Role.TEMP) -> str:
        assert isinstance(op, Map | Reduce | Scan | Contract)
        self.tensors[op.output] = Tensor(op.output, tuple(a.extent for a in op.axes), dtype, role)
        self.ops.append(op)
        return op.output

    def graph(self, *outputs: str) -> Graph:
        for name in outputs:
            t = self.tensors[name]
            if t.role is Role.TEMP:
                self.tensors[name] = Tensor(name, t.shape, t.dtype, Role.OUTPUT)
        return Graph(self.name, self.tensors, tuple(self.ops), tuple(self.inputs), outputs)


def f(value: float) -> Const:
    return Const(value, F)


def random_inputs(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    out = {}
    for name, t in graph.tensors.items():
        if t.role in (Role.INPUT, Role.WEIGHT):
            value = rng.standard_normal(t.shape) if t.dtype.is_float else rng.integers(0, 3, t.shape)
            out[name] = np.asarray(value, NUMPY[t.dtype])
    return out


def softmax(n: int = 5, k: int = 13) -> Graph:
    b = Builder("softmax")
    b.tensor("x", (n, k), Role.INPUT)
    b.emit(Reduce("m", axes(i=n), axes(j=k), Combine.MAX, b.load("x", "i", "j"), F))
    b.emit(Map("e", axes(i=n, j=k), call(Fn.EXP, call(Fn.SUB, b.load("x", "i", "j"), b.load("m", "i")))))
    b.emit(Reduce("s", axes(i=n), axes(r=k), Combine.SUM, b.load("e", "i", "r"), F))
    b.emit(Map("y", axes(a=n, b=k), call(Fn.DIV, b.load("e", "a", "b"), b.load("s", "a"))))
    return b.graph("y")


def layernorm(n: int = 3, t: int = 4, c: int = 10) -> Graph:
    b = Builder("layernorm")
    b.tensor("x", (n, t, c), Role.INPUT)
    b.tensor("w", (c,), Role.WEIGHT)
    b.emit(Reduce("s", axes(i=n, t=t), axes(r=c), Combine.SUM, b.load("x", "i", "t", "r"), F))
    b.emit(Map("mean", axes(i=n, t=t), call(Fn.MUL, b.load("s", "i", "t"), f(1 / c))))
    b.emit(Map("d", axes(i=n, t=t, r=c), call(Fn.SUB, b.load("x", "i", "t", "r"), b.load("mean", "i", "t"))))
    sq = call(Fn.MUL, b.load("d", "i", "t", "r"), b.load("d", "i", "t", "r"))
    b.emit(Reduce("v", axes(i=n, t=t), axes(r=c), Combine.SUM, sq, F))
    b.emit(Map("rstd", axes(i=n, t=t), call(Fn.RSQRT, call(Fn.ADD, call(Fn.MUL, b.load("v", "i", "t"), f(1 / c)), f(1e-5)))))
    body = call(Fn.MUL, call(Fn.MUL, b.load("d", "i", "t", "r"), b.load("rstd", "i", "t")), b.load("w", "r"))
    b.emit(Map("y", axes(i=n, t=t, r=c), body))
    return b.graph("y")


def rmsnorm_middle(n: int = 2, c: int = 6, h: int = 5, w: int = 7) -> Graph:
    b = Builder("rmsnorm")
    b.tensor("x", (n, c, h, w), Role.INPUT)
    x = b.load("x", "n", "c", "h", "w")
    b.emit(Map("sq", axes(n=n, c=c, h=h, w=w), call(Fn.MUL, x, x)))
    b.emit(Reduce("s", axes(n=n, one=1, h=h, w=w), axes(c=c), Combine.SUM, b.load("sq", "n", "c", "h", "w"), F,
                  call(Fn.RSQRT, call(Fn.ADD, call(Fn.MUL, Acc(F), f(1 / c)), f(1e-5)))))  # fmt: skip
    b.emit(Map("y", axes(n=n, c=c, h=h, w=w), call(Fn.MUL, x, b.load("s", "n", 0, "h", "w"))))
    return b.graph("y")


def elementwise(n: int = 3, c: int = 4, h: int = 5, w: int = 6) -> Graph:
    b = Builder("elementwise")
    b.tensor("x", (n, c, h, w), Role.INPUT)
    b.emit(Map("t", axes(n=n, c=c, h=h, w=w), call(Fn.TANH, b.load("x", "n", "c", "h", "w"))))
    t = b.load("t", "n", "c", "h", "w")
    b.emit(Map("y", axes(n=n, c=c, h=h, w=w), call(Fn.MUL, t, call(Fn.ADD, t, f(1.0)))))
    return b.graph("y")


def cumsum(n: int = 4, k: int = 11, reverse: bool = False) -> Graph:
    b = Builder("cumsum")
    b.tensor("x", (n, k), Role.INPUT)
    b.emit(Map("t", axes(i=n, j=k), call(Fn.MUL, b.load("x", "i", "j"), b.load("x", "i", "j"))))
    b.emit(Scan("y", axes(i=n, j=k), "j", Combine.SUM, b.load("t", "i", "j"), F, reverse))
    return b.graph("y")


def argmax(n: int = 4, k: int = 11, h: int = 3) -> Graph:
    b = Builder("argmax")
    b.tensor("x", (n, k, h), Role.INPUT)
    b.emit(Reduce("y", axes(i=n, h=h), axes(j=k), Combine.ARGMAX, b.load("x", "i", "j", "h"), F), DType.I64)
    return b.graph("y")


def cross_entropy(n: int = 7, k: int = 9) -> Graph:
    b = Builder("cross_entropy")
    b.tensor("x", (n, k), Role.INPUT)
    b.tensor("t", (n,), Role.INPUT, DType.I64)
    x = b.load("x", "i", "j")
    b.emit(Reduce("m", axes(i=n), axes(j=k), Combine.MAX, x, F))
    b.emit(Map("d", axes(i=n, j=k), call(Fn.SUB, x, b.load("m", "i"))))
    b.emit(Reduce("s", axes(i=n), axes(j=k), Combine.SUM, call(Fn.EXP, b.load("d", "i", "j")), F))
    b.emit(Map("lp", axes(i=n, j=k), call(Fn.SUB, b.load("d", "i", "j"), call(Fn.LOG, b.load("s", "i")))))
    picked = b.load("lp", "i", b.load("t", "i"))
    b.emit(Map("nll", axes(i=n), call(Fn.NEG, picked)))
    b.emit(Reduce("loss", (), axes(i=n), Combine.SUM, b.load("nll", "i"), F, call(Fn.MUL, Acc(F), f(1 / n))))
    return b.graph("loss")


def maxpool(n: int = 2, h: int = 7, w: int = 9) -> Graph:
    b = Builder("maxpool")
    b.tensor("x", (n, h, w), Role.INPUT)
    oh, ow = h // 2, w // 2

    def at(o: str, k: str) -> Expr:
        return call(Fn.SUB, call(Fn.ADD, call(Fn.MUL, Axis(o), index(2)), Axis(k)), index(1))

    inside: Expr = call(Fn.GE, at("y", "ky"), index(0))
    inner = (call(Fn.GE, at("x", "kx"), index(0)), call(Fn.LT, at("y", "ky"), index(h)), call(Fn.LT, at("x", "kx"), index(w)))
    for condition in inner:
        inside = call(Fn.AND, inside, condition, dtype=DType.BOOL)
    b.emit(Map("r", axes(n=n, h=h, w=w), call(Fn.EXP, b.load("x", "n", "h", "w"))))
    body = call(Fn.SELECT, inside, b.load("r", "n", at("y", "ky"), at("x", "kx")), f(float("-inf")))
    b.emit(Reduce("p", axes(n=n, y=oh, x=ow), axes(ky=3, kx=3), Combine.MAX, body, F))
    return b.graph("p")


def mlp(m: int = 9, k: int = 12, h: int = 18, n: int = 10) -> Graph:
    b = Builder("mlp")
    b.tensor("x", (m, k), Role.INPUT)
    b.tensor("w1", (h, k), Role.WEIGHT)
    b.tensor("b1", (h,), Role.WEIGHT)
    b.tensor("w2", (n, h), Role.WEIGHT)
    b.emit(Map("w1t", axes(k=k, h=h), b.load("w1", "h", "k")))
    b.emit(Contract("a", axes(i=m, h=h), axes(k=k), b.load("x", "i", "k"), b.load("w1t", "k", "h"), F))
    b.emit(Map("ab", axes(i=m, h=h), call(Fn.ADD, b.load("a", "i", "h"), b.load("b1", "h"))))
    ab = b.load("ab", "i", "h")
    b.emit(Map("g", axes(i=m, h=h), call(Fn.MUL, ab, call(Fn.SIGMOID, ab))))
    b.emit(Contract("y", axes(i=m, n=n), axes(h=h), b.load("g", "i", "h"), b.load("w2", "n", "h"), F))
    return b.graph("y")


def conv(n: int = 2, ic: int = 3, oc: int = 8, h: int = 4, w: int = 5) -> Graph:
    b = Builder("conv")
    b.tensor("x", (n, ic, h, w), Role.INPUT)
    b.tensor("wt", (oc, ic, 3, 3), Role.WEIGHT)
    b.tensor("var", (oc,), Role.WEIGHT)
    b.tensor("z", (n, oc, h, w), Role.INPUT)
    iy = call(Fn.SUB, call(Fn.ADD, Axis("y"), Axis("ky")), index(1))
    ix = call(Fn.SUB, call(Fn.ADD, Axis("x"), Axis("kx")), index(1))
    inside: Expr = call(Fn.GE, iy, index(0))
    for condition in (call(Fn.GE, ix, index(0)), call(Fn.LT, iy, index(h)), call(Fn.LT, ix, index(w))):
        inside = call(Fn.AND, inside, condition, dtype=DType.BOOL)
    lhs = call(Fn.SELECT, inside, b.load("x", "n", "c", iy, ix), f(0.0))
    b.emit(Contract("o", axes(n=n, f=oc, y=h, x=w), axes(c=ic, ky=3, kx=3), lhs, b.load("wt", "f", "c", "ky", "kx"), F))
    b.emit(Map("rs", axes(f=oc), call(Fn.RSQRT, call(Fn.ADD, call(Fn.ABS, b.load("var", "f")), f(1.0)))))
    b.emit(Map("bn", axes(n=n, f=oc, y=h, x=w), call(Fn.MUL, b.load("o", "n", "f", "y", "x"), b.load("rs", "f"))))
    out = call(Fn.ADD, b.load("bn", "n", "f", "y", "x"), b.load("z", "n", "f", "y", "x"))
    b.emit(Map("r", axes(n=n, f=oc, y=h, x=w), call(Fn.MAX, out, f(0.0))))
    return b.graph("r")


def attention(bs: int = 1, heads: int = 2, t: int = 9, d: int = 8, *, causal: bool = True) -> Graph:
    b = Builder("attention")
    for name in "qkv":
        b.tensor(name, (bs, heads, t, d), Role.INPUT)
    query, key = b.load("q", "b", "h", "i", "d"), b.load("k", "b", "h", "j", "d")
    b.emit(Contract("s", axes(b=bs, h=heads, i=t, j=t), axes(d=d), query, key, F))
    s: Expr = call(Fn.MUL, b.load("s", "b", "h", "i", "j"), f(0.3))
    if causal:
        s = call(Fn.SELECT, call(Fn.LE, Axis("j"), Axis("i")), s, f(float("-inf")))
    full = axes(b=bs, h=heads, i=t, j=t)
    rows = axes(b=bs, h=heads, i=t)
    b.emit(Map("sm", full, s))
    b.emit(Reduce("m", rows, axes(j=t), Combine.MAX, b.load("sm", "b", "h", "i", "j"), F))
    b.emit(Map("e", full, call(Fn.EXP, call(Fn.SUB, b.load("sm", "b", "h", "i", "j"), b.load("m", "b", "h", "i")))))
    b.emit(Reduce("z", rows, axes(j=t), Combine.SUM, b.load("e", "b", "h", "i", "j"), F))
    b.emit(Map("p", full, call(Fn.DIV, b.load("e", "b", "h", "i", "j"), b.load("z", "b", "h", "i"))))
    weights, values = b.load("p", "b", "h", "i", "j"), b.load("v", "b", "h", "j", "d")
    b.emit(Contract("o", axes(b=bs, h=heads, i=t, d=d), axes(j=t), weights, values, F))
    b.emit(Map("ot", axes(b=bs, i=t, h=heads, d=d), b.load("o", "b", "h", "i", "d")))
    c = Axis("c")
    split = (call(Fn.FLOORDIV, c, index(d)), call(Fn.MOD, c, index(d)))
    b.emit(Map("y", axes(b=bs, i=t, c=heads * d), b.load("ot", "b", "i", *split)))
    return b.graph("y")


def batchnorm_training(n: int = 4, c: int = 5, h: int = 3, w: int = 4) -> Graph:
    b = Builder("batchnorm")
    b.tensor("x", (n, c, h, w), Role.INPUT)
    x = b.load("x", "n", "c", "h", "w")
    over, count = axes(n=n, h=h, w=w), n * h * w
    b.emit(Reduce("mean", axes(c=c), over, Combine.SUM, x, F, call(Fn.MUL, Acc(F), f(1 / count))))
    d = call(Fn.SUB, x, b.load("mean", "c"))
    b.emit(Reduce("var", axes(c=c), over, Combine.SUM, call(Fn.MUL, d, d), F, call(Fn.MUL, Acc(F), f(1 / count))))
    rstd = call(Fn.RSQRT, call(Fn.ADD, b.load("var", "c"), f(1e-5)))
    b.emit(Map("y", axes(n=n, c=c, h=h, w=w), call(Fn.MUL, d, rstd)))
    return b.graph("y", "mean")


def global_mean(n: int = 40, k: int = 12) -> Graph:
    b = Builder("global_mean")
    b.tensor("x", (n, k), Role.INPUT)
    b.emit(Reduce("m", (), axes(i=n, j=k), Combine.SUM, b.load("x", "i", "j"), F, call(Fn.MUL, Acc(F), f(1 / (n * k)))))
    b.emit(Map("y", axes(i=n, j=k), call(Fn.SUB, b.load("x", "i", "j"), b.load("m"))))
    return b.graph("y")


def sums(n: int = 6, k: int = 9) -> Graph:
    """Two sibling reductions of one tensor, a scalar result, and a graph output that is an input."""
    b = Builder("sums")
    b.tensor("x", (n, k), Role.INPUT)
    x = b.load("x", "i", "j")
    b.emit(Reduce("s", axes(i=n), axes(j=k), Combine.SUM, x, F))
    b.emit(Reduce("q", axes(i=n), axes(j=k), Combine.SUM, call(Fn.MUL, x, x), F))
    b.emit(Map("y", axes(i=n), call(Fn.SUB, b.load("q", "i"), call(Fn.MUL, b.load("s", "i"), b.load("s", "i")))))
    return b.graph("y", "x")


def vector_matrix(k: int = 7, n: int = 5) -> Graph:
    b = Builder("vector_matrix")
    b.tensor("x", (1, k), Role.INPUT)
    b.tensor("w", (k, n), Role.WEIGHT)
    b.emit(Contract("y", axes(i=1, n=n), axes(k=k), b.load("x", "i", "k"), b.load("w", "k", "n"), F))
    return b.graph("y")


def empty() -> Graph:
    b = Builder("empty")
    b.tensor("x", (0, 4), Role.INPUT)
    b.emit(Map("y", axes(i=0, j=4), call(Fn.ADD, b.load("x", "i", "j"), f(1.0))))
    return b.graph("y")


def scalar() -> Graph:
    b = Builder("scalar")
    b.tensor("x", (), Role.INPUT)
    b.emit(Map("y", (), call(Fn.EXP, b.load("x"))))
    return b.graph("y")


def batched_matmul(bs: int = 3, m: int = 7, k: int = 9, n: int = 10) -> Graph:
    """The N side is the lhs: the output is transposed."""
    b = Builder("batched_matmul")
    b.tensor("x", (bs, m, k), Role.INPUT)
    b.tensor("y", (bs, k, n), Role.INPUT)
    b.emit(Contract("o", axes(b=bs, m=m, n=n), axes(k=k), b.load("x", "b", "m", "k"), b.load("y", "b", "k", "n"), F))
    b.emit(Map("t", axes(b=bs, n=n, m=m), call(Fn.MUL, b.load("o", "b", "m", "n"), f(2.0))))
    return b.graph("t")


def embedding(rows: int = 3, n: int = 6, c: int = 5) -> Graph:
    """A gather, summed, with the gathered rows as a second output."""
    b = Builder("embedding")
    b.tensor("i", (n,), Role.INPUT, DType.I64)
    b.tensor("w", (rows, c), Role.WEIGHT)
    b.emit(Map("e", axes(n=n, c=c), b.load("w", b.load("i", "n"), "c")))
    b.emit(Reduce("s", axes(c=c), axes(n=n), Combine.SUM, b.load("e", "n", "c"), F))
    return b.graph("s", "e")


def depthwise(n: int = 2, c: int = 3, h: int = 6, w: int = 9) -> Graph:
    b = Builder("depthwise")
    b.tensor("x", (n, c, h, w), Role.INPUT)
    b.tensor("k", (c, 3, 3), Role.WEIGHT)
    load = b.load("x", "n", "c", call(Fn.ADD, Axis("y"), Axis("i")), call(Fn.ADD, Axis("x"), Axis("j")))
    body = call(Fn.MUL, load, b.load("k", "c", "i", "j"))
    b.emit(Reduce("o", axes(n=n, c=c, y=h - 2, x=w - 2), axes(i=3, j=3), Combine.SUM, body, F))
    b.emit(Map("r", axes(n=n, c=c, y=h - 2, x=w - 2), call(Fn.MAX, b.load("o", "n", "c", "y", "x"), f(0.0))))
    return b.graph("r")


def pointwise_conv(n: int = 2, ic: int = 5, oc: int = 9, h: int = 3, w: int = 5) -> Graph:
    b = Builder("pointwise_conv")
    b.tensor("x", (n, ic, h, w), Role.INPUT)
    b.tensor("k", (oc, ic), Role.WEIGHT)
    b.emit(Contract("o", axes(n=n, f=oc, y=h, x=w), axes(c=ic), b.load("k", "f", "c"), b.load("x", "n", "c", "y", "x"), F))
    b.emit(Reduce("g", axes(n=n, f=oc), axes(y=h, x=w), Combine.SUM, b.load("o", "n", "f", "y", "x"), F,
                  call(Fn.MUL, Acc(F), f(1 / (h * w)))))  # fmt: skip
    return b.graph("g")


def transpose(n: int = 6, m: int = 8) -> Graph:
    b = Builder("transpose")
    b.tensor("x", (n, m), Role.INPUT)
    b.emit(Map("t", axes(m=m, n=n), call(Fn.EXP, b.load("x", "n", "m"))))
    b.emit(Map("y", axes(j=m * n), b.load("t", call(Fn.FLOORDIV, Axis("j"), index(n)), call(Fn.MOD, Axis("j"), index(n)))))
    return b.graph("y")


def one_row(k: int = 33) -> Graph:
    return softmax(1, k)


def self_product(n: int = 7) -> Graph:
    """A producer read at two unrelated indices by one reader."""
    b = Builder("self_product")
    b.tensor("x", (n, 4), Role.INPUT)
    b.emit(Reduce("s", axes(i=n), axes(j=4), Combine.MAX, b.load("x", "i", "j"), F))
    b.emit(Map("y", axes(i=n, j=n), call(Fn.MUL, b.load("s", "i"), b.load("s", "j"))))
    return b.graph("y")


def scan_rows(n: int = 5, k: int = 6) -> Graph:
    """A scan over the outer axis, exclusive, with an epilogue and a reader that reduces it."""
    b = Builder("scan_rows")
    b.tensor("x", (n, k), Role.INPUT)
    b.emit(Scan("s", axes(i=n, j=k), "i", Combine.SUM, b.load("x", "i", "j"), F, False, True))
    b.emit(Map("t", axes(i=n, j=k), call(Fn.TANH, b.load("s", "i", "j"))))
    b.emit(Reduce("m", axes(j=k), axes(i=n), Combine.MAX, b.load("t", "i", "j"), F))
    return b.graph("m", "t")


ALL = [
    softmax, layernorm, rmsnorm_middle, elementwise, cumsum, argmax, cross_entropy, maxpool, mlp, conv, attention,
    batchnorm_training, global_mean, sums, vector_matrix, empty, scalar, batched_matmul, embedding, depthwise, pointwise_conv,
    transpose, one_row, self_product, scan_rows,
]  # fmt: skip

__all__ = ["ALL", "Builder", "Call", "axes", "machine", "random_inputs"]
