"""References that can't be judged: one clear line each, and unusual ones that must simply work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.errors import UserError
from kernelwright.ir.expr import DType
from kernelwright.lab.reference import HANDLERS, ReferenceProcess
from kernelwright.sandbox.isolation import Mounts, detect
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.zygote import Zygote
from kernelwright.task.cases import quick_cases, thorough_cases
from kernelwright.task.load import load_task

Start = Callable[..., ReferenceProcess]

BAD = {
    "raises": ("raise ValueError('no such luck')", "no such luck"),
    "random": ("return torch.nn.functional.dropout(x, 0.5)", "is random"),
    "nan": ("return torch.log(-1.0 - x.abs())", "gives NaN in output 0"),
    "in place": ("return x.add_(1)", "changes its input 0 in place"),
    "no tensor": ("return 3", "returns an int, not a tensor"),
    "nothing": ("pass", "returns None"),
    "memory": ("return x + torch.ones(1 << 28).sum()", "needs more memory"),
    "exits": ("import os; os._exit(3)", "exit code 3"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("references")


@pytest.fixture(scope="module")
def zygote(folder: Path) -> Iterator[Zygote]:
    """One sandbox for all references of this file, each of which lies in a folder of its own below `folder`."""
    with Zygote(detect(), Mounts(read_only=(folder,)), preload=("torch", HANDLERS), threads=1) as made:
        yield made


@pytest.fixture
def start(folder: Path, zygote: Zygote) -> Iterator[Start]:
    """A ReferenceProcess on a reference with this body, these inputs and these limits; its workers end with the test."""
    made: list[ReferenceProcess] = []

    def start(body: str, inputs: str = "torch.randn(6, 5)", memory: int = 400 << 20, seconds: float = 60.0) -> ReferenceProcess:
        own = folder / f"{len(list(folder.iterdir()))}"
        own.mkdir()
        file = own / "reference.py"
        file.write_text(
            f"import torch\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"        self.inner = torch.nn.Linear(4, 3)\n\n    def forward(self, x):\n        {body}\n\n"
            f"def get_inputs():\n    return [{inputs}]\n"
        )
        limits = Limits(memory_bytes=memory)
        zygote.limits = limits
        reference = ReferenceProcess(load_task(str(file)), zygote.isolation, 1, limits, seconds)
        reference._zygote = zygote
        made.append(reference)
        return reference

    yield start
    for reference in made:
        reference.dismiss()
        if reference._worker is not None:
            reference._worker.close()


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_reference_is_one_clear_line(start: Start, name: str) -> None:
    body, said = BAD[name]
    with pytest.raises(UserError) as caught:
        start(body).admit()
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert "Traceback" not in str(caught.value)


def test_a_reference_that_hangs_is_ended(start: Start) -> None:
    with pytest.raises(UserError, match="did not come to an end"):
        start("\n        while True: pass", seconds=2.0).admit()


@pytest.mark.parametrize(
    ("inputs", "body"),
    [
        ("torch.randn(0, 4)", "return x + 1"),
        ("torch.randn(())", "return x * 2"),
        ("torch.randn(5, 6).t()", "return x.sum(1)"),
        ("torch.randint(0, 9, (7,))", "return x + 1"),
        ("torch.randn(4, 4).to(torch.bfloat16)", "return x * x"),
        ("torch.randn(4, 4)", "return x.float() + torch.zeros(4, dtype=torch.float32)"),
        ("torch.randn(4, 4)", "return x.sum(), x.argmax(1), x > 0"),
        ("torch.randn(1, 4).expand(3, 4)", "return x.exp()"),
    ],
)
def test_unusual_references_are_judged(start: Start, inputs: str, body: str) -> None:
    reference = start(body, inputs)
    admitted = reference.admit()
    for case in (*quick_cases(), *thorough_cases(5)[-4:]):
        data = reference.truth(case)
        assert len(data.truths) == len(admitted.outputs)
        assert data.oracle_error == ""
        for truth in data.truths:
            assert (truth.exact is not None) == truth.dtype.is_float
            if truth.dtype is DType.F32 and truth.finite and truth.reference.size:
                assert truth.rms_framework <= 1e-5 * max(truth.rms_exact, 1e-3)


def test_where_float64_fails_the_reference_stands_and_it_is_said(start: Start) -> None:
    reference = start("assert x.dtype == torch.float32, 'only floats'; return x + 1")
    data = reference.truth(quick_cases()[0])
    assert "only floats" in data.oracle_error
    assert data.truths[0].exact is not None
    assert data.truths[0].rms_framework == 0.0


def test_the_graph_and_the_weights_come_from_the_same_process(start: Start) -> None:
    reference = start("return self.inner(x)", "torch.randn(2, 4)", memory=2 << 30)
    captured = reference.capture()
    assert set(captured.weights) == {"inner.weight", "inner.bias"}
    weight, bias = reference.weights(("inner.weight", "inner.bias"))
    data = reference.truth(quick_cases()[0])
    y = data.inputs[0] @ weight.array.T + bias.array
    assert abs(y - data.truths[0].reference).max() < 1e-5
    weight.close()
    bias.close()
