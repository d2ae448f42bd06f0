"""The user's reference, brought to life: its module or function and the inputs of one seed. Runs only inside a worker.

What it does: executes the file under a private module name (nothing is written beside it), builds the entry with weights under
a fixed seed, makes the inputs, and turns whatever the user's code raises into a UserError that shows the user's own line.
What it does not do: judge the outputs (the Lab does) or limit time and memory (the sandbox does). Called by the Lab's reference
worker and by capture.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernelwright.errors import UserError
from kernelwright.ir.expr import DType
from kernelwright.records import Task, TensorSpec
from kernelwright.task.cases import seed_everything
from kernelwright.task.load import read_reference, task_digest

WEIGHT_SEED = 0

TORCH_DTYPES = {
    DType.F64: torch.float64, DType.F32: torch.float32, DType.F16: torch.float16, DType.BF16: torch.bfloat16,
    DType.I64: torch.int64, DType.I32: torch.int32, DType.I16: torch.int16, DType.I8: torch.int8, DType.U8: torch.uint8,
    DType.BOOL: torch.bool,
}  # fmt: skip
_INTEGER_INPUT_LIMIT = 8


@dataclass(frozen=True)
class Reference:
    """`call(*inputs, **keywords)` is the reference; `module` is None where the entry is a function."""

    call: Callable[..., Any]
    module: torch.nn.Module | None
    inputs: tuple[torch.Tensor, ...]
    keywords: dict[str, torch.Tensor]


def load_user_module(task: Task) -> ModuleType:
    """Execute the user's file as a module of its own name, with its folder importable."""
    path = Path(task.path)
    content = read_reference(path)
    if task_digest(content, task.entry, task.inputs, task.training, task.precision) != task.digest:
        raise UserError(f"{path} was changed while the run went on", "start the run again")
    module = ModuleType(f"_kernelwright_reference_{task.digest}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickle look their module up
    imports = path.parent / "reference_imports"  # where a result folder keeps the modules beside its reference
    if imports.is_dir() and str(imports) not in sys.path:
        sys.path.insert(0, str(imports))
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True  # no __pycache__ beside the user's files
    with _blaming(task, "running the file"):
        exec(compile(content, str(path), "exec"), module.__dict__)
    return module


def build_entry(task: Task, user: ModuleType, weight_seed: int = WEIGHT_SEED) -> Callable[..., Any]:
    """The task's function, or an instance of its class with deterministic weights, in the task's mode."""
    entry = getattr(user, task.entry, None)
    if entry is None:
        raise UserError(f"{task.path} has no class or function {task.entry}")
    if not isinstance(entry, type):
        if not callable(entry):
            raise UserError(f"{task.entry} in {task.path} is {_kind(entry)}, not a class or a function")
        return entry.train(task.training) if isinstance(entry, torch.nn.Module) else _checked_function(task, entry)
    if not issubclass(entry, torch.nn.Module):
        raise UserError(
            f"the class {task.entry} in {task.path} is not a torch.nn.Module", f"write class {task.entry}(torch.nn.Module)"
        )
    arguments, keywords = _init_inputs(task, user)
    seed_everything(weight_seed)
    needs = "" if hasattr(user, "get_init_inputs") else "add get_init_inputs() that returns the constructor's arguments"
    with _blaming(task, f"building {task.entry}", needs or None):
        module = entry(*arguments, **keywords)
    with _blaming(task, f"switching {task.entry} to {'train' if task.training else 'eval'} mode"):
        module = module.train(task.training)
    _check_devices(task, module)
    return module


def make_inputs(task: Task, user: ModuleType, seed: int) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
    """Positional and keyword inputs under `seed`: the user's get_inputs, or normal values in the shapes of `task.inputs`."""
    seed_everything(seed)
    if task.inputs is not None:
        return tuple(_made(spec, seed, position) for position, spec in enumerate(task.inputs)), {}
    get_inputs = getattr(user, "get_inputs", None)
    if not callable(get_inputs):
        raise UserError(
            f"{task.path} has no function get_inputs", "add one that returns a list of tensors, or give --input 8x1024xf32"
        )
    with _blaming(task, "calling get_inputs"):
        made = get_inputs()
    if isinstance(made, torch.Tensor):
        made = (made,)
    if isinstance(made, Mapping):
        return (), {str(name): _tensor(task, value, f"get_inputs()[{name!r}]") for name, value in made.items()}
    if not isinstance(made, list | tuple):
        raise UserError(f"get_inputs in {task.path} returns {_kind(made)}, not a list of tensors", "return [x, y, ...]")
    return tuple(_tensor(task, value, f"get_inputs()[{position}]") for position, value in enumerate(made)), {}


def call_reference(task: Task, reference: Reference) -> tuple[list[torch.Tensor], pytree.TreeSpec]:
    """Run the reference once: its outputs as a flat list of tensors, and the tree that they came in. Raises UserError."""
    _check_arity(task, reference)
    gradients = torch.enable_grad() if task.training else torch.no_grad()
    with gradients, _blaming(task, f"running {task.entry}"):
        outputs = reference.call(*reference.inputs, **reference.keywords)
    leaves, tree = pytree.tree_flatten(outputs)
    if not leaves:
        raise UserError(f"{task.entry} in {task.path} returns no tensor: it returns {_kind(outputs)}", "return the result")
    for position, leaf in enumerate(leaves):
        where = "" if len(leaves) == 1 else f" as output {position}"
        if not isinstance(leaf, torch.Tensor):
            raise UserError(f"{task.entry} in {task.path} returns {_kind(leaf)}{where}, not a tensor", "return tensors only")
        _check_tensor(task, leaf, f"{task.entry}'s output{where and f' {position}'}")
    return leaves, tree


def _init_inputs(task: Task, user: ModuleType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    get_init_inputs = getattr(user, "get_init_inputs", None)
    if get_init_inputs is None:
        return (), {}
    seed_everything(WEIGHT_SEED)
    with _blaming(task, "calling get_init_inputs"):
        made = get_init_inputs()
    if isinstance(made, Mapping):
        return (), dict(made)
    if not isinstance(made, list | tuple):
        raise UserError(
            f"get_init_inputs in {task.path} returns {_kind(made)}, not a list", "return the constructor's arguments as [a, b]"
        )
    return tuple(made), {}


def _made(spec: TensorSpec, seed: int, position: int) -> torch.Tensor:
    """An input in a shape of the command line: N(0,1), integers in [0, 8), or fair booleans."""
    dtype = TORCH_DTYPES[DType(spec.dtype)]
    generator = torch.Generator().manual_seed(seed * 1_000_003 + position)
    if dtype.is_floating_point:
        return torch.randn(spec.shape, generator=generator).to(dtype)
    high = 2 if dtype is torch.bool else _INTEGER_INPUT_LIMIT
    return torch.randint(0, high, spec.shape, generator=generator).to(dtype)


def _tensor(task: Task, value: Any, where: str) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        hint = "return tensors only; what is constant belongs into get_init_inputs"
        raise UserError(f"{where} in {task.path} is {_kind(value)}, not a tensor", hint)
    _check_tensor(task, value, where)
    return value.detach()


def _check_tensor(task: Task, value: torch.Tensor, where: str) -> None:
    if value.device.type != "cpu":
        raise UserError(f"{where} in {task.path} is on the device {value.device}", "make the reference's tensors on the CPU")
    if value.layout is not torch.strided:
        raise UserError(f"{where} in {task.path} is a {value.layout} tensor: only dense tensors are supported")
    if value.dtype not in TORCH_DTYPES.values():
        known = ", ".join(d.value for d in DType)
        raise UserError(f"{where} in {task.path} has the dtype {value.dtype}: the supported ones are {known}")


def _check_devices(task: Task, module: torch.nn.Module) -> None:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if tensor.device.type != "cpu":
            hint = "remove .cuda() and device= from the reference"
            raise UserError(f"{name} of {task.entry} in {task.path} is on the device {tensor.device}", hint)


def _checked_function(task: Task, function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):
        raise UserError(f"{task.entry} in {task.path} is async: a reference must be an ordinary function")
    return function


def _check_arity(task: Task, reference: Reference) -> None:
    target = reference.call if reference.module is None else reference.module.forward
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):  # built in: nothing to check against
        return
    try:
        signature.bind(*reference.inputs, **reference.keywords)
    except TypeError as problem:
        source = "--input gives" if task.inputs is not None else "get_inputs returns"
        given = len(reference.inputs) + len(reference.keywords)
        count = f"{given} tensor{'' if given == 1 else 's'}"
        what = task.entry if reference.module is None else f"{task.entry}.forward"
        raise UserError(
            f"{source} {count}, but {what}{signature} does not take that: {problem}", "make the two agree"
        ) from None


@contextmanager
def _blaming(task: Task, doing: str, hint: str | None = None) -> Iterator[None]:
    """Turn what the user's code raises into one line with the place in the user's file."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as problem:  # the user's code may raise anything at all, and sys.exit() is no answer
        if isinstance(problem, MemoryError) or "can't allocate memory" in str(problem):
            message = f"{task.path}{_place(problem, task.path)}: {doing} needs more memory than it may have"
            raise UserError(message, "make the inputs or the model smaller") from problem
        kind = type(problem).__name__
        text = " ".join(str(problem).split()) or "(no message)"
        needs_cuda = "cuda" in text.lower() or "nvidia" in text.lower()
        advice = "remove .cuda() and device='cuda': the reference runs on the CPU" if needs_cuda else hint
        raise UserError(f"{task.path}{_place(problem, task.path)}: {doing} raised {kind}: {text[:500]}", advice) from problem


def _place(problem: BaseException, path: str) -> str:
    """`, line 12 (`x = y`)` of the innermost frame in the user's file; empty where it was not reached."""
    frames = [f for f in traceback.extract_tb(problem.__traceback__) if f.filename == path]
    if not frames:
        return ""
    line = (frames[-1].line or linecache.getline(path, frames[-1].lineno or 0)).strip()
    return f", line {frames[-1].lineno} (`{line[:160]}`)"


def _kind(value: object) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
