"""The Lab's end of one candidate: loads it in a worker of its own, runs it on cases, judges what comes back, and lets it race.

What it does: turns every way in which a candidate can end into a verdict with evidence. Outputs are prefilled with 0xFF bytes
(a NaN), inputs are compared with the Lab's own copies after each call, and the comparison runs here, on memory that the worker
has given back.
What it does not do: compile (target) or decide which cases (lab.lab). Called by `lab.lab`.
"""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from kernelwright.lab.compare import Array, Comparison, compare
from kernelwright.lab.protocol import (
    Allocator,
    Kept,
    KeptRequest,
    LoadRequest,
    PrepareRequest,
    RenewRequest,
    RunRequest,
    TimeRequest,
    WarmRequest,
)
from kernelwright.lab.race import Contestant
from kernelwright.lab.reference import CaseData, frame_of
from kernelwright.records import Candidate, CheckedCase, Evidence, EvidenceKind, Precision, Status, Verdict, to_json
from kernelwright.sandbox.failures import HandlerRaised, OutOfMemory, TimedOut, WorkerFailed
from kernelwright.sandbox.tensors import ArraySpec, SharedArray
from kernelwright.sandbox.worker import Worker
from kernelwright.sandbox.zygote import Zygote

HANDLERS = "kernelwright.lab.candidate_worker"
UNWRITTEN = 0xFF
LOAD_SECONDS = 20.0
MOST_AUDITED = 3


class Rejected(Exception):  # noqa: N818 - it is a verdict on its way, not an error
    """A candidate's verdict other than correct, with the evidence for it. Never leaves the lab package."""

    def __init__(self, verdict: Verdict, evidence: Evidence) -> None:
        super().__init__(evidence.summary)
        self.verdict = verdict
        self.evidence = evidence


@dataclass(frozen=True)
class Setting:
    """What is the same for all candidates of a task. `call_seconds`: the time limit of one call; `depth`: its longest
    reduction.
    """

    outputs: tuple[ArraySpec, ...]
    weights: tuple[SharedArray, ...]
    weight_keys: tuple[str, ...]
    constants: dict[str, SharedArray]
    precision: Precision
    depth: int
    call_seconds: float
    threads: int


class Inputs:
    """One case's inputs in memory that candidates map. Made anew after a candidate has changed them or ended badly."""

    def __init__(self, data: CaseData) -> None:
        self.data = data
        self._shared: list[SharedArray] | None = None

    @property
    def fds(self) -> tuple[int, ...]:
        if self._shared is None:
            pairs = zip(self.data.inputs, self.data.specs, strict=True)
            self._shared = [SharedArray.copy_of(a, s.dtype) for a, s in pairs]
        return tuple(s.fd for s in self._shared)

    def changed(self) -> int | None:
        """The first input that is not what it was, bytewise."""
        pairs = zip(self._shared or (), self.data.inputs, strict=True)
        for position, (shared, own) in enumerate(pairs):
            if not np.array_equal(_as_bytes(shared.array), _as_bytes(own)):
                return position
        return None

    def discard(self) -> None:
        """Give the memory up: a process that may live on can still write to it."""
        for shared in self._shared or ():
            shared.close()
        self._shared = None


