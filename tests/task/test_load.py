"""What the file's text alone tells: specs, inputs, entries, and one clear line for each mistake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.errors import UserError
from kernelwright.records import Precision, TensorSpec
from kernelwright.task.load import Spec, load_task, parse_input, parse_inputs, parse_spec

GOOD = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y

class Other(torch.nn.Module):
    pass

def scale(x, factor=2.0):
    return x * factor

def get_inputs():
    return [torch.ones(2), torch.ones(2)]
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(tmp_path, GOOD)


def write(folder: Path, text: str | bytes, name: str = "reference.py") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def complaint(spec: object, inputs: tuple[str, ...] = ()) -> str:
    with pytest.raises(UserError) as caught:
        load_task(str(spec), inputs)
    assert "\n" not in caught.value.message
    return str(caught.value)


def test_spec_is_a_file_with_or_without_an_entry(tmp_path: Path) -> None:
    assert parse_spec("a/b.py") == Spec(Path("a/b.py"))
    assert parse_spec("a/b.py:Block") == Spec(Path("a/b.py"), "Block")
    odd = write(tmp_path, GOOD, "with:colon.py")
    assert parse_spec(str(odd)) == Spec(odd)
    assert parse_spec(f"{odd}:Model") == Spec(odd, "Model")


@pytest.mark.parametrize("text", [":Model", "a.py:", "a.py:no name", "a.py:3"])
def test_spec_that_names_nothing(text: str) -> None:
    with pytest.raises(UserError, match=r"file\.py:Class"):
        parse_spec(text)


@pytest.mark.parametrize(
    ("text", "shape", "dtype"),
    [
        ("8x1024xf32", (8, 1024), "f32"),
        ("8x0xbf16", (8, 0), "bf16"),
        ("f32", (), "f32"),
        ("xf32", (), "f32"),
        ("5xint64", (5,), "i64"),
        ("5xBOOL", (5,), "bool"),
        (" 2x3xfloat ", (2, 3), "f32"),
    ],
)
def test_input(text: str, shape: tuple[int, ...], dtype: str) -> None:
    assert parse_input(text) == TensorSpec("input0", shape, dtype)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("8x1024", "has no dtype"),
        ("", "has no dtype"),
        ("8x1024xf23", "did you mean 'f32'"),
        ("8xx4xf32", "is not sizes and a dtype"),
        ("-8xf32", "is not sizes and a dtype"),
        ("8x4.5xf32", "is not sizes and a dtype"),
        ("²xf32", "is not sizes and a dtype"),
        ("8 1024 f32", "unknown dtype"),
    ],
)
def test_input_that_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_input(text)


def test_inputs_are_options_or_a_list_with_commas() -> None:
    assert parse_inputs(["2xf32", "3xi64"]) == parse_inputs(["2xf32,3xi64"])
    assert parse_inputs([]) is None


def test_model_is_the_default(good: Path) -> None:
    task = load_task(str(good))
    assert (task.entry, task.name, task.is_function, task.inputs) == ("Model", "reference", False, None)
    assert task == load_task(f"{good}:Model")
    assert task.cases


def test_function_with_inputs_takes_the_names_of_its_parameters(good: Path) -> None:
    task = load_task(f"{good}:scale", ("4x4xf32", "f32"))
    assert task.is_function
    assert task.name == "reference.scale"
    assert task.inputs == (TensorSpec("x", (4, 4), "f32"), TensorSpec("factor", (), "f32"))


def test_digest_follows_all_that_matters(good: Path, tmp_path: Path) -> None:
    tasks = [
        load_task(str(good)),
        load_task(f"{good}:Other"),
        load_task(str(good), ("2xf32", "2xf32")),
        load_task(str(good), training=True),
        load_task(str(good), precision=Precision.BF16),
        load_task(str(write(tmp_path, GOOD + "\n", "changed.py"))),
    ]
    assert len({task.digest for task in tasks}) == len(tasks)
    same = load_task(str(write(tmp_path, GOOD, "copy.py")))
    assert same.digest == tasks[0].digest


@pytest.mark.parametrize("binding", ["from elsewhere import Model", "from elsewhere import *", "Model = make()"])
def test_model_may_come_from_elsewhere(tmp_path: Path, binding: str) -> None:
    assert load_task(str(write(tmp_path, f"{binding}\ndef get_inputs(): return []\n"))).entry == "Model"


def test_model_may_be_defined_under_a_condition(tmp_path: Path) -> None:
    text = "try:\n  if True:\n    class Model(Base): pass\nexcept ImportError: pass\ndef get_inputs(): ..."
    assert load_task(str(write(tmp_path, text))).entry == "Model"


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    assert load_task(str(write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()))).entry == "Model"


def test_no_such_file(good: Path) -> None:
    assert "did you mean" in complaint(good.with_name("referense.py"))
    assert "no such file" in complaint(good.with_name("quite_different.py"))
    assert "does not exist either" in complaint(good.parent / "nowhere" / "a.py")


def test_a_folder(good: Path) -> None:
    assert f"is a folder, not a Python file\n  name a file in it, such as {good}" in complaint(good.parent)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x = 1\ndef f(:\n", "line 2: "),
        (b"\x7fELF\x00\x00", "holds binary data"),
        (b"x = 1\ny = '\xff'\n", "is not UTF-8 text (line 2)"),
        (b"(" * 20_000, "reference.py"),
        (b"import torch\n", "define `class Model(torch.nn.Module)`"),
        (b"", "has no class Model"),
        (b"class A(B): ...\nclass C(A): ...\ndef get_inputs(): ...", "it has the class A, C; name one: "),
        (
            b"class Model:\n  def forward(self, x): ...\ndef get_inputs(): ...",
            "line 1: the class Model is not a torch.nn.Module",
        ),
        (b"class Model(Module): ...", "has no get_inputs, and no --input was given"),
        (b"class Model(Module): ...\ndef get_inputs(batch, *, size): ...", "get_inputs takes arguments (batch, size)"),
    ],
)
def test_file_that_is_no_reference(tmp_path: Path, content: bytes, says: str) -> None:
    assert says in complaint(write(tmp_path, content))


def test_a_file_that_is_not_python_at_all(tmp_path: Path) -> None:
    assert "does not end in .py" in complaint(write(tmp_path, "# A title\n\nSome prose.\n", "README.md"))


def test_an_entry_that_is_not_there(good: Path) -> None:
    assert f"did you mean {good}:Other?" in complaint(f"{good}:Otter")
    assert "it has the class Model, Other and the function scale" in complaint(f"{good}:Zzz")


def test_a_function_needs_inputs(tmp_path: Path) -> None:
    path = write(tmp_path, "def f(x): return x")
    assert "give --input 8x1024xf32" in complaint(f"{path}:f")
    assert load_task(f"{path}:f", ("3xf32",)).inputs == (TensorSpec("x", (3,), "f32"),)


def test_an_unreadable_file(tmp_path: Path) -> None:
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    assert "cannot read" in complaint(loop)


def test_loading_a_task_needs_no_torch() -> None:
    statement = "import sys, kernelwright.task.load; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", statement], check=False).returncode == 0
