"""The user's code brought to life: what it gives, and one clear line with the user's own line for whatever goes wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelwright.errors import UserError
from kernelwright.records import Task
from kernelwright.task.load import load_task
from kernelwright.task.reference import Reference, build_entry, call_reference, load_user_module, make_inputs

LINEAR = """
import torch

class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.linear(x))

def get_inputs():
    return [torch.randn(3, 4)]

def get_init_inputs():
    return [4]
"""


@pytest.fixture(autouse=True)
def _restored_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is made for a process of its own: put back what loading a user's file changes."""
    import sys

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


def task_of(folder: Path, text: str, *inputs: str, entry: str = "Model", training: bool = False) -> Task:
    path = folder / "reference.py"
    path.write_text(text)
    return load_task(f"{path}:{entry}", inputs, training=training)


def built(task: Task, seed: int = 1) -> Reference:
    user = load_user_module(task)
    call = build_entry(task, user)
    inputs, keywords = make_inputs(task, user, seed)
    return Reference(call, call if isinstance(call, torch.nn.Module) else None, inputs, keywords)


def outputs(task: Task, seed: int = 1) -> list[torch.Tensor]:
    return call_reference(task, built(task, seed))[0]


def module(forward: str = "return x", inputs: str = "return [torch.ones(3)]", init: str = "super().__init__()") -> str:
    return f"""
import torch

class Model(torch.nn.Module):
    def __init__(self):
        {init}

    def forward(self, x):
        {forward}

def get_inputs():
    {inputs}
"""


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(UserError) as caught:
        outputs(task_of(folder, text))
    assert "\n" not in caught.value.message
    return str(caught.value)


def test_same_seed_same_everything(tmp_path: Path) -> None:
    task = task_of(tmp_path, LINEAR)
    first, again, other = built(task, 1), built(task, 1), built(task, 2)
    assert torch.equal(first.inputs[0], again.inputs[0])
    assert not torch.equal(first.inputs[0], other.inputs[0])
    assert first.module is not None
    assert other.module is not None
    assert torch.equal(first.module.linear.weight, other.module.linear.weight)
    assert torch.equal(outputs(task)[0], outputs(task)[0])


def test_mode_is_the_tasks(tmp_path: Path) -> None:
    assert not built(task_of(tmp_path, LINEAR)).call.training  # type: ignore[attr-defined]
    assert built(task_of(tmp_path, LINEAR, training=True)).call.training  # type: ignore[attr-defined]


def test_nothing_is_written_beside_the_file_and_its_folder_is_importable(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("VALUE = 7.0")
    result = outputs(task_of(tmp_path, "from neighbour import VALUE\n" + module("return x * VALUE")))
    assert result[0].tolist() == [7.0] * 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["neighbour.py", "reference.py"]


def test_main_guard_is_not_run(tmp_path: Path) -> None:
    assert outputs(task_of(tmp_path, module() + "\nif __name__ == '__main__':\n    raise SystemExit('ran')\n"))


def test_function_and_inputs_of_the_command_line(tmp_path: Path) -> None:
    task = task_of(tmp_path, "def f(x, i, b):\n    return x[i], b", "5x2xf64", "3xi64", "4xbool", entry="f")
    (x, i, b), keywords = built(task).inputs, built(task).keywords
    assert not keywords
    assert [(t.shape, t.dtype) for t in (x, i, b)] == [((5, 2), torch.float64), ((3,), torch.int64), ((4,), torch.bool)]


@pytest.mark.parametrize(
    "inputs",
    [
        "return torch.ones(3)",
        "return (torch.ones(3),)",
        "return {'x': torch.ones(3)}",
        "return [torch.ones(0, 4)]",
        "return [torch.tensor(1.5)]",
        "return [torch.ones(4, 3).t()]",
        "return [torch.ones(1, 3).expand(5, 3)]",
        "return [torch.arange(4)]",
        "return [torch.ones(3, dtype=torch.bool)]",
        "return [torch.ones(3, dtype=torch.bfloat16)]",
        "return [torch.ones(3, requires_grad=True)]",
    ],
)
def test_inputs_that_simply_work(tmp_path: Path, inputs: str) -> None:
    assert outputs(task_of(tmp_path, module(inputs=inputs)))


@pytest.mark.parametrize("result", ["x, x + 1", "{'a': x, 'b': [x]}", "(x,)"])
def test_outputs_in_any_tree(tmp_path: Path, result: str) -> None:
    assert outputs(task_of(tmp_path, module(f"return {result}")))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import not_there_at_all\n" + module(), "line 1 (`import not_there_at_all`): running the file raised ModuleNotFound"),
        (module() + "\nimport sys; sys.exit(3)", "running the file raised SystemExit: 3"),
        (module(inputs="raise ValueError('two\\nlines')"), "calling get_inputs raised ValueError: two lines"),
        (module(inputs="return 5"), "returns an int, not a list of tensors"),
        (module(inputs="pass"), "returns None, not a list of tensors"),
        (module(inputs="return [torch.ones(3), 4]"), "get_inputs()[1] in "),
        (module(inputs="return [torch.ones(3)] * 2"), "get_inputs returns 2 tensors, but Model.forward(x) does not take that"),
        (module(inputs="return {'z': torch.ones(3)}"), "does not take that: missing a required argument: 'x'"),
        (module(inputs="return [torch.ones(3, dtype=torch.complex64)]"), "has the dtype torch.complex64"),
        (module(inputs="return [torch.eye(3).to_sparse()]"), "only dense tensors are supported"),
        (module(inputs="return [torch.ones(3, device='meta')]"), "is on the device meta"),
        (module(inputs="return [torch.ones(3).cuda()]"), "the reference runs on the CPU"),
        (module(init="raise RuntimeError('no luck')"), "building Model raised RuntimeError: no luck"),
        (LINEAR.replace("return [4]", "return 4"), "get_init_inputs in "),
        (LINEAR.replace("def get_init", "def no_init"), "add get_init_inputs() that returns the constructor's arguments"),
        (module(forward="return x @ torch.ones(4, 4)"), "(`return x @ torch.ones(4, 4)`): running Model raised RuntimeError"),
        (module(forward="pass"), "returns None, not a tensor"),
        (module(forward="return []"), "returns no tensor"),
        (module(forward="return x, 3"), "returns an int as output 1, not a tensor"),
        (module(forward="return torch.ones(1 << 50)"), "needs more memory than it may have"),
        ("Model = 3\ndef get_inputs(): ...", "is an int, not a class or a function"),
        ("class A: ...\nclass Model(A): ...\ndef get_inputs(): ...", "is not a torch.nn.Module"),
        ("from math import *\ndef get_inputs(): ...", "has no class or function Model"),
    ],
)
def test_one_clear_line(tmp_path: Path, text: str, says: str) -> None:
    assert says in complaint(tmp_path, text)


def test_an_async_function_is_no_reference(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is async"):
        built(task_of(tmp_path, "async def f(x): ...", "3xf32", entry="f"))


def test_a_file_that_changed_meanwhile(tmp_path: Path) -> None:
    task = task_of(tmp_path, module())
    (tmp_path / "reference.py").write_text(module("return x + 1"))
    with pytest.raises(UserError, match="was changed while the run went on"):
        built(task)