class Trial:
    """One candidate in its worker. A context manager: the worker ends with it."""

    def __init__(self, zygote: Zygote, candidate: Candidate, so_path: Path, setting: Setting) -> None:
        assert candidate.manifest is not None
        self._zygote = zygote
        self._candidate = candidate
        self._manifest = candidate.manifest
        self._so_path = so_path
        self._setting = setting
        self._worker: Worker | None = None
        self._stack = ExitStack()
        self._outputs: list[SharedArray] | None = None
        self._threads = 1  # of the worker before the candidate's code
        self.seconds = 0.0  # of the last checked call, transport included

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether its worker still runs."""
        return self._worker is not None and self._worker.alive

    @property
    def digest(self) -> str:
        """The candidate's name."""
        return self._candidate.digest

    def close(self) -> None:
        """End the worker."""
        self._stack.close()

    def load(self, allocator: Allocator = Allocator.WARM) -> None:
        """Start the worker and load the object. Raises Rejected."""
        self._worker = self._stack.enter_context(self._zygote.worker(HANDLERS))
        keys = dict(zip(self._setting.weight_keys, self._setting.weights, strict=True))
        fds = [keys[w.key or w.name].fd for w in self._manifest.weights]
        fds += [self._setting.constants[c.key or c.name].fd for c in self._manifest.constants]
        request = LoadRequest(to_json(self._manifest))
        try:
            self._worker.call("warm", WarmRequest(self._setting.threads, allocator), timeout=LOAD_SECONDS).close()
            self._threads = self._count_threads() or 1
            with _code(self._so_path) as code:
                self._worker.call("load", request, [code.fd, *fds], LOAD_SECONDS).close()
        except WorkerFailed as failure:
            raise rejected(failure, "loading it", EvidenceKind.RAN) from failure
        self._no_threads_left("loading it")

    def check(self, inputs: Inputs) -> list[Comparison]:
        """Run once on a case and judge each output. Raises Rejected where it is not right."""
        data = inputs.data
        doing = f"running case {data.case.name}"
        outputs = self._unwritten()
        request = RunRequest(data.specs, self._setting.outputs)
        try:
            reply = self._alive.call("run", request, [*inputs.fds, *(s.fd for s in outputs)], self._setting.call_seconds)
        except WorkerFailed as failure:
            inputs.discard()
            raise rejected(failure, doing, EvidenceKind.RAN) from failure
        self._no_threads_left(doing)
        reply.close()
        self.seconds = reply.seconds
        position = inputs.changed()
        if position is not None:
            inputs.discard()
            raise Rejected(Verdict.WRONG, _wrong(f"changes its input {position} in place ({doing})"))
        return self._judge([s.array for s in outputs], data, doing)

    def prepare(self, cases: Sequence[Inputs], copies: int) -> Contestant:
        """Make the worker ready to be timed on `cases` in turn. Raises Rejected."""
        first = cases[0].data
        request = PrepareRequest(first.specs, len(cases), copies)
        fds = [fd for one in cases for fd in one.fds]
        seconds = self._setting.call_seconds
        try:
            self._alive.call("prepare", request, fds, seconds * 4 + LOAD_SECONDS).close()
        except WorkerFailed as failure:
            raise rejected(failure, "preparing to be timed", EvidenceKind.TIMED) from failure
        return Contestant(self._candidate.digest, frame_of(self._alive, seconds))

    def check_timed(self, cases: Sequence[Inputs]) -> list[Comparison]:
        """Judge the outputs of one of the calls that were timed last. Raises Rejected."""
        self._no_threads_left("being timed")
        outputs = self._unwritten()
        try:
            reply = self._alive.call("kept", KeptRequest(self._setting.outputs), [s.fd for s in outputs], LOAD_SECONDS)
            index = reply.decode(Kept).index
            reply.close()
        except WorkerFailed as failure:
            raise rejected(failure, "returning what it computed while it was timed", EvidenceKind.TIMED) from failure
        if not 0 <= index < len(cases):
            raise Rejected(Verdict.WRONG, _wrong("gives no outputs of the calls that were timed"))
        return self._judge([s.array for s in outputs], cases[index].data, "the outputs of the timed calls")

    def audit(self, cases: Sequence[Inputs], calls: int | None = None) -> list[Comparison]:
        """Judge the outputs of some calls that found NaN there, where a timed call finds earlier answers. Raises Rejected."""
        calls = calls or 1 + secrets.randbelow(MOST_AUDITED)
        request = TimeRequest(calls, keep=secrets.randbelow(calls), spoil=True)
        try:
            self._alive.call("time", request, timeout=self._setting.call_seconds * calls).close()
        except WorkerFailed as failure:
            raise rejected(failure, "being timed", EvidenceKind.TIMED) from failure
        return self.check_timed(cases)

    def renew(self, cases: Sequence[Inputs], variant: int, exact: bool) -> None:
        """Put inputs that it has never seen where those are on which it was timed. Raises Rejected."""
        request = RenewRequest(cases[0].data.specs, len(cases), variant, exact)
        fds = [fd for one in cases for fd in one.fds]
        try:
            self._alive.call("renew", request, fds, LOAD_SECONDS).close()
        except WorkerFailed as failure:
            raise rejected(failure, "taking new inputs", EvidenceKind.TIMED) from failure

    def _unwritten(self) -> list[SharedArray]:
        """Memory for one call's outputs, every byte UNWRITTEN. The same for all calls of a trial: pages cost time."""
        if self._outputs is None:
            self._outputs = [self._stack.enter_context(SharedArray.create(s)) for s in self._setting.outputs]
        for shared in self._outputs:
            _as_bytes(shared.array).fill(UNWRITTEN)
        return self._outputs

    def _no_threads_left(self, doing: str) -> None:
        """Besides the main thread and the runtime's own, which it gets from the caller: what another one does is outside of
        the clock.
        """
        more = self._count_threads() - self._threads
        if more > 0:
            left = f"leaves {more} thread{'s' if more > 1 else ''} of its own behind ({doing})"
            raise Rejected(Verdict.WRONG, _wrong(f"{left}: use the pool that it is given"))

    def _count_threads(self) -> int:
        """Seen from outside. 0 where it has ended: the next call tells how."""
        try:
            return len(os.listdir(f"/proc/{self._alive.pid}/task"))
        except OSError:
            return 0

    @property
    def _alive(self) -> Worker:
        assert self._worker is not None, "load comes first"
        return self._worker

    def _judge(self, arrays: Sequence[Array], data: CaseData, doing: str) -> list[Comparison]:
        found = [
            compare(array, truth, self._setting.precision, self._setting.depth)
            for array, truth in zip(arrays, data.truths, strict=True)
        ]
        for comparison in found:
            if not comparison.ok:
                raise Rejected(Verdict.WRONG, _wrong(f"{comparison.message} ({doing})", found))
        return found


