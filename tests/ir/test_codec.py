"""The codec: what is ours comes back equal; anything else is refused."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import msgspec
import pytest

from kernelwright.capture.captured import Captured
from kernelwright.ir.codec import dumps, loads
from kernelwright.ir.expr import Axis, Call, Const, DType, Fn, Load, call
from kernelwright.ir.graph import AxisDef, Graph, Library, LibraryCall, Map, Role, Tensor, TensorRef
from kernelwright.ir.schedule import Schedule
from kernelwright.records import Case, CaseRole, Fill


def graph() -> Graph:
    x = Load("x", (Axis("i0"),), DType.F32)
    body = call(Fn.SELECT, call(Fn.GT, x, Const(-math.inf, DType.F32)), x, Const(1.0, DType.F32))
    tensors = {
        "x": Tensor("x", (3,), DType.F32, Role.INPUT),
        "c": Tensor("c", (2,), DType.I64, Role.CONSTANT, "k"),
        "y": Tensor("y", (3,), DType.F32, Role.OUTPUT),
        "z": Tensor("z", (3,), DType.F32, Role.OUTPUT),
    }
    ops = (
        Map("y", (AxisDef("i0", 3),), body, "aten.where"),
        Library(("z", None), LibraryCall("aten.sort", (TensorRef("y"), -1, True, None, (1, 2.5))), reason="no lowering"),
    )
    return Graph("g", tensors, ops, ("x",), ("y", "z"), "tuple", {"k": b"\x00\xff" * 8})


def test_round_trip() -> None:
    value = (Captured(graph(), (0, 2), ((1, 0.5), (3, True))), Schedule.of({"tile.t.i0": 8}), [None, 1, 1.0, True])
    back = loads(dumps(value))
    assert back == value
    assert [type(v) for v in back[2]] == [type(None), int, float, bool]
    assert dumps(back) == dumps(value)
    case = Case("a", CaseRole.CHECK, Fill.NORMAL, 7)
    assert loads(dumps(case)) == case


def test_shared_nodes_are_written_once() -> None:
    expr: Call | Load = Load("x", (Axis("i0"),), DType.F32)
    for _ in range(40):
        expr = Call(Fn.ADD, (expr, expr), DType.F32)
    data = dumps(expr)
    assert len(data) < 4000
    back = loads(data)
    assert back.args[0] is back.args[1]


@pytest.mark.parametrize("value", [object(), {1, 2}, print, 1j, pytest.raises, subprocess.Popen, Axis])
def test_foreign_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="sent"):
        dumps(value)


@pytest.mark.parametrize(
    "path", ["os:system", "subprocess:Popen", "kernelwright.ir.codec:_Writer", "kernelwright.ir.expr:walk",
             "kernelwright.ir.expr:dataclass", "kernelwright.records:to_json", "kernelwright.ir.nothing:X",
             "kernelwright.ir.expr:", "kernelwright.recordsx:Y"],
)  # fmt: skip
def test_foreign_classes_in_a_message_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match="may be sent"):
        loads(msgspec.msgpack.encode([[path], [[0, "x"]], [3, 0]]))


@pytest.mark.parametrize(
    "message", [b"", b"\x00", pickle.dumps(1), msgspec.msgpack.encode([[], [], [3, 0]]), msgspec.msgpack.encode([[], [], [9]]),
                msgspec.msgpack.encode([["kernelwright.ir.expr:Axis"], [[0]], [3, 0]]),
                msgspec.msgpack.encode([["kernelwright.ir.expr:DType"], [], [4, 0, "f31"]])],
)  # fmt: skip
def test_malformed_messages_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (each has its own words)
        loads(message)


def test_reading_a_captured_reference_imports_no_torch() -> None:
    data = dumps(Captured(graph(), (0,)))
    code = f"import sys; from kernelwright.ir.codec import loads; loads({data!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
