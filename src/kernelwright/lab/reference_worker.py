"""The reference's worker: what runs beside the user's file, in a process that no candidate shares.

What it does: loads the reference once, says whether it can be judged at all (deterministic, leaves its inputs alone, no NaN),
makes the inputs of cases with the right answers, captures the graph, hands out weights, and runs baselines to be timed.
What it does not do: state times or verdicts; the Lab reads its own clock. Loaded by `sandbox.zygote` by name; imports torch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from kernelwright.errors import UserError
from kernelwright.lab import oracle
from kernelwright.lab.allocator import set_allocator
from kernelwright.lab.protocol import (
    AdmitRequest,
    Admitted,
    Baseline,
    CaptureRequest,
    ContendRequest,
    Shape,
    TimeRequest,
    TruthReply,
    TruthRequest,
    Weight,
    WeightsRequest,
)
from kernelwright.records import Case, Task
from kernelwright.sandbox.handlers import Answer, Handler
from kernelwright.sandbox.tensors import ArraySpec, SharedArray, short_name
from kernelwright.task.cases import fill_inputs
from kernelwright.task.reference import Reference, build_entry, call_reference, load_user_module, make_inputs

SAME = 1e-6  # a reference that differs more from itself is random
MOVE_SEED = 77
HELD = 3  # outputs alive at once before the clock starts, so that malloc has memory for the kept ones


@dataclass
class _State:
    """One loaded reference. `sets` are the inputs prepared for timing."""

    task: Task | None = None
    user: Any = None
    call: Any = None
    sets: list[Reference] = field(default_factory=list)
    timed: Any = None
    kept: Any = None  # as a candidate's worker keeps one, so that both need the same memory
    double: torch.nn.Module | None = None
    moved: torch.nn.Module | None = None

    def reference(self, case: Case) -> Reference:
        """The reference with the inputs of `case`."""
        assert self.task is not None
        positional, keywords = make_inputs(self.task, self.user, case.seed)
        filled = fill_inputs([*positional, *keywords.values()], case)
        rest = dict(zip(keywords, filled[len(positional) :], strict=True))
        module = self.call if isinstance(self.call, torch.nn.Module) else None
        return Reference(self.call, module, tuple(filled[: len(positional)]), rest)

    def run(self, reference: Reference) -> list[torch.Tensor]:
        """The outputs, dense and detached."""
        assert self.task is not None
        outputs, _ = call_reference(self.task, reference)
        return [o.detach() for o in outputs]

    # Admission

    def admit(self, request: AdmitRequest, fds: tuple[int, ...]) -> Admitted:
        set_allocator(request.allocator)
        self.task = request.task
        self.user = load_user_module(request.task)
        self.call = build_entry(request.task, self.user)
        reference = self.reference(request.case)
        before = [_bytes(t) for t in tensors_of(reference)]
        first = [o.clone() for o in self.run(reference)]
        for position, (value, was) in enumerate(zip(tensors_of(reference), before, strict=True)):
            if not torch.equal(_bytes(value), was):
                raise UserError(
                    f"{request.task.entry} in {request.task.path} changes its input {position} in place",
                    "clone it first: an operator must leave its inputs alone",
                )
        began = time.perf_counter()
        second = self.run(reference)
        seconds = time.perf_counter() - began
        self._check_outputs(first, second)
        return Admitted(
            inputs=tuple(_spec(t) for t in tensors_of(reference)),
            outputs=tuple(_spec(t) for t in first),
            weights=tuple(Weight(name, _spec(t)) for name, t in self._weights().items()),
            seconds=seconds,
            torch_version=str(torch.__version__),
            keywords=tuple(reference.keywords),
        )

    def _check_outputs(self, first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> None:
        assert self.task is not None
        name = f"{self.task.entry} in {self.task.path}"
        if [(_spec(a)) for a in first] != [_spec(b) for b in second]:
            raise UserError(f"{name} gives outputs of different shapes for the same inputs")
        for position, (a, b) in enumerate(zip(first, second, strict=True)):
            if a.is_floating_point() and bool(a.isnan().any()):
                hint = "change get_inputs so that the outputs are numbers: what is NaN can't be compared"
                raise UserError(f"{name} gives NaN in output {position} on its own inputs", hint)
            if not _same(a, b):
                hint = "remove dropout and random numbers, or judge it in eval mode (without --train)"
                raise UserError(f"{name} is random: two calls with the same inputs give different outputs", hint)

    def _weights(self) -> dict[str, torch.Tensor]:
        if not isinstance(self.call, torch.nn.Module):
            return {}
        named = (*self.call.named_parameters(remove_duplicate=False), *self.call.named_buffers(remove_duplicate=False))
        return {name: tensor.detach() for name, tensor in named}

    # Answers

    def truth(self, request: TruthRequest, fds: tuple[int, ...]) -> Answer:
        reference = self.reference(request.case)
        inputs = [SharedArray.copy_of_tensor(t) for t in tensors_of(reference)]
        began = time.perf_counter()
        outputs = self.run(reference)
        seconds = time.perf_counter() - began
        arrays = [SharedArray.copy_of_tensor(o) for o in outputs]
        specs = tuple(a.spec for a in arrays)
        exact, error = self._oracle(reference, outputs, moved=False)
        moved, _ = self._oracle(reference, outputs, moved=True) if exact is not None and request.moved else (None, "")
        shared = [*inputs, *arrays, *(exact or ()), *(moved or ())]
        reply = TruthReply(
            tuple(a.spec for a in inputs), specs, exact is not None, moved is not None, error, seconds
        )
        return _answer(reply, shared)

    def _oracle(
        self, reference: Reference, outputs: Sequence[torch.Tensor], moved: bool
    ) -> tuple[list[SharedArray] | None, str]:
        """The floating outputs in double, or None and why not: what is raised there is no fault of the reference."""
        generator = torch.Generator().manual_seed(MOVE_SEED)
        inputs = tensors_of(reference)
        wide = oracle.widen(inputs)
        if moved:
            wide = [oracle.move(t, t.dtype, generator) if t.is_floating_point() else t for t in inputs]
        count = len(reference.inputs)
        keywords = dict(zip(reference.keywords, wide[count:], strict=True))
        try:
            double = replace(reference, call=self._double_call(moved, generator), inputs=tuple(wide[:count]), keywords=keywords)
            with oracle.in_double():
                exact = self.run(double)
        except UserError as problem:
            return None, problem.message[:300]
        if [e.shape for e in exact] != [o.shape for o in outputs]:
            return None, "the reference gives other shapes in double precision"
        pairs = zip(exact, outputs, strict=True)
        return [SharedArray.copy_of_tensor(e.double()) for e, o in pairs if o.is_floating_point()], ""

    def _double_call(self, moved: bool, generator: torch.Generator) -> Any:
        """The reference in double. In training mode a fresh copy each time, since a call may change its buffers."""
        if not isinstance(self.call, torch.nn.Module):
            return self.call
        if self.double is None or self.task is None or self.task.training:
            self.double = oracle.double_module(self.call)
            self.moved = None
        if not moved:
            return self.double
        if self.moved is None:
            self.moved = oracle.moved_module(self.call, self.double, generator)
        return self.moved

    def weights(self, request: WeightsRequest, fds: tuple[int, ...]) -> Answer:
        have = self._weights()
        shared = [SharedArray.copy_of_tensor(have[key]) for key in request.keys]
        return _answer(Shape(tuple(a.spec for a in shared)), shared)

    def capture(self, request: CaptureRequest, fds: tuple[int, ...]) -> Answer:
        from kernelwright.capture.export import capture
        from kernelwright.ir.codec import dumps

        assert self.task is not None
        reference = self.reference(self.task.cases[0])
        captured = capture(reference.call, tensors_of(reference), request.name)
        shared = SharedArray.copy_of(np.frombuffer(dumps(captured), np.uint8), "u8")
        return _answer(Shape((shared.spec,)), [shared])

    # Timing

    def contend(self, request: ContendRequest, fds: tuple[int, ...]) -> None:
        made = [self.reference(case) for case in request.cases]
        self.sets = [_cloned(made[i % len(made)]) for i in range(max(request.copies, len(made)))]
        self.at = 0  # calls that were timed: the sets are gone round from frame to frame, or one stays in cache
        self.timed = self.call
        if request.baseline in (Baseline.COMPILE, Baseline.COMPILE_AUTOTUNE):
            self.timed = _compiled(self.call, request.baseline, freeze=not (self.task and self.task.training))
        with torch.no_grad():
            sets = self.sets
            held = [self.timed(*s.inputs, **s.keywords) for s in (sets[i % len(sets)] for i in range(HELD))]
        del held

    def time(self, request: TimeRequest, fds: tuple[int, ...]) -> None:
        timed, sets = self.timed, self.sets
        with torch.no_grad():
            for i in range(request.calls):
                one = sets[(self.at + i) % len(sets)]
                result = timed(*one.inputs, **one.keywords)
                if i == request.keep:
                    self.kept = result
        self.at += request.calls


def handlers() -> dict[str, Handler]:
    """The calls that this worker serves."""
    state = _State()
    return {
        "admit": Handler(AdmitRequest, state.admit),
        "truth": Handler(TruthRequest, state.truth),
        "weights": Handler(WeightsRequest, state.weights),
        "capture": Handler(CaptureRequest, state.capture),
        "contend": Handler(ContendRequest, state.contend),
        "time": Handler(TimeRequest, state.time),
    }


def tensors_of(reference: Reference) -> list[torch.Tensor]:
    """The inputs in the order in which capture and candidates take them: positional, then by keyword."""
    return [*reference.inputs, *reference.keywords.values()]


def _compiled(call: Any, baseline: Baseline, freeze: bool) -> Any:
    from torch._inductor import config

    config.compile_threads = 1  # no pool of its own inside the sandbox
    autotune = baseline is Baseline.COMPILE_AUTOTUNE
    config.freezing = autotune and freeze
    return torch.compile(call, dynamic=False, mode="max-autotune" if autotune else None)


def _answer(payload: object, shared: Sequence[SharedArray]) -> Answer:
    """An answer whose arrays no one else may write."""
    fds = []
    for array in shared:
        array.seal()
        fds.append(array.fd)
    return Answer(payload, tuple(fds))


def _spec(tensor: torch.Tensor) -> ArraySpec:
    return ArraySpec(tuple(tensor.shape), short_name(tensor.dtype))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A dense copy as bytes: NaN equals itself, -0 differs from 0."""
    dense = tensor.detach().contiguous()
    flat = dense.reshape(-1).view(torch.uint8) if dense.numel() else torch.empty(0, dtype=torch.uint8)
    return flat.clone()


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if not a.is_floating_point():
        return torch.equal(a, b)
    if torch.equal(a, b):
        return True
    scale = float(a[a.isfinite()].abs().max()) if bool(a.isfinite().any()) else 0.0
    if not torch.equal(a.isfinite(), b.isfinite()):
        return False
    difference = (a.double() - b.double()).nan_to_num(0.0, 0.0, 0.0).abs().max()
    return float(difference) <= SAME * max(scale, 1e-30)


def _cloned(reference: Reference) -> Reference:
    keywords = {k: v.clone() for k, v in reference.keywords.items()}
    return replace(reference, inputs=tuple(t.clone() for t in reference.inputs), keywords=keywords)