def rejected(failure: WorkerFailed, doing: str, kind: EvidenceKind) -> Rejected:
    """The verdict behind a worker's failure."""
    status = Status.TIMEOUT if isinstance(failure, TimedOut) else Status.FAIL
    verdict = Verdict.TIMED_OUT if isinstance(failure, TimedOut) else Verdict.CRASHED
    log = failure.output[-4000:]
    if isinstance(failure, HandlerRaised):
        log = f"{failure.traceback}\n{log}"[:4000]
    if isinstance(failure, OutOfMemory):
        doing = f"{doing}: {failure.text}"
    return Rejected(verdict, Evidence(kind, status, device(), f"{failure.text} ({doing})", log=log))


def passed(found: Sequence[Comparison], cases: Sequence[CaseData], seconds: float, thorough: bool) -> Evidence:
    """The evidence of a candidate that was right on all `cases`."""
    seeds = ", ".join(f"{c.case.name} (seed {c.case.seed})" for c in cases)
    shapes = "; ".join(f"{s.dtype}{list(s.shape)}" for s in cases[0].specs) if cases else ""
    numbers = numbers_of(found) | {"cases": float(len(cases)), "thorough": float(thorough)}
    note = next((c.oracle_error for c in cases if c.oracle_error), "")
    uncovered = f"there is no float64 oracle ({note}): the reference's own outputs stand for it" if note else ""
    return Evidence(
        EvidenceKind.CHECKED, Status.PASS, device(), f"right on {len(cases)} cases: {seeds}", tool=f"numpy {np.__version__}",
        command=f"inputs {shapes}", seconds=round(seconds, 4), uncovered=uncovered, numbers=numbers,
    )  # fmt: skip


def checked_case(data: CaseData, found: Sequence[Comparison]) -> CheckedCase:
    """What a certificate says of one case: the output that came nearest to its budget."""
    case = data.case
    judged = [(c, t) for c, t in zip(found, data.truths, strict=True) if c.rms_allowed > 0.0 and t.rms_exact > 0.0]
    if not judged:
        return CheckedCase(case.name, case.fill.value, case.seed, True, None, None, None)
    worst, truth = max(judged, key=lambda pair: pair[0].rms_error / pair[0].rms_allowed)
    own, allowed = worst.rms_error / truth.rms_exact, worst.rms_allowed / truth.rms_exact
    return CheckedCase(case.name, case.fill.value, case.seed, True, own, truth.rms_framework / truth.rms_exact, allowed)


def numbers_of(found: Sequence[Comparison]) -> dict[str, float]:
    """The worst errors of some comparisons and what was allowed there."""
    if not found:
        return {}
    worst = max(found, key=lambda c: c.rms_error / c.rms_allowed if c.rms_allowed > 0 else 0.0)
    return {
        "relative_error": max(c.relative_error for c in found), "rms_error": worst.rms_error, "rms_allowed": worst.rms_allowed,
        "max_error": worst.max_error, "max_allowed": worst.max_allowed,
    }  # fmt: skip


def device() -> str:
    """The machine that evidence is about, in a word."""
    return f"cpu {platform.machine()}"


def total_bytes(specs: Sequence[ArraySpec]) -> int:
    """Bytes of some arrays together."""
    return sum(s.bytes for s in specs)


def constant_array(data: bytes, spec: ArraySpec) -> SharedArray:
    """A constant of the graph (raw little-endian data) in a sealed memory file."""
    shared = SharedArray.create(spec)
    _as_bytes(shared.array)[:] = np.frombuffer(data, np.uint8)
    shared.seal()
    return shared


def _code(path: Path) -> SharedArray:
    """A shared object's bytes in a sealed memory file: the candidate's sandbox needs no folder of ours."""
    shared = SharedArray.copy_of(np.frombuffer(path.read_bytes(), np.uint8), "u8")
    shared.seal()
    return shared


def _wrong(text: str, found: Sequence[Comparison] = ()) -> Evidence:
    return Evidence(EvidenceKind.CHECKED, Status.FAIL, device(), text, tool=f"numpy {np.__version__}", numbers=_finite(found))


def _finite(found: Sequence[Comparison]) -> dict[str, float]:
    return {k: v for k, v in numbers_of(found).items() if np.isfinite(v)}


def _as_bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
