"""From what the user typed to a Task: the file is read and checked as text, without importing it and without torch.

What it does: parses `file.py`, `file.py:Class` or `file.py:function` and inputs such as `8x1024xf32`, finds the entry and
get_inputs in the file's syntax tree, and says in one line what is wrong where something is missing.
What it does not do: run any of the user's code (see `task.reference`, inside a worker). Called by optimize, verify and the
suites.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelwright.errors import UserError
from kernelwright.ir.expr import DType
from kernelwright.records import Case, Precision, Task, TensorSpec, to_json
from kernelwright.task.cases import quick_cases

DEFAULT_ENTRY = "Model"
LARGEST_FILE = 16 << 20

_ALIASES = {
    "float64": "f64", "double": "f64", "float32": "f32", "float": "f32", "float16": "f16", "half": "f16", "bfloat16": "bf16",
    "int64": "i64", "long": "i64", "int32": "i32", "int": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
}  # fmt: skip
_DTYPES = {d.value: d for d in DType}
_ENTRY = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Spec:
    """What the user named: a file and, where he said so, a class or function in it."""

    path: Path
    entry: str | None = None


@dataclass
class _Names:
    """What the file's top level binds. `foreign`: imported or assigned, so that the text does not say what it is."""

    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    star: bool = False

    def has(self, name: str) -> bool:
        return name in self.classes or name in self.functions or name in self.foreign


def parse_spec(text: str) -> Spec:
    """`file.py`, `file.py:Class` or `file.py:function`. A file whose own name has a colon in it is found as well."""
    path, colon, entry = text.rpartition(":")
    if not colon or Path(text).exists() or "/" in entry or "\\" in entry:
        return Spec(Path(text))
    if not path:
        raise UserError(f"no file is named in {text!r}", "write file.py or file.py:Class")
    if not _ENTRY.fullmatch(entry):
        raise UserError(
            f"{entry!r} in {text!r} is not the name of a class or function", "write file.py:Class or file.py:function"
        )
    return Spec(Path(path), entry)


def parse_input(text: str, position: int = 0) -> TensorSpec:
    """One `--input`: sizes and a dtype joined by x, as `8x1024xf32`; `f32` alone is a 0-d tensor; a size may be 0."""
    words = text.strip().lower().split("x")
    dtype = _ALIASES.get(words[-1], words[-1])
    sizes = [word for word in words[:-1] if word]
    if dtype not in _DTYPES:
        hint = f"write it as 8x1024xf32; the dtypes are {', '.join(_DTYPES)}"
        near = difflib.get_close_matches(dtype, [*_DTYPES, *_ALIASES], n=1)
        what = "has no dtype" if dtype.isdecimal() or not dtype else f"has an unknown dtype {words[-1]!r}"
        raise UserError(f"the input {text!r} {what}", f"did you mean {near[0]!r}? {hint}" if near else hint)
    if "" in words[1:-1] or not all(size.isascii() and size.isdecimal() for size in sizes):
        raise UserError(f"the input {text!r} is not sizes and a dtype", "write it as 8x1024xf32, each size 0 or more")
    return TensorSpec(f"input{position}", tuple(map(int, sizes)), dtype)


def parse_inputs(texts: Sequence[str]) -> tuple[TensorSpec, ...] | None:
    """All `--input` options in order, each one tensor or several with commas between; None where there is none."""
    words = [word for text in texts for word in text.split(",")]
    return tuple(parse_input(word, position) for position, word in enumerate(words)) or None


def load_task(
    spec: Spec | str,
    inputs: Sequence[str | TensorSpec] = (),
    training: bool = False,
    precision: Precision = Precision.STRICT,
    cases: tuple[Case, ...] | None = None,
) -> Task:
    """The task that `spec` names, judged on `cases` (default: the file's own inputs under two seeds).

    `inputs` take the place of the file's get_inputs. Raises UserError for whatever the file's text shows to be wrong.
    """
    spec = parse_spec(spec) if isinstance(spec, str) else spec
    content = read_reference(spec.path)
    names = _top_level(_parse(content, spec.path))
    entry = _entry(spec, names)
    function = names.functions.get(entry)
    given = _specs(inputs)
    _check_get_inputs(spec.path, names, function is not None, given is not None)
    if entry in names.classes:
        _check_class(spec.path, names.classes[entry])
    if given is not None:
        given = _named(given, function or _forward(names.classes.get(entry)))
    return Task(
        name=spec.path.stem if spec.entry in (None, DEFAULT_ENTRY) else f"{spec.path.stem}.{entry}",
        path=str(spec.path.absolute()),
        entry=entry,
        is_function=function is not None or (entry in names.foreign and entry[:1].islower()),
        inputs=given,
        training=training,
        precision=precision,
        cases=quick_cases() if cases is None else cases,
        digest=task_digest(content, entry, given, training, precision),
    )


def task_digest(content: bytes, entry: str, inputs: tuple[TensorSpec, ...] | None, training: bool, precision: Precision) -> str:
    """SHA-256 over the file's bytes, the entry, the inputs, mode and contract; 16 hex digits."""
    rest = to_json([entry, inputs, training, precision])
    return hashlib.sha256(hashlib.sha256(content).digest() + rest.encode()).hexdigest()[:16]


