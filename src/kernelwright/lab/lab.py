"""The Lab: the one door through which anything is evaluated.

What it does: owns the budget, the two sandboxes (reference and candidate), deduplication through the archive, and the order
of work: screen, compile (in parallel), check (one by one), time (one by one, never while something compiles). Finalists are
checked on more cases, then raced against the baselines in fresh processes.
What it does not do: propose, print, or trust a number that a worker states. Made by optimize, verify and replay.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kernelwright.archive.store import Archive
from kernelwright.errors import UserError
from kernelwright.events import Evaluated, Notice, OnEvent, PhaseStarted
from kernelwright.ir.graph import Contract, Graph, Reduce, Scan
from kernelwright.lab.budget import Budget
from kernelwright.lab.candidate import (
    Inputs,
    Rejected,
    Setting,
    Trial,
    checked_case,
    constant_array,
    device,
    passed,
    rejected,
    total_bytes,
)
from kernelwright.lab.compare import Comparison
from kernelwright.lab.protocol import Admitted, Baseline
from kernelwright.lab.race import Contestant, Screening, race, screen
from kernelwright.lab.reference import CaseData, ReferenceProcess
from kernelwright.lab.screen import refusal
from kernelwright.lab.timing import Claim, Noise, claim, interval, median, noise
from kernelwright.records import (
    Candidate,
    Case,
    CaseRole,
    CheckedCase,
    Evaluation,
    Evidence,
    EvidenceKind,
    Fill,
    Machine,
    Measurement,
    Origin,
    Sample,
    Status,
    Task,
    Verdict,
)
from kernelwright.sandbox.failures import SandboxError, WorkerFailed
from kernelwright.sandbox.isolation import Isolation, Mounts, Strength
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.tensors import ArraySpec, SharedArray
from kernelwright.sandbox.zygote import Zygote
from kernelwright.targets.base import Compiled, Target
from kernelwright.task.cases import quick_cases, thorough_cases

if TYPE_CHECKING:
    from kernelwright.capture.captured import Captured

JUDGE = 2  # raise it when verdicts or screening times of older archives must not be used again
COMPILERS = 2
SLOWER_THAN_REFERENCE = 25.0
NOT_KEPT = (Verdict.TIMED_OUT, Verdict.REFUSED)
AGAIN = "again"  # the winner's twin in a second process: the A/A pair
SELECTION_ROUNDS = 9
MOST_FINALISTS = 3
CHECKED_ROUNDS = 1 / 3  # the share of rounds whose outputs are judged, drawn anew each time
UNSEEN_CASES, SUSPECT_CASES = 2, 6
UNSEEN_PASSES = 5
UNSEEN_TRIES = 3
FIRST_SECONDS = 1e-4  # what the first call after a pause may take longer: sleeping threads, cold code
MOST_UNSEEN = 1.4  # new inputs against the same again: what an honest kernel takes longer is noise
MOST_COPIES = 8
MEMORY_FOR_COPIES = 1 << 30


@dataclass(frozen=True)
class LabSettings:
    """What the Lab is told once. `folder` keeps compiled objects; `allow_foreign`: --no-sandbox was given.

    `admit_seconds`: for building the reference and running it twice. `least_call_seconds`: the time limit of a candidate's
    call (where the reference is slow, more).
    """

    folder: Path
    threads: int
    allow_foreign: bool = False
    rounds: int = 30
    least_rounds: int = 12
    race_seconds: float = 20.0
    admit_seconds: float = 60.0
    least_call_seconds: float = 3.0
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class BaselineTime:
    """A quick look at a baseline; `reason` says why there is none where `median_ns` is None."""

    baseline: Baseline
    median_ns: float | None
    reason: str = ""


@dataclass(frozen=True)
class Final:
    """What the finals gave. `winner` None: no finalist was right on the thorough cases, and nothing was measured."""

    winner: Candidate | None
    evaluations: tuple[Evaluation, ...]
    measurement: Measurement | None
    claims: dict[str, Claim]
    noise: Noise | None
    private_seed: int
    cases: tuple[CheckedCase, ...] = ()  # on which the winner was checked


class Lab:
    """One task on one target. A context manager: its processes end with it."""

    def __init__(
        self,
        task: Task,
        target: Target,
        archive: Archive,
        isolation: Isolation,
        settings: LabSettings,
        *,
        run: str,
        budget: Budget,
        on_event: OnEvent = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.task = task
        self.target = target
        self.budget = budget
        self.isolation = isolation
        self._archive = archive
        self._settings = settings
        self._run = run
        self._on_event = on_event
        self._clock = clock
        self._reference = ReferenceProcess(task, isolation, settings.threads, settings.limits, settings.admit_seconds)
        self._zygote: Zygote | None = None
        self._data: dict[str, Inputs] = {}
        self._checked: dict[str, tuple[CheckedCase, ...]] = {}
        self._evaluated = 0
        self._correct = 0
        self.best_ns: float | None = None

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every process of this Lab."""
        self._reference.close()
        if self._zygote is not None:
            self._zygote.close()
        for inputs in self._data.values():
            inputs.discard()

    # The reference

    def admit(self) -> Admitted:
        """Load and judge the reference itself. Raises UserError with one clear line where it can't be used.

        The candidates' sandbox starts meanwhile: both import torch for seconds, and nothing is timed yet.
        """
        if self._reference.admitted is None:
            threading.Thread(target=self._start_candidates, args=(self._candidates,), daemon=True).start()
        return self._reference.admit()

    @staticmethod
    def _start_candidates(zygote: Zygote) -> None:
        with contextlib.suppress(SandboxError):  # who needs it first tries again, and tells
            zygote.start()

    def capture(self) -> Captured:
        """The reference's graph, captured once. Raises UserError where it can't be exported."""
        return self._captured

    @cached_property
    def _captured(self) -> Captured:
        return self._reference.capture()

    @cached_property
    def machine(self) -> Machine:
        return self.target.machine()

    @cached_property
    def machine_key(self) -> str:
        """Under what the archive keeps evaluations: what must be equal for one to be used again."""
        m = self.machine
        return f"{m.cpu}|{m.isa}|{self._settings.threads}|{m.compiler}|{self.isolation.strength.value}|judge {JUDGE}"

    def baselines(self, which: Sequence[Baseline] = (Baseline.EAGER,)) -> tuple[BaselineTime, ...]:
        """A quick look at baselines, each in a process of its own. One that fails is unavailable with the reason."""
        found = []
        for baseline in which:
            try:
                contestant = self._baseline(baseline)
                found.append(BaselineTime(baseline, screen(contestant, None).ns))
            except (WorkerFailed, UserError) as failure:
                found.append(BaselineTime(baseline, None, str(failure)[:300]))
            self._reference.dismiss()
        return tuple(found)

    # Candidates

    def evaluate(self, candidates: Sequence[Candidate], thorough: bool = False) -> list[Evaluation]:
        """Judge candidates in order; ends early with what it has when the budget is spent (thorough ones are not charged)."""
        cases = quick_cases() + (thorough_cases(self.private_seed) if thorough else ())
        known = {c.digest: self._known(c, thorough) for c in candidates}
        fresh = [c for c in candidates if known[c.digest] is None]
        if not thorough and self.budget.evaluations_left is not None:
            fresh = fresh[: self.budget.evaluations_left]
        compiled = self._compile(fresh)
        found: list[Evaluation] = []
        for candidate in candidates:
            evaluation = known[candidate.digest]
            if evaluation is not None:
                found.append(self._told(candidate, evaluation, known=True))
                continue
            if candidate.digest not in compiled or (not thorough and self.budget.exhausted):
                break
            evaluation = self._judge(candidate, compiled[candidate.digest], cases, thorough)
            known[candidate.digest] = evaluation
            if not thorough:
                self.budget.charge()
            self._archive.put_evaluation(self._run, candidate, evaluation, self.task.digest, self.machine_key)
            found.append(self._told(candidate, evaluation, known=False))
        return found

    def finalists(
        self, candidates: Sequence[Candidate], baselines: Sequence[Baseline] = tuple(Baseline), seed: int = 0
    ) -> Final:
        """Rank `candidates` by a race among them, check the fastest thoroughly (the next where it fails), and race it against
        `baselines`. Every process is a fresh one. The choice and the claim come from different samples.
        """
        self._on_event(PhaseStarted("finals", f"{min(len(candidates), MOST_FINALISTS)} finalists"))
        evaluations: list[Evaluation] = []
        winner: tuple[Candidate, Measurement, Noise] | None = None
        for candidate in self._ranked(candidates, seed):
            evaluations += self.evaluate([candidate], thorough=True)
            if evaluations[-1].verdict is not Verdict.CORRECT:
                continue
            try:
                winner = (candidate, *self._measured(candidate, baselines, seed))
                break
            except Rejected as found:
                evaluations.append(self._overturned(candidate, evaluations[-1], found))
        if winner is None:
            return Final(None, tuple(evaluations), None, {}, None, self.private_seed)
        candidate, measurement, heard = winner
        claims = {
            name: claim(measurement.speedup[name], measurement.noise_floor, len(measurement.samples))
            for name in measurement.speedup
        }
        cases = self._checked.get(candidate.digest, ())
        return Final(candidate, tuple(evaluations), measurement, claims, heard, self.private_seed, cases)

    def measure(
        self, candidate: Candidate, baselines: Sequence[Baseline] = tuple(Baseline), seed: int = 0
    ) -> tuple[Measurement, Noise]:
        """Race one candidate, its twin and `baselines` in fresh processes. Raises UserError where it can't be run."""
        try:
            return self._measured(candidate, baselines, seed)
        except Rejected as found:
            raise UserError(f"the candidate {candidate.digest} can't be measured: {found}") from found

    def _measured(
        self, candidate: Candidate, baselines: Sequence[Baseline], seed: int
    ) -> tuple[Measurement, Noise]:
        """As `measure`. Raises Rejected where the candidate fails or computes something else while it is timed."""
        load = os.getloadavg()[0]
        trials: list[Trial] = []
        try:
            opponents, unavailable = self._opponents(baselines)
            for _ in range(2):
                trials.append(self._trial(candidate))
            contestants = [trial.prepare(self._timing_inputs, self._copies) for trial in trials]
            self._on_event(PhaseStarted("finals", "racing"))
            samples = self._race([contestants[0], *opponents, contestants[1]], trials, seed)
            self._examine(trials[0], contestants[0], median([s.ns[0] for s in samples]))
        except WorkerFailed as failure:
            if len(trials) == 2 and all(trial.alive for trial in trials):
                hint = "run it again; --eager-only leaves torch.compile out"
                raise UserError(f"a baseline ended while it was raced: {failure}", hint) from failure
            raise rejected(failure, "being raced", EvidenceKind.TIMED) from failure
        finally:
            for trial in trials:
                trial.close()
            self._reference.dismiss()
        names = (candidate.digest, *(c.name for c in opponents), AGAIN)
        columns = {name: [s.ns[i] for s in samples] for i, name in enumerate(names)}
        own = columns[candidate.digest]
        heard = noise(own, columns[AGAIN], seed)
        measurement = Measurement(
            contestants=names,
            samples=samples,
            median_ns={name: median(ns) for name, ns in columns.items()},
            speedup={c.name: interval(columns[c.name], own, seed) for c in opponents},
            noise_floor=heard.floor,
            threads=self._settings.threads,
            allocator="warm",
            load_before=load,
            unavailable=unavailable,
        )
        self._archive.put_measurement(self._run, candidate.digest, measurement, self.task.digest, self.machine_key)
        return measurement, heard

    def _opponents(self, baselines: Sequence[Baseline]) -> tuple[list[Contestant], dict[str, str]]:
        """The baselines, each ready in a process of its own, and why some are unavailable. They compile at the same time."""
        found: dict[Baseline, Contestant] = {}
        unavailable = {b.value: "not asked for" for b in Baseline if b not in baselines}
        with ThreadPoolExecutor(COMPILERS) as pool:
            self._on_event(PhaseStarted("baseline", ", ".join(b.value for b in baselines)))
            pending = {baseline: pool.submit(self._baseline, baseline) for baseline in baselines}
            for baseline, future in pending.items():
                try:
                    found[baseline] = future.result()
                except (WorkerFailed, UserError) as failure:
                    unavailable[baseline.value] = str(failure)[:300]
                    self._on_event(Notice(f"{baseline.value} is unavailable: {unavailable[baseline.value]}"))
        return list(found.values()), unavailable

    def _overturned(self, candidate: Candidate, before: Evaluation, found: Rejected) -> Evaluation:
        """The verdict on a candidate that was right on every case and failed in the race."""
        evaluation = Evaluation(candidate.digest, found.verdict, (*before.evidence, found.evidence))
        self._archive.put_evaluation(self._run, candidate, evaluation, self.task.digest, self.machine_key)
        return self._told(candidate, evaluation, known=False)

    def _examine(self, trial: Trial, contestant: Contestant, median_ns: float) -> None:
        """Inputs that the winner has never seen, in the same places: as fast, and right? Raises Rejected.

        Who is faster than this machine can move the bytes of inputs and outputs is suspect and gets more of it.
        """
        floor = roofline_ns(self.admit(), self.machine)
        suspect = median_ns < floor
        if suspect:
            least = f"faster than this machine moves all inputs and outputs ({median_ns / 1e6:.3g} ms, {floor / 1e6:.3g} ms)"
            self._on_event(Notice(f"{least}: examined on more inputs that it had not seen"))
        seeds = [self.private_seed + 1 + i for i in range(SUSPECT_CASES if suspect else UNSEEN_CASES)]
        unseen = [self._inputs(Case(f"unseen{s}", CaseRole.CHECK, Fill.REFERENCE, s), keep=False) for s in seeds]
        try:
            ratio = self._unseen_ratio(trial, contestant, unseen)
            if suspect:
                for inputs in unseen:
                    trial.check(inputs)
        finally:
            for inputs in unseen:
                inputs.discard()
        if ratio > MOST_UNSEEN:
            why = f"takes {ratio:.2f} times as long on inputs that it has not seen: it remembers answers"
            raise Rejected(Verdict.WRONG, Evidence(EvidenceKind.TIMED, Status.FAIL, device(), why))

    def _unseen_ratio(self, trial: Trial, contestant: Contestant, unseen: Sequence[Inputs]) -> float:
        """A pass over new inputs against a second pass over the same. The least of some medians: noise makes it more."""
        ratio = math.inf
        for number in range(UNSEEN_TRIES):
            passes = [
                self._unseen_pass(trial, contestant, unseen, number * UNSEEN_PASSES + i, exact=number + i == 0)
                for i in range(UNSEEN_PASSES)
            ]
            first, again = (median(column) for column in zip(*passes, strict=True))
            ratio = min(ratio, max(first - FIRST_SECONDS / self._copies, again) / again)
            if ratio <= MOST_UNSEEN:
                break
        return ratio

    def _unseen_pass(
        self, trial: Trial, contestant: Contestant, unseen: Sequence[Inputs], variant: int, exact: bool
    ) -> tuple[float, float]:
        """Seconds a call the first time over new inputs, and the second time. `exact`: the outputs are judged."""
        trial.renew(unseen, variant, exact)
        first = contestant.seconds(self._copies)
        if exact:
            trial.check_timed(unseen)
        return first, contestant.seconds(self._copies)

    @cached_property
    def private_seed(self) -> int:
        """Drawn when it is first needed, which is after every candidate was written; the evidence and `Final` tell it."""
        return 1_000_000 + secrets.randbelow(1 << 30)

    # Steps of an evaluation

    def _known(self, candidate: Candidate, thorough: bool) -> Evaluation | None:
        """What the archive knows. A timeout (the machine may have been busy) and a refusal (bubblewrap may be there now) are
        tried again; thorough is always made anew.
        """
        found = self._archive.find_evaluation(candidate.digest, self.task.digest, self.machine_key)
        if found is None or found.verdict in NOT_KEPT or (thorough and found.verdict is Verdict.CORRECT):
            return None
        return self._archive.reuse(self._run, candidate.digest, self.task.digest, self.machine_key)

    def _compile(self, candidates: Sequence[Candidate]) -> dict[str, Compiled | Evidence]:
        """Build in parallel: nothing is timed meanwhile. Refused candidates get the refusal as evidence."""
        admitted = self.admit()
        out: dict[str, Compiled | Evidence] = {}
        todo: dict[str, Candidate] = {}
        for candidate in candidates:
            why = refusal(candidate, admitted, self.isolation, self._settings.allow_foreign)
            if why is None:
                todo[candidate.digest] = candidate
            else:
                out[candidate.digest] = Evidence(EvidenceKind.RESOURCE_CHECKED, Status.UNSUPPORTED, self.target.name, why)
        with ThreadPoolExecutor(COMPILERS) as pool:
            built = pool.map(lambda c: self.target.compile(c, self._settings.folder), todo.values())
            out.update(zip(todo, built, strict=True))
        return out

    def _judge(
        self, candidate: Candidate, built: Compiled | Evidence, cases: Sequence[Case], thorough: bool
    ) -> Evaluation:
        if isinstance(built, Evidence):
            refused = built.status is Status.UNSUPPORTED
            return Evaluation(candidate.digest, Verdict.REFUSED if refused else Verdict.NOT_COMPILED, (built,))
        evidence = [built.evidence]
        try:
            with Trial(self._candidates, candidate, built.so_path, self._setting) as trial:
                found, checked = self._check(trial, cases, thorough)
                evidence.append(checked)
                screening, timed = self._screen(trial, thorough or candidate.origin is Origin.FOREIGN)
                evidence.append(timed)
        except Rejected as verdict:
            return Evaluation(candidate.digest, verdict.verdict, (*evidence, verdict.evidence))
        error = max((c.relative_error for c in found), default=0.0)
        return Evaluation(candidate.digest, Verdict.CORRECT, tuple(evidence), screening.ns, error)

    def _check(self, trial: Trial, cases: Sequence[Case], thorough: bool) -> tuple[list[Comparison], Evidence]:
        """Every case that says something; thorough: the first once more, where state that a call leaves behind shows."""
        trial.load()
        began = self._clock()
        found: list[Comparison] = []
        seen: list[CaseData] = []
        checked: list[CheckedCase] = []
        for case in cases:
            keep = case in quick_cases()
            inputs = self._inputs(case, keep)
            try:
                if not inputs.data.useless:
                    compared = trial.check(inputs)
                    found += compared
                    seen.append(inputs.data)
                    checked.append(checked_case(inputs.data, compared))
            finally:
                if not keep:
                    inputs.discard()
        if not seen:
            why = self._inputs(cases[0]).data.useless
            raise UserError(f"no case of {self.task.name} says anything about a kernel: {why}", "change what get_inputs makes")
        if thorough:
            found += trial.check(self._inputs(cases[0]))
            self._checked[trial.digest] = tuple(checked)
        return found, passed(found, seen, self._clock() - began, thorough)

    def _screen(self, trial: Trial, doubted: bool) -> tuple[Screening, Evidence]:
        """A quick time, and a look at what the calls compute by then; at a timed one's too, where it is `doubted`."""
        began = self._clock()
        contestant = trial.prepare(self._timing_inputs, self._copies)
        try:
            screening = screen(contestant, self.best_ns)
        except WorkerFailed as failure:
            raise rejected(failure, "being timed", EvidenceKind.TIMED) from failure
        if doubted:
            trial.check_timed(self._timing_inputs)
        trial.audit(self._timing_inputs, None if doubted else 1)
        evidence = Evidence(
            EvidenceKind.TIMED, Status.PASS, device(), f"{screening.ns / 1e6:.4g} ms, screening",
            seconds=round(self._clock() - began, 4),
            numbers={"median_ns": screening.ns, "frames": float(screening.frames)},
            uncovered="a screening time ranks candidates; it is no claim",
        )  # fmt: skip
        return screening, evidence

    def _told(self, candidate: Candidate, evaluation: Evaluation, known: bool) -> Evaluation:
        self._evaluated += 1
        self._correct += evaluation.verdict is Verdict.CORRECT
        ns = evaluation.median_ns
        if ns is not None and (self.best_ns is None or ns < self.best_ns):
            self.best_ns = ns
        self._on_event(
            Evaluated(
                candidate=candidate.digest,
                verdict=evaluation.verdict.value,
                median_ns=ns,
                best_ns=self.best_ns,
                evaluated=self._evaluated,
                correct=self._correct,
                seconds_left=self.budget.seconds_left,
                evaluations_left=self.budget.evaluations_left,
                note=candidate.note,
                known=known,
            )
        )
        return evaluation

    # Finals

    def _ranked(self, candidates: Sequence[Candidate], seed: int) -> list[Candidate]:
        """The first MOST_FINALISTS in the order of a short race between them alone, then the others."""
        first, rest = list(candidates[:MOST_FINALISTS]), list(candidates[MOST_FINALISTS:])
        if len(first) < 2:
            return [*first, *rest]
        trials: list[Trial] = []
        try:
            trials = [self._trial(c) for c in first]
            samples = race([t.prepare(self._timing_inputs, self._copies) for t in trials], SELECTION_ROUNDS, seed + 1)
        except (WorkerFailed, Rejected):
            return [*first, *rest]  # one of them can't be run now: the thorough check will say which
        finally:
            for trial in trials:
                trial.close()
        medians = {c.digest: median([s.ns[i] for s in samples]) for i, c in enumerate(first)}
        return [*sorted(first, key=lambda c: medians[c.digest]), *rest]

    def _race(self, contestants: Sequence[Contestant], trials: Sequence[Trial], seed: int) -> tuple[Sample, ...]:
        """The rounds; after the first, the last and now and then, the twins' timed outputs are judged. Raises Rejected."""
        began = self._clock()
        settings = self._settings
        draw = secrets.SystemRandom()

        def go_on(number: int) -> bool:
            more = number + 1 < settings.least_rounds or self._clock() - began < settings.race_seconds
            if number == 0 or number + 1 == settings.rounds or not more or draw.random() < CHECKED_ROUNDS:
                for trial in trials:
                    trial.check_timed(self._timing_inputs)
                    trial.audit(self._timing_inputs)
            return more

        return race(contestants, settings.rounds, seed, go_on)

    def _trial(self, candidate: Candidate) -> Trial:
        """A loaded candidate in a fresh process. Raises Rejected."""
        built = self.target.compile(candidate, self._settings.folder)
        if isinstance(built, Evidence):
            raise Rejected(Verdict.NOT_COMPILED, built)
        trial = Trial(self._candidates, candidate, built.so_path, self._setting)
        try:
            trial.load()
        except BaseException:
            trial.close()
            raise
        return trial

    def _baseline(self, baseline: Baseline) -> Contestant:
        return self._reference.contestant(baseline, [i.data.case for i in self._timing_inputs], self._copies)

    # What is the same for all candidates

    @property
    def _candidates(self) -> Zygote:
        """The sandbox of candidates: it sees no file of the user's, none of ours but the package."""
        if self._zygote is None:
            if self.isolation.strength is not Strength.BUBBLEWRAP:
                self._on_event(Notice(self.isolation.statement))
            preload = ("torch", "kernelwright.lab.candidate_worker")
            limits = replace(self._settings.limits, may_fork=False)  # no kernel needs a process of its own
            self._zygote = Zygote(self.isolation, Mounts(), limits, preload=preload, threads=self._settings.threads)
        return self._zygote

    def _inputs(self, case: Case, keep: bool = True) -> Inputs:
        """A case's inputs and right answers, computed once where they are kept."""
        if case.name in self._data:
            return self._data[case.name]
        inputs = Inputs(self._reference.truth(case))
        if keep:
            self._data[case.name] = inputs
        return inputs

    @cached_property
    def _setting(self) -> Setting:
        admitted = self.admit()
        keys = tuple(w.key for w in admitted.weights)
        graph = self._graph
        constants = {} if graph is None else self._constants(graph)
        return Setting(
            outputs=admitted.outputs,
            weights=tuple(self._reference.weights(keys)) if keys else (),
            weight_keys=keys,
            constants=constants,
            precision=self.task.precision,
            depth=1 if graph is None else depth_of(graph),
            call_seconds=max(self._settings.least_call_seconds, SLOWER_THAN_REFERENCE * admitted.seconds),
            threads=self._settings.threads,
        )

    @property
    def _graph(self) -> Graph | None:
        """The graph, where the reference can be captured: a candidate from outside is judged without one too."""
        try:
            return self.capture().graph
        except UserError:
            return None

    def _constants(self, graph: Graph) -> dict[str, SharedArray]:
        out = {}
        for tensor in graph.tensors.values():
            if tensor.source is not None and tensor.source in graph.constants:
                spec = ArraySpec(tensor.shape, tensor.dtype.value)
                out[tensor.source] = constant_array(graph.constants[tensor.source], spec)
        return out

    @property
    def _timing_inputs(self) -> list[Inputs]:
        cases = quick_cases()
        size = total_bytes(self.admit().inputs)
        return [self._inputs(c) for c in (cases if size * len(cases) <= MEMORY_FOR_COPIES else cases[:1])]

    @property
    def _copies(self) -> int:
        """How many sets of inputs a timed loop goes round: beyond the last-level cache where memory allows."""
        size = max(1, total_bytes(self.admit().inputs))
        wanted = math.ceil(2 * max(self.machine.l3_bytes, 1 << 20) / size)
        fitting = max(1, MEMORY_FOR_COPIES // size)
        return max(len(self._timing_inputs), min(MOST_COPIES, wanted, fitting))


def roofline_ns(admitted: Admitted, machine: Machine) -> float:
    """The least time in which this machine moves every input and output once, at the best rate that was measured (in cache).

    An operator may be faster if it does not read all of its inputs. 0 where nothing was measured.
    """
    rates = [max(b.copy_gbps, b.stream_gbps, b.read_gbps) for b in machine.bandwidth]
    return total_bytes((*admitted.inputs, *admitted.outputs)) / max(rates) if rates else 0.0


def depth_of(graph: Graph) -> int:
    """K for the comparison: the most terms that one element of any operation sums up."""
    depth = 1
    for op in graph.ops:
        if isinstance(op, Reduce | Contract):
            depth = max(depth, math.prod(a.extent for a in op.reduce_axes))
        elif isinstance(op, Scan):
            depth = max(depth, next(a.extent for a in op.axes if a.name == op.axis))
    return depth
