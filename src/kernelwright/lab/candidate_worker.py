"""A candidate's worker: the only process in which a candidate's code runs.

What it does: loads the shared object through `runtime.runner`, runs it on inputs that the Lab shares and into outputs that
the Lab prefilled, and runs it many times when asked, so that the Lab can time it from outside.
What it does not do: know the right answers, compare, or read a clock. Loaded by `sandbox.zygote` by name; imports torch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from kernelwright.lab.allocator import set_allocator
from kernelwright.lab.protocol import (
    Kept,
    KeptRequest,
    LoadRequest,
    PrepareRequest,
    RenewRequest,
    RunRequest,
    TimeRequest,
    WarmRequest,
)
from kernelwright.records import Manifest, from_json
from kernelwright.runtime.runner import Runner, find_openmp
from kernelwright.sandbox.handlers import Handler
from kernelwright.sandbox.tensors import ArraySpec, SharedArray

HELD = 3


PARALLEL_ELEMENTS = 1 << 18  # enough for torch to use all threads (its grain is 1 << 15)
POISON = 0xFF  # a NaN as a float, -1 as an integer


class _Outputs:
    """Makes the runner's outputs: on the Lab's memory while a case is checked, else by torch.empty as a user's module would."""

    def __init__(self, manifest: Manifest) -> None:
        from_library = {n for step in manifest.steps for n in getattr(step, "outputs", ())}
        self._fresh = [o.name for o in manifest.outputs if o.name not in from_library]
        self._returns = manifest.returns
        self._queue: list[torch.Tensor | None] = []
        self.spoil = False

    def offer(self, shared: Sequence[torch.Tensor]) -> None:
        """Place the outputs of the next call in `shared`, one for each returned name; a name returned twice uses the first."""
        by_name: dict[str, torch.Tensor] = {}
        for name, tensor in zip(self._returns, shared, strict=True):
            by_name.setdefault(name, tensor)
        self._queue = [by_name.get(name) for name in self._fresh]

    def empty(self, shape: Any, dtype: torch.dtype) -> torch.Tensor:
        place = self._queue.pop(0) if self._queue else None
        if place is not None:
            return place
        fresh = torch.empty(shape, dtype=dtype)
        if self.spoil:
            _spoil(fresh)
        return fresh