def read_reference(path: Path) -> bytes:
    """The file's bytes. Raises UserError where there is no such readable file."""
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.py"))[:4]
        raise UserError(
            f"{path} is a folder, not a Python file", f"name a file in it, such as {path / inside[0]}" if inside else None
        )
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise UserError(f"no such file: {path}", _similar_file(path)) from None
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror or problem}") from None
    if len(content) > LARGEST_FILE:
        raise UserError(f"{path} is larger than {LARGEST_FILE >> 20} MiB: it is not a reference")
    return content


def _similar_file(path: Path) -> str | None:
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist either"
    beside = [p.name for p in path.parent.iterdir() if p.suffix == ".py"]
    near = difflib.get_close_matches(path.name, [*beside], n=1) or [n for n in beside if n == f"{path.name}.py"]
    return f"did you mean {path.parent / near[0]}?" if near else None


def _parse(content: bytes, path: Path) -> ast.Module:
    if b"\x00" in content:
        raise UserError(f"{path} is not a Python file: it holds binary data")
    try:
        return ast.parse(content.decode("utf-8-sig"), filename=str(path))
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise UserError(f"{path} is not UTF-8 text (line {line})", "save it as UTF-8") from None
    except SyntaxError as problem:
        source = f": {problem.text.strip()}" if problem.text else ""
        kind = "" if path.suffix == ".py" else ", and it may not be Python at all: its name does not end in .py"
        raise UserError(f"{path}, line {problem.lineno}: {problem.msg}{source}", f"the file has a syntax error{kind}") from None
    except (RecursionError, MemoryError):
        raise UserError(f"{path} is nested too deeply to be read as Python") from None


def _top_level(module: ast.Module) -> _Names:
    names = _Names()
    for node in _statements(module.body):
        if isinstance(node, ast.ClassDef):
            names.classes[node.name] = node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.functions[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.star |= any(alias.name == "*" for alias in node.names)
            names.foreign |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.foreign |= {target.id for target in targets if isinstance(target, ast.Name)}
    names.foreign -= names.classes.keys() | names.functions.keys()
    return names


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The module's statements, with those inside if, try and with (a reference may define its Model under one)."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for block in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")):
                yield from _statements(block)
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body)


def _entry(spec: Spec, names: _Names) -> str:
    entry = spec.entry or DEFAULT_ENTRY
    if names.has(entry) or names.star:
        return entry
    classes = [name for name in names.classes if not name.startswith("_")]
    functions = [name for name in names.functions if not name.startswith(("_", "get_"))]
    there = " and ".join(
        f"{word} {', '.join(found)}" for word, found in (("the class", classes), ("the function", functions)) if found
    )
    if spec.entry is None:
        near = (classes or functions)[-1:]
        hint = f"it has {there}; name one: {spec.path}:{near[0]}" if near else "define `class Model(torch.nn.Module)` in it"
        raise UserError(f"{spec.path} has no class {DEFAULT_ENTRY}", hint)
    close: list[str] = difflib.get_close_matches(entry, [*names.classes, *names.functions], n=1, cutoff=0.5)
    advice = f"did you mean {spec.path}:{close[0]}?" if close else f"it has {there or 'none at all'}"
    raise UserError(f"{spec.path} has no class or function {entry}", advice)


def _check_class(path: Path, node: ast.ClassDef) -> None:
    if not node.bases:
        raise UserError(
            f"{path}, line {node.lineno}: the class {node.name} is not a torch.nn.Module",
            f"write class {node.name}(torch.nn.Module)",
        )


def _check_get_inputs(path: Path, names: _Names, is_function: bool, given: bool) -> None:
    makes = names.functions.get("get_inputs")
    if given:
        return
    if not names.has("get_inputs") and not names.star:
        what = "and the entry is a function" if is_function else "and no --input was given"
        hint = "add a function get_inputs() that returns a list of tensors, or give --input 8x1024xf32 for each tensor"
        raise UserError(f"{path} has no get_inputs, {what}", hint)
    if makes is not None and _required(makes):
        hint = "give them defaults, or give --input 8x1024xf32 for each tensor"
        wants = ", ".join(_required(makes))
        raise UserError(f"{path}, line {makes.lineno}: get_inputs takes arguments ({wants}), but it is called without", hint)


def _required(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    positional = [*node.args.posonlyargs, *node.args.args]
    required = positional[: len(positional) - len(node.args.defaults)]
    return [a.arg for a in required] + [
        a.arg for a, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None
    ]


def _specs(inputs: Sequence[str | TensorSpec]) -> tuple[TensorSpec, ...] | None:
    made = [parse_inputs([one]) if isinstance(one, str) else (one,) for one in inputs]
    return tuple(spec for group in made for spec in group or ()) or None


def _forward(node: ast.ClassDef | None) -> ast.FunctionDef | None:
    members = node.body if node is not None else []
    return next((m for m in members if isinstance(m, ast.FunctionDef) and m.name == "forward"), None)


def _named(specs: tuple[TensorSpec, ...], node: ast.FunctionDef | ast.AsyncFunctionDef | None) -> tuple[TensorSpec, ...]:
    """The specs under the names of the entry's parameters, as far as it has any."""
    parameters = [] if node is None else [a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg != "self"]
    names = parameters[: len(specs)] + [spec.name for spec in specs[len(parameters) :]]
    return tuple(TensorSpec(name, spec.shape, spec.dtype) for name, spec in zip(names, specs, strict=True))
