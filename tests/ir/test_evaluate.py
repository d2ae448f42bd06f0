"""The evaluator on small hand-made operations, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.ir.evaluate import (
    as_array,
    evaluate,
    evaluate_op,
    from_bytes,
    rounded_to_bf16,
)
from kernelwright.ir.expr import Acc, Axis, Call, Const, DType, Fn, Load, call, index
from kernelwright.ir.graph import (
    AxisDef,
    Combine,
    Contract,
    Graph,
    Library,
    LibraryCall,
    Map,
    Reduce,
    Role,
    Scan,
    Tensor,
    TensorRef,
)

F32 = DType.F32
I, J, K = Axis("i"), Axis("j"), Axis("k")


def tensors(**shapes: tuple[int, ...]) -> dict[str, Tensor]:
    return {n: Tensor(n, s, F32, Role.TEMP) for n, s in shapes.items()}


def axes(**extents: int) -> tuple[AxisDef, ...]:
    return tuple(AxisDef(n, e) for n, e in extents.items())


def x(*dims: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


def test_select_is_lazy() -> None:
    """A padded read: out of bounds only where the guard is false."""
    load = Load("x", (call(Fn.SUB, I, index(1)),), F32)
    body = call(Fn.SELECT, call(Fn.GE, I, index(1)), load, Const(0.0, F32))
    got = evaluate_op(Map("y", axes(i=4), body), tensors(x=(3,), y=(4,)), {"x": x(3)})
    assert np.array_equal(got, np.concatenate([[0], x(3)]))


def test_an_unguarded_load_out_of_bounds_is_an_error() -> None:
    body = Load("x", (call(Fn.SUB, I, index(1)),), F32)
    with pytest.raises(IndexError):
        evaluate_op(Map("y", axes(i=3), body), tensors(x=(3,), y=(3,)), {"x": x(3)})


def test_a_guarded_load_of_an_empty_tensor() -> None:
    body = call(Fn.SELECT, Const(False, DType.BOOL), Load("x", (I,), F32), Const(2.0, F32))
    got = evaluate_op(Map("y", axes(i=2), body), tensors(x=(0,), y=(2,)), {"x": x(0)})
    assert got.tolist() == [2, 2]


@pytest.mark.parametrize("combine", [Combine.SUM, Combine.PROD, Combine.MAX, Combine.MIN])
def test_reduce_with_finish(combine: Combine) -> None:
    op = Reduce("y", axes(i=3), axes(j=5), combine, Load("x", (I, J), F32), F32, call(Fn.MUL, Acc(F32), Const(2.0, F32)))
    want = {Combine.SUM: np.sum, Combine.PROD: np.prod, Combine.MAX: np.max, Combine.MIN: np.min}[combine](x(3, 5), axis=1) * 2
    np.testing.assert_allclose(evaluate_op(op, tensors(x=(3, 5), y=(3,)), {"x": x(3, 5)}), want, rtol=1e-6)


def test_argmax_takes_the_first_nan_and_knows_its_tile() -> None:
    data = np.array([[1, 5, 5], [1, np.nan, np.nan]], np.float32)
    op = Reduce("y", axes(i=2), axes(j=3), Combine.ARGMAX, Load("x", (I, J), F32), F32)
    meta = tensors(x=(2, 3)) | {"y": Tensor("y", (2,), DType.I64, Role.TEMP)}
    assert evaluate_op(op, meta, {"x": data}).tolist() == [1, 1]
    assert evaluate_op(op, meta, {"x": data}, ranges={"i": (1, 2), "j": (2, 3)}).tolist() == [2]


def test_reduction_over_nothing_gives_the_identity() -> None:
    meta = tensors(x=(2, 0), y=(2,))
    got = {
        c: evaluate_op(Reduce("y", axes(i=2), axes(j=0), c, Load("x", (I, J), F32), F32), meta, {"x": x(2, 0)}).tolist()
        for c in (Combine.SUM, Combine.PROD, Combine.MAX)
    }
    assert got == {Combine.SUM: [0, 0], Combine.PROD: [1, 1], Combine.MAX: [-np.inf, -np.inf]}


@pytest.mark.parametrize(("reverse", "exclusive"), [(False, False), (True, False), (False, True), (True, True)])
def test_scan(reverse: bool, exclusive: bool) -> None:
    op = Scan("y", axes(i=2, j=4), "j", Combine.SUM, Load("x", (I, J), F32), F32, reverse, exclusive)
    data = x(2, 4)
    want = np.cumsum(data[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(data, 1)
    want = want - data if exclusive else want
    np.testing.assert_allclose(evaluate_op(op, tensors(x=(2, 4), y=(2, 4)), {"x": data}), want, atol=1e-6)


def test_contract_with_batch_and_transposed_operand() -> None:
    B = Axis("b")
    op = Contract(
        "y", axes(b=2, i=3, j=4), axes(k=5), Load("p", (B, I, K), F32), Load("q", (B, J, K), F32), F32,
        call(Fn.ADD, Acc(F32), Load("c", (J,), F32)),
    )  # fmt: skip
    meta = tensors(p=(2, 3, 5), q=(2, 4, 5), c=(4,), y=(2, 3, 4))
    arrays = {"p": x(2, 3, 5), "q": x(2, 4, 5), "c": x(4)}
    want = np.einsum("bik,bjk->bij", arrays["p"], arrays["q"]) + arrays["c"]
    np.testing.assert_allclose(evaluate_op(op, meta, arrays), want, rtol=1e-5, atol=1e-6)
    tile = evaluate_op(op, meta, arrays, ranges={"b": (1, 2), "j": (2, 4)})
    np.testing.assert_allclose(tile, want[1:2, :, 2:4], rtol=1e-5, atol=1e-6)


def test_gather_reads_an_index_from_a_tensor() -> None:
    body = Load("x", (Load("k", (I,), DType.I64),), F32)
    meta = tensors(x=(5,), y=(3,)) | {"k": Tensor("k", (3,), DType.I64, Role.INPUT)}
    got = evaluate_op(Map("y", axes(i=3), body), meta, {"x": x(5), "k": np.array([4, 0, 4])})
    assert np.array_equal(got, x(5)[[4, 0, 4]])


def test_integer_division_rounds_down_and_casts_truncate() -> None:
    values = Load("x", (I,), DType.I64)
    meta = {"x": Tensor("x", (2,), DType.I64, Role.INPUT), "y": Tensor("y", (2,), DType.I64, Role.TEMP)}
    arrays = {"x": np.array([-7, 7])}
    assert evaluate_op(Map("y", axes(i=2), call(Fn.FLOORDIV, values, index(2))), meta, arrays).tolist() == [-4, 3]
    assert evaluate_op(Map("y", axes(i=2), call(Fn.MOD, values, index(4))), meta, arrays).tolist() == [1, 3]
    halves = call(Fn.DIV, call(Fn.CAST, values, dtype=F32), Const(2.0, F32))
    assert evaluate_op(Map("y", axes(i=2), call(Fn.CAST, halves, dtype=DType.I64)), meta, arrays).tolist() == [-3, 3]


def test_bf16_is_float32_rounded_to_even() -> None:
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, np.inf, np.nan, -0.0], np.float32)
    got = rounded_to_bf16(values)
    assert got[:2].tolist() == [1.0, 1 + 2**-6]
    assert np.isinf(got[2])
    assert np.isnan(got[3])
    assert np.signbit(got[4])
    assert from_bytes(b"\x80\x3f\x00\xc0", (2,), DType.BF16).tolist() == [1.0, -2.0]
    total = Call(Fn.ADD, (Const(1.0, DType.BF16), Const(2.0**-8, DType.BF16)), DType.BF16)
    meta = {"y": Tensor("y", (), DType.BF16, Role.TEMP)}
    assert float(evaluate_op(Map("y", (), total), meta, {})) == 1.0
    assert as_array(1.0, DType.BF16).dtype == np.float32


def test_graph_with_a_library_call_and_a_constant() -> None:
    meta = {
        "x": Tensor("x", (2,), F32, Role.INPUT),
        "c": Tensor("c", (2,), F32, Role.CONSTANT, "c0"),
        "t": Tensor("t", (2,), F32, Role.TEMP),
        "y": Tensor("y", (2,), F32, Role.OUTPUT),
    }
    ops = (
        Library((None, "t"), LibraryCall("aten.some", (TensorRef("x"),))),
        Map("y", axes(i=2), call(Fn.ADD, Load("t", (I,), F32), Load("c", (I,), F32))),
    )
    graph = Graph("g", meta, ops, ("x",), ("y", "y"), constants={"c0": np.array([1, 2], "<f4").tobytes()})
    got = evaluate(graph, {"x": np.array([3, 4])}, lambda c, a: (a["x"], a["x"] * 10))
    assert {k: v.tolist() for k, v in got.items()} == {"y": [31, 42]}
    with pytest.raises(ValueError, match=r"aten\.some"):
        evaluate(graph, {"x": np.array([3, 4])})