class _State:
    """One loaded candidate."""

    def __init__(self) -> None:
        self.runner: Runner | None = None
        self.outputs: _Outputs | None = None
        self.mappings = ExitStack()  # of weights and constants: as long as the process
        self.weights: list[torch.Tensor] = []
        self.sets: list[list[torch.Tensor]] = []
        self.cases = 1
        self.kept: tuple[int, list[torch.Tensor]] | None = None
        self.at = 0  # calls that were timed: the sets are gone round from frame to frame, or one stays in cache

    def warm(self, request: WarmRequest, fds: tuple[int, ...]) -> None:
        """Start every thread that torch's runtime has, before any code of the candidate's: the Lab counts them then."""
        set_allocator(request.allocator)
        torch.set_num_threads(request.threads)
        find_openmp()
        torch.empty(PARALLEL_ELEMENTS).fill_(0.0)

    def load(self, request: LoadRequest, fds: tuple[int, ...]) -> None:
        manifest = from_json(request.manifest, Manifest)
        code, *rest = fds
        specs = [ArraySpec(s.shape, s.dtype) for s in (*manifest.weights, *manifest.constants)]
        tensors = _tensors(rest, specs, self.mappings)
        self.weights = tensors[: len(manifest.weights)]
        names = [c.name for c in manifest.constants]
        constants = dict(zip(names, tensors[len(manifest.weights) :], strict=True))
        self.outputs = _Outputs(manifest)
        library = Path(f"/proc/self/fd/{os.dup(code)}")
        self.runner = Runner(library, json.loads(request.manifest), constants, self.outputs.empty)
        self.runner.set_weights(self.weights)
        self._poison()

    def _poison(self) -> None:
        """What a call may not read before it writes is NaN: else memory that happens to be zero hides an error."""
        runner = self.runner
        assert runner is not None
        runner._set_threads(torch.get_num_threads())
        own = [runner._kept[spec["name"]] for spec in runner._own]
        for tensor in (runner._workspace, *own):
            _spoil(tensor)

    def run(self, request: RunRequest, fds: tuple[int, ...]) -> None:
        assert self.outputs is not None
        count = len(request.inputs)
        with ExitStack() as mappings:
            inputs = _tensors(fds[:count], request.inputs, mappings, writable=True)
            shared = _tensors(fds[count:], request.outputs, mappings, writable=True)
            self.outputs.offer(shared)
            self._poison()
            _place(self._call(inputs), shared)

    def prepare(self, request: PrepareRequest, fds: tuple[int, ...]) -> None:
        """Copies of weights and inputs in ordinary memory, as a user's tensors are, and a few unclocked calls."""
        assert self.runner is not None
        count = len(request.inputs)
        self.cases = request.sets
        with ExitStack() as mappings:
            given = [_tensors(fds[i * count : (i + 1) * count], request.inputs, mappings) for i in range(request.sets)]
            self.sets = [[t.clone() for t in given[i % request.sets]] for i in range(request.copies)]
        self.weights = [w.clone() for w in self.weights]
        self.runner.set_weights(self.weights)
        # Outputs that live at the same time, then none: from here on malloc has memory for the kept ones as well.
        held = [self._call(self.sets[i % len(self.sets)]) for i in range(HELD)]
        del held

    def time(self, request: TimeRequest, fds: tuple[int, ...]) -> None:
        runner, sets = self.runner, self.sets
        assert runner is not None
        assert self.outputs is not None
        self.outputs.spoil = request.spoil
        with torch.no_grad():
            for i in range(request.calls):
                at = (self.at + i) % len(sets)
                result = runner(sets[at])
                if i == request.keep:
                    self.kept = (at % self.cases, _flat(result))
        self.at += request.calls

    def give_kept(self, request: KeptRequest, fds: tuple[int, ...]) -> Kept:
        if self.kept is None:
            return Kept(-1)
        index, tensors = self.kept
        with ExitStack() as mappings:
            _place(tensors, _tensors(fds, request.outputs, mappings, writable=True))
        used = self._storages()
        for tensor in tensors:  # its memory is what the next call's outputs get: an answer left there must not count again
            if tensor.untyped_storage().data_ptr() not in used:
                _spoil(tensor)
        held = [torch.empty_like(tensor) for tensor in tensors for _ in range(HELD)]  # nor in what was freed before
        for tensor in held:
            _spoil(tensor)
        self.kept = None
        return Kept(index)

    def renew(self, request: RenewRequest, fds: tuple[int, ...]) -> None:
        """New values in the same storage: the cases as they are, or variants of them that no call has seen."""
        count = len(request.inputs)
        self.cases = request.sets
        self.kept = None
        with ExitStack() as mappings:
            given = [_tensors(fds[i * count : (i + 1) * count], request.inputs, mappings) for i in range(request.sets)]
            for number, inputs in enumerate(self.sets):
                shift = 0 if request.exact else 1 + request.variant * len(self.sets) + number
                for tensor, source in zip(inputs, given[number % request.sets], strict=True):
                    _vary(tensor, source, shift)

    def _storages(self) -> set[int]:
        """Of inputs, weights, constants and temporaries: an output may be one of them."""
        assert self.runner is not None
        tensors = [*self.runner._kept.values(), *(t for inputs in self.sets for t in inputs)]
        return {t.untyped_storage().data_ptr() for t in tensors}

    def _call(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        assert self.runner is not None
        with torch.no_grad():
            return _flat(self.runner(inputs))


def handlers() -> dict[str, Handler]:
    """The calls that this worker serves."""
    state = _State()
    return {
        "warm": Handler(WarmRequest, state.warm),
        "load": Handler(LoadRequest, state.load),
        "run": Handler(RunRequest, state.run),
        "prepare": Handler(PrepareRequest, state.prepare),
        "time": Handler(TimeRequest, state.time),
        "kept": Handler(KeptRequest, state.give_kept),
        "renew": Handler(RenewRequest, state.renew),
    }


def _spoil(tensor: torch.Tensor) -> None:
    if tensor.numel():
        tensor.contiguous().reshape(-1).view(torch.uint8).fill_(POISON)


def _vary(tensor: torch.Tensor, source: torch.Tensor, shift: int) -> None:
    """Write `source` to `tensor`, its elements moved on by `shift` places: values stay in their range, whatever it is."""
    tensor.copy_(source.reshape(-1).roll(shift).reshape(source.shape) if shift else source)


def _flat(result: Any) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result or ())


def _place(results: Sequence[torch.Tensor], places: Sequence[torch.Tensor]) -> None:
    """Copy results to where the Lab looks for them, unless they were computed there."""
    for place, result in zip(places, results, strict=True):
        if result.data_ptr() != place.data_ptr():
            place.copy_(result)


def _tensors(
    fds: Sequence[int], specs: Sequence[ArraySpec], mappings: ExitStack, writable: bool = False
) -> list[torch.Tensor]:
    """The arrays behind some descriptors, mapped until `mappings` closes: a torch view does not keep its mapping alive."""
    return [
        mappings.enter_context(SharedArray.open(fd, spec, writable)).tensor for fd, spec in zip(fds, specs, strict=True)
    ]
