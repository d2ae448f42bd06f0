"""The Lab's end of the reference: admission, right answers, weights, the captured graph, and baselines to race against.

What it does: owns the reference's zygote (the only sandbox that sees the user's file) and turns what its workers say into numpy
arrays and `Truth`s. A reference that can't be judged becomes a UserError of one line.
What it does not do: see a candidate. Made and closed by `lab.lab`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from kernelwright.errors import UserError
from kernelwright.ir.expr import DType
from kernelwright.lab.compare import Array, Truth, masks_agree, prepare
from kernelwright.lab.protocol import (
    AdmitRequest,
    Admitted,
    Allocator,
    Baseline,
    CaptureRequest,
    ContendRequest,
    Shape,
    TimeRequest,
    TruthReply,
    TruthRequest,
    WeightsRequest,
)
from kernelwright.lab.race import Contestant, Frame
from kernelwright.records import Case, Fill, Task
from kernelwright.sandbox.failures import HandlerRaised, OutOfMemory, TimedOut, WorkerFailed
from kernelwright.sandbox.isolation import Isolation, Mounts
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.tensors import ArraySpec, SharedArray
from kernelwright.sandbox.worker import Reply, Worker
from kernelwright.sandbox.zygote import Zygote

if TYPE_CHECKING:
    from kernelwright.capture.captured import Captured

HANDLERS = "kernelwright.lab.reference_worker"
CAPTURE_SECONDS = 180.0
COMPILE_SECONDS = 120.0
AUTOTUNE_SECONDS = 240.0
SLOWER_IN_DOUBLE = 60.0  # a float64 run has this many times the reference's seconds, and at least LEAST_SECONDS
LEAST_SECONDS = 30.0


@dataclass(frozen=True)
class CaseData:
    """Inputs (the Lab's own copies) and right answers of one case. `useless`: why it says nothing about a candidate, or ""."""

    case: Case
    inputs: tuple[Array, ...]
    specs: tuple[ArraySpec, ...]
    truths: tuple[Truth, ...]
    oracle_error: str
    useless: str


class ReferenceProcess:
    """The reference in its sandbox. Workers start when first needed; a baseline has a worker of its own."""

    def __init__(self, task: Task, isolation: Isolation, threads: int, limits: Limits, admit_seconds: float) -> None:
        self._task = task
        self._admit_seconds = admit_seconds
        mounts = Mounts(read_only=(Path(task.path).parent,))
        self._zygote = Zygote(isolation, mounts, limits, preload=("torch", HANDLERS), threads=threads)
        self._worker: Worker | None = None
        self._contenders: list[Worker] = []
        self._sensitivity: list[tuple[float, float]] | None = None  # of each output, on the task's own inputs
        self.admitted: Admitted | None = None

    def close(self) -> None:
        self.dismiss()
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        self._zygote.close()

    def dismiss(self) -> None:
        """End the workers of all baselines."""
        for worker in self._contenders:
            worker.close()
        self._contenders.clear()

    def admit(self) -> Admitted:
        """Load and run the reference. Raises UserError where it can't be judged."""
        if self.admitted is None:
            self._worker, self.admitted = self._admit(Allocator.WARM)
        return self.admitted

    def truth(self, case: Case) -> CaseData:
        """Inputs and answers of `case`. Raises UserError on the task's own inputs; on other fills the case becomes useless."""
        seconds = max(LEAST_SECONDS, self.admit().seconds * SLOWER_IN_DOUBLE)
        try:
            request = TruthRequest(case, moved=case.fill is not Fill.REFERENCE or self._sensitivity is None)
            reply = self._call("truth", request, seconds, f"computing the right answers of {case.name}")
        except UserError as error:
            if case.fill is Fill.REFERENCE:
                raise
            return CaseData(case, (), (), (), "", f"the reference does not take such inputs: {error.message[:200]}")
        said = reply.decode(TruthReply)
        arrays = _take(reply, (*said.inputs, *said.outputs, *_oracles(said)))
        inputs = tuple(np.array(a) for a in arrays[: len(said.inputs)])
        outputs = arrays[len(said.inputs) : len(said.inputs) + len(said.outputs)]
        floats = iter(arrays[len(said.inputs) + len(said.outputs) :])
        count = sum(DType(s.dtype).is_float for s in said.outputs)
        exact = [next(floats) for _ in range(count)] if said.oracle else []
        moved = [next(floats) for _ in range(count)] if said.moved else []
        truths: list[Truth] = []
        for position, (spec, output) in enumerate(zip(said.outputs, outputs, strict=True)):
            dtype, at = DType(spec.dtype), sum(t.dtype.is_float for t in truths)
            oracle = exact[at] if exact and dtype.is_float else None
            truths.append(prepare(f"output {position}", dtype, output, oracle, moved[at] if moved and dtype.is_float else None))
        if case.fill is Fill.REFERENCE:  # other seeds of the same distribution are as sensitive: that run is saved
            truths = [self._sensitive(position, truth, bool(moved)) for position, truth in enumerate(truths)]
            self._sensitivity = self._sensitivity or [_sensitivity(truth) for truth in truths]
        useless = "" if all(map(masks_agree, truths)) else "float32 and float64 have NaN or Inf at different places"
        return CaseData(case, inputs, said.inputs, tuple(truths), said.oracle_error, useless)

    def _sensitive(self, position: int, truth: Truth, measured: bool) -> Truth:
        if measured or self._sensitivity is None:
            return truth
        rms, largest = self._sensitivity[position]
        return replace(truth, rms_condition=rms * truth.rms_exact, max_condition=largest * truth.rms_exact)

    def weights(self, keys: Sequence[str]) -> list[SharedArray]:
        """Sealed arrays of these parameters and buffers; the caller's to close."""
        self.admit()
        reply = self._call("weights", WeightsRequest(tuple(keys)), LEAST_SECONDS, "reading the weights")
        specs = reply.decode(Shape).arrays
        shared = [SharedArray.open(fd, spec) for fd, spec in zip(reply.fds, specs, strict=True)]
        reply.close()
        return shared

    def capture(self) -> Captured:
        """The reference as a graph. Raises UserError where it can't be exported."""
        from kernelwright.ir.codec import loads

        self.admit()
        reply = self._call("capture", CaptureRequest(self._task.name), CAPTURE_SECONDS, "capturing the graph")
        (data,) = _take(reply, reply.decode(Shape).arrays)
        captured: Captured = loads(data.tobytes())
        return captured

    def contestant(self, baseline: Baseline, cases: Sequence[Case], copies: int) -> Contestant:
        """A worker that runs `baseline`, ready to race. Raises WorkerFailed or UserError where it can't be had."""
        allocator = Allocator.DEFAULT if baseline is Baseline.EAGER_DEFAULT else Allocator.WARM
        worker, admitted = self._admit(allocator)
        self._contenders.append(worker)
        seconds = max(LEAST_SECONDS, admitted.seconds * 20 * copies)
        extra = {Baseline.COMPILE: COMPILE_SECONDS, Baseline.COMPILE_AUTOTUNE: AUTOTUNE_SECONDS}.get(baseline, 0.0)
        worker.call("contend", ContendRequest(baseline, tuple(cases), copies), timeout=seconds + extra).close()
        return Contestant(baseline.value, frame_of(worker, seconds))

    def _admit(self, allocator: Allocator) -> tuple[Worker, Admitted]:
        worker = self._zygote.worker(HANDLERS)
        try:
            request = AdmitRequest(self._task, self._task.cases[0], allocator)
            reply = worker.call("admit", request, timeout=self._admit_seconds)
            return worker, reply.decode(Admitted)
        except WorkerFailed as failure:
            worker.close()
            raise _blame(self._task, failure, "running it twice") from failure

    def _call(self, name: str, payload: object, seconds: float, doing: str) -> Reply:
        if self._worker is None or not self._worker.alive:
            self._worker, self.admitted = self._admit(Allocator.WARM)
        try:
            return self._worker.call(name, payload, timeout=seconds)
        except WorkerFailed as failure:
            raise _blame(self._task, failure, doing) from failure


def frame_of(worker: Worker, seconds: float) -> Frame:
    """A frame of calls in `worker`, on this process's clock. `seconds`: the time limit, to which 10 s are added."""

    def frame(calls: int) -> float:
        request = TimeRequest(calls, keep=int.from_bytes(os.urandom(2), "little") % max(calls, 1))
        began = perf_counter()
        worker.call("time", request, timeout=seconds + 10.0).close()
        return perf_counter() - began

    return frame


def _sensitivity(truth: Truth) -> tuple[float, float]:
    """How far rounding alone moves an output, relative to its RMS: in the RMS and at most."""
    scale = truth.rms_exact or 1.0
    return truth.rms_condition / scale, truth.max_condition / scale


def _oracles(said: TruthReply) -> tuple[ArraySpec, ...]:
    wide = tuple(ArraySpec(s.shape, "f64") for s in said.outputs if DType(s.dtype).is_float)
    return wide * (said.oracle + said.moved)


def _take(reply: Reply, specs: Sequence[ArraySpec]) -> list[Array]:
    """Read-only views of the arrays that came with a reply; the memory lives as long as the views."""
    views = []
    for fd, spec in zip(reply.fds, specs, strict=True):
        with SharedArray.open(fd, spec) as shared:
            views.append(shared.array)
    reply.close()
    return views


def _blame(task: Task, failure: WorkerFailed, doing: str) -> UserError:
    """The user's error behind a failure of the reference's worker; our own bugs stay as they are."""
    name = f"{task.entry} in {task.path}"
    if isinstance(failure, HandlerRaised):
        if failure.kind not in ("UserError", "CaptureError"):
            raise failure
        message, _, hint = failure.message.partition("\n")
        return UserError(message, hint.strip() or None)
    if isinstance(failure, TimedOut):
        return UserError(
            f"{name} did not come to an end: {doing} took more than {failure.seconds:.0f} s",
            "make its inputs smaller: an operator that takes 2 to 500 ms can be tuned",
        )
    if isinstance(failure, OutOfMemory):
        return UserError(f"{name} {failure.text} ({doing})", "make its inputs smaller")
    last = failure.output.strip().splitlines()[-1:] if failure.output else []
    said = f"; it said: {last[0][:200]}" if last else ""
    return UserError(f"{name} {failure.text} while {doing}{said}")
