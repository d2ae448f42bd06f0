"""The drop-in: answers calls like the captured one with the kernel, and hands every other call to the reference.

What it does: guards (number, type, shape, dtype, device, layout, gradients, modes, weights, hooks, training mode, constructor),
one warning for each kind of reason, compilation at the first call, weights watched and packed again when they change.
What it does not do: load kernels (the runner does) or know what the kernel computes.
Who calls it: the text of this file is embedded in each result's module.py, where Kernelwright is absent; so it imports torch,
the standard library and the runner only.
"""

from __future__ import annotations

import inspect
import os
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from kernelwright.runtime.runner import CompileFailed, NoCompiler, Runner, compile_source

_DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
    "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
}  # fmt: skip
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_ALIGNMENT = 16  # bytes, what the native entry asks of every pointer
_SAMPLES = 16  # elements of each weight looked at each call: `weight.data.copy_()` leaves no trace in the version counter


class Outside(Exception):  # noqa: N818 - not an error: the reference answers
    """A call that the kernel does not answer. `kind` is what one warning is given for; the text says why."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Result:
    """One result folder: its files, the compiled kernel, and which warnings were given. One for each loaded module.py."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest: dict[str, Any] = about["manifest"]
        self.about = about
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._library: Path | None = None
        self._failure: Outside | None = None

    def library(self) -> Path:
        """The compiled kernel. A failure is remembered: it is not tried again at every call."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._library is None:
                try:
                    self._library = self._compile()
                except Outside as failure:
                    self._failure = failure
                    raise
            return self._library

    def _compile(self) -> Path:
        source, flags = self.folder / "kernel.cpp", tuple(self.about["flags"])
        problem = ""
        for folder in (self.folder / "build", _cache_folder()):
            try:
                return compile_source(source, folder, flags)
            except NoCompiler as error:
                raise Outside("compiler", str(error)) from error
            except CompileFailed as error:
                raise Outside("compiler", f"the kernel was not compiled: {error}") from error
            except OSError as error:  # a folder that may not be written: the next one
                problem = f"{folder}: {error.strerror}"
        raise Outside("compiler", f"the kernel can be compiled nowhere ({problem})")

    def constants(self) -> dict[str, torch.Tensor]:
        """The tensors that were literals of the reference, by name."""
        places: dict[str, list[int]] = self.about["constants"]
        data = (self.folder / "constants.bin").read_bytes() if places else b""
        specs = {spec["name"]: spec for spec in self.manifest["constants"]}
        return {name: _tensor(data[at : at + size], specs[name]) for name, (at, size) in places.items()}

    def warn(self, reason: Outside) -> None:
        """Say once for each kind of reason that the reference answers."""
        with self._lock:
            known = reason.kind in self._warned
            self._warned.add(reason.kind)
        if not known:
            text = f"{self.about['entry']}: the reference runs in place of the kernel: {reason} (said once)"
            warnings.warn(text, RuntimeWarning, stacklevel=4)


class Kernel:
    """The kernel of one model (or of the function). Copies and pickles begin anew, by `remake`; threads take turns.

    `signature` is that of the reference's forward, bound, or of the function. `same` is False where the model was constructed
    with other arguments than the captured one. `hooks` is the number of its submodules' hooks then: later ones the kernel would
    not call.
    """

    def __init__(
        self, result: Result, signature: inspect.Signature, remake: Callable[..., Kernel], same: bool = True, hooks: int = 0
    ) -> None:
        self._result, self._signature, self._remake, self._same, self._hooks = result, signature, remake, same, hooks
        self._lock = threading.Lock()
        self._specs = [(s["name"], tuple(s["shape"]), _DTYPES[s["dtype"]]) for s in result.manifest["inputs"]]
        self._runner: Any = None
        self._weights: Weights | None = None
        self._order: list[int] | None = None

    def __reduce__(self) -> tuple[Callable[..., Kernel], tuple[bool, int]]:
        return self._remake, (self._same, self._hooks)

    def call(self, model: torch.nn.Module | None, fallback: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What the reference would return, by the kernel where the call is like the captured one."""
        if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
            return fallback(*args, **kwargs)
        try:
            _check_modes()
            inputs = self._inputs(args, kwargs)
            with self._lock:
                return self._run(model, inputs)
        except Outside as reason:
            self._result.warn(reason)
        return fallback(*args, **kwargs)

    def _run(self, model: torch.nn.Module | None, inputs: list[torch.Tensor]) -> Any:
        if self._weights is None or not self._weights.bound():
            if not self._same:
                raise Outside("constructor", "it was constructed with other arguments than the kernel was written for")
            self._weights = Weights(model, self._result.manifest, self._hooks)
            self._runner = None
        weights = self._weights
        weights.check(self._result.about["training"])
        if torch.is_grad_enabled() and (weights.require_grad() or any(x.requires_grad for x in inputs)):
            raise Outside("gradients", "gradients are enabled: call it under torch.inference_mode() or torch.no_grad()")
        if self._runner is None:
            self._runner = self._load()
        dense = weights.changed()
        if dense is not None:
            self._runner.set_weights(dense)
        return self._runner(inputs)

    def _load(self) -> Any:
        library = self._result.library()
        try:
            return Runner(library, self._result.manifest, self._result.constants())
        except OSError as error:
            raise Outside("compiler", f"the compiled kernel cannot be loaded: {error}") from error

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
        """The call's tensors in the kernel's order, dense. Raises Outside."""
        given = self._ordered(args, kwargs) if kwargs or self._result.about["keywords"] else args
        if len(given) != len(self._specs):
            raise Outside("arguments", f"it takes {len(self._specs)} tensors, {len(given)} arguments were given")
        return [_checked(x, *spec) for x, spec in zip(given, self._specs, strict=True)]

    def _ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Arguments given by name, in the order of the captured call."""
        try:
            found = _flat(self._signature.bind(*args, **kwargs))
        except TypeError as error:
            raise Outside("arguments", str(error)) from error
        if self._order is None:
            keywords: list[str] = self._result.about["keywords"]
            positional = len(self._specs) - len(keywords)
            numbers = {name: positional + i for i, name in enumerate(keywords)}
            self._order = _flat(self._signature.bind(*range(positional), **numbers))
        if len(found) != len(self._order):
            raise Outside("arguments", f"it takes {len(self._order)} tensors, {len(found)} arguments were given")
        return [value for _, value in sorted(zip(self._order, found, strict=True), key=lambda pair: pair[0])]


class Weights:
    """The tensors of one model that the kernel reads, and everything of the model that must stay as it is."""

    def __init__(self, model: torch.nn.Module | None, manifest: dict[str, Any], hooks: int) -> None:
        self._hooks = hooks
        self._packed = manifest["packed_bytes"] > 0  # else the kernel reads values where they lie: none can be stale
        self._modules = list(model.modules()) if model is not None else []
        self._links: list[tuple[dict[str, Any], str, Any]] = [
            (module._modules, name, child) for module in self._modules for name, child in module._modules.items()
        ]
        self._by_mode = [module for module in self._modules if reads_training(type(module))]
        self._specs = [(spec["key"], tuple(spec["shape"]), _DTYPES[spec["dtype"]]) for spec in manifest["weights"]]
        self._tensors = [self._find(model, key) for key, _, _ in self._specs]
        self._state: list[tuple[int, int | None]] = []
        self._looks: list[torch.Tensor] = []
        self._looked = torch.empty(0)

    def _find(self, model: Any, key: str) -> torch.Tensor:
        *path, name = key.split(".")
        for part in path:
            model = None if model is None else model._modules.get(part)
        for table in () if model is None else (model._parameters, model._buffers):
            tensor: torch.Tensor | None = table.get(name)
            if tensor is not None:
                self._links.append((table, name, tensor))
                return tensor
        raise Outside("weights", f"the model has no {key}")

    def bound(self) -> bool:
        """Whether the model still holds the same modules, parameters and buffers, at the same places."""
        return all(table.get(name) is value for table, name, value in self._links)

    def check(self, training: bool) -> None:
        """Raise Outside where the mode of a module that reads it differs, or a hook was added that the kernel can't call."""
        for module in self._by_mode:
            if module.training is not training:
                now, then = ("training", "eval") if module.training else ("eval", "training")
                raise Outside("mode", f"{type(module).__name__} is in {now} mode, the kernel was written for {then} mode")
        if count_hooks(self._modules) != self._hooks:
            raise Outside("hooks", "hooks were added to its submodules, which the kernel would not call")

    def require_grad(self) -> bool:
        return any(tensor.requires_grad for tensor in self._tensors)

    def changed(self) -> list[torch.Tensor] | None:
        """All weights, dense, where values may differ from the last time that this was asked; None where they do not.

        Raises Outside where a weight no longer is what the kernel was written for.
        """
        if not self._tensors:
            return None
        state = [(t.data_ptr(), None if t.is_inference() else t._version) for t in self._tensors]
        if state == self._state and (not self._packed or torch.equal(torch.cat(self._looks), self._looked)):
            return None
        dense = [_checked(t, *spec).detach() for t, spec in zip(self._tensors, self._specs, strict=True)]
        strided = any(d.data_ptr() != t.data_ptr() for d, t in zip(dense, self._tensors, strict=True))
        self._state = [] if strided else state  # a copy cannot be watched: made again at each call
        self._looks = [d.view(-1)[:: max(1, d.numel() // _SAMPLES)] for d in dense]
        self._looked = torch.cat(self._looks)
        return dense


def same_construction(reference: types.ModuleType, entry: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a constructor's arguments equal those that the kernel was written for (the reference's get_init_inputs)."""
    made = reference.get_init_inputs() if hasattr(reference, "get_init_inputs") else []
    first, named = ((), made) if isinstance(made, dict) else (made, {})
    signature = inspect.signature(entry)
    captured, given = signature.bind(*first, **named), signature.bind(*args, **kwargs)
    captured.apply_defaults()
    given.apply_defaults()
    return _equal(captured.arguments, given.arguments)


def reads_training(kind: type) -> bool:
    """Whether a class of modules has code that looks at `training`: then its mode matters. Errs towards yes."""
    classes = [c for c in kind.__mro__ if c not in (object, torch.nn.Module)]
    return any("training" in _names(f.__code__) for c in classes for f in vars(c).values() if isinstance(f, types.FunctionType))


def count_hooks(modules: list[torch.nn.Module]) -> int:
    """Forward hooks of all modules but the first, whose own hooks torch calls around the drop-in."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules[1:])


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, types.CodeType):
            yield from _names(constant)


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    try:
        return bool(one == other)
    except Exception:  # noqa: BLE001 - the user's own __eq__ may raise anything: then nothing is known
        return False


def _flat(bound: inspect.BoundArguments) -> list[Any]:
    return [*bound.args, *(bound.kwargs[name] for name in sorted(bound.kwargs))]


def _tensor(data: bytes, spec: dict[str, Any]) -> torch.Tensor:
    """A tensor over a copy of raw little-endian data."""
    shape, dtype = tuple(spec["shape"]), _DTYPES[spec["dtype"]]
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)


def _checked(x: Any, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """`x`, dense and aligned, where it is a tensor such as the kernel was written for. Raises Outside."""
    if type(x) not in _PLAIN:
        raise Outside("type", f"{name} is a {type(x).__name__}, not a plain tensor")
    if x.shape != shape:
        raise Outside("shape", f"{name} has the shape {list(x.shape)}, the kernel was written for {list(shape)}")
    if x.dtype is not dtype:
        raise Outside("dtype", f"{name} is {x.dtype}, the kernel was written for {dtype}")
    if x.device.type != "cpu":
        raise Outside("device", f"{name} is on {x.device}, the kernel runs on the CPU")
    if x.layout is not torch.strided or x.is_neg():
        raise Outside("layout", f"{name} has the layout {x.layout}{' and a lazy sign' if x.is_neg() else ''}")
    dense: torch.Tensor = x.contiguous()
    return dense if dense.data_ptr() % _ALIGNMENT == 0 else dense.clone()


def _check_modes() -> None:
    """Raise Outside where torch would have to see the single operators."""
    if torch.is_autocast_enabled("cpu"):
        raise Outside("autocast", "autocast is on")
    if _count_dispatch_modes() or _transform() is not None:
        raise Outside("transform", "a dispatch mode or a function transform (vmap, grad) is active")


_count_dispatch_modes: Callable[[], int] = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_transform: Callable[[], object] = getattr(torch._C._functorch, "peek_interpreter_stack", lambda: None)


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("KERNELWRIGHT_HOME") or os.path.join(base, "kernelwright")) / "objects"
