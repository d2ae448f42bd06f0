"""The way of one run: task, capture, baseline, search, finals, result folder.

What it does: joins the layers in order, keeps the run in the archive, returns an Outcome; tells what goes on through events.
What it does not do: print, judge or time. Called by cli.

The budget is for the whole run. A share of it is kept back for the finals, which need fresh processes and torch.compile's own
compilation; where that takes longer than the share, the run takes longer: a claim is never made on fewer samples to save time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright import settings as configuration
from kernelwright.archive.store import Archive, Plain
from kernelwright.capture.captured import Captured
from kernelwright.errors import UserError
from kernelwright.events import BaselineTimed, Evaluated, Event, Notice, OnEvent, PhaseStarted
from kernelwright.interrupt import Interruption
from kernelwright.lab.budget import Budget
from kernelwright.lab.lab import BaselineTime, Final, Lab, LabSettings
from kernelwright.lab.protocol import Admitted, Baseline
from kernelwright.lab.timing import Claim
from kernelwright.package import Packaging, package
from kernelwright.proposers.search import Measured, SearchSettings, search
from kernelwright.proposers.space import GraphSpace
from kernelwright.records import Candidate, GeneratedStep, Measurement, Task
from kernelwright.report.data import ProgressPoint
from kernelwright.result.certificate import Certificate
from kernelwright.result.folder import ResultFolder, check_place
from kernelwright.sandbox.isolation import detect
from kernelwright.targets.base import Target
from kernelwright.targets.cpu import CpuTarget
from kernelwright.task.load import load_task

FINALS_SHARE = 0.35  # of the budget is kept back for the finals
FINALS_SECONDS = 25.0  # at most
RESULTS = Path("kernelwright-results")
INTERRUPTED = "interrupted; the best so far goes to the finals (Ctrl-C again ends at once)"


@dataclass(frozen=True)
class Request:
    """What the user asks for. `out` None: kernelwright-results/NAME in the working folder.

    `reference_seconds`: what loading the reference and running it twice may take, before anything else is done.
    """

    spec: str
    inputs: tuple[str, ...] = ()
    target: str = "cpu"
    budget_seconds: float = 60.0
    evaluations: int | None = None
    seed: int = 0
    training: bool = False
    out: Path | None = None
    resume: bool = False
    all_baselines: bool = True
    threads: int | None = None
    allow_no_sandbox: bool = False
    reference_seconds: float = 60.0
    argv: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `better`: a claim was made and packaged. `reason` says in one line why not, where not."""

    run: str
    task: Task
    better: bool
    reason: str
    measurement: Measurement | None
    certificate: Certificate | None
    folder: Path | None
    evaluated: int
    seconds: float
    notices: tuple[str, ...]


class _Recorder:
    """Passes events on and keeps what the report shows."""

    def __init__(self, on_event: OnEvent) -> None:
        self._on_event = on_event
        self.points: list[ProgressPoint] = []
        self.candidates: set[str] = set()  # a finalist is evaluated again, but is one candidate
        self.notices: list[str] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Evaluated):
            self.candidates.add(event.candidate)
            self.points.append(ProgressPoint(event.median_ns, event.verdict, event.note, event.known))
        elif isinstance(event, Notice):
            self.notices.append(event.text)
        self._on_event(event)


def optimize(request: Request, on_event: OnEvent = lambda _: None) -> Outcome:
    """Write a faster operator for `request.spec`. Raises UserError for a mistake of the user's."""
    began = time.monotonic()
    tell = _Recorder(on_event)
    task = load_task(request.spec, request.inputs, request.training)
    check_place(result_place(request, task))
    config = configuration.load()
    threads = request.threads or config.threads
    target = find_target(request.target, config, threads)
    with Archive(config.archive) as archive:
        seed = _seed(request, archive, task)
        kept: dict[str, Plain] = {"budget_seconds": request.budget_seconds, "threads": threads}
        run = archive.begin_run(task, target.name, kept, seed, request.argv)
        status, summary = "failed", dict[str, Plain]()
        try:
            outcome = _Run(request, task, target, archive, config, run, seed, tell, began).go()
            status = "done" if outcome.better else "nothing_better"
            summary = {"reason": outcome.reason, "folder": str(outcome.folder) if outcome.folder else ""}
            return outcome
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        except UserError as error:
            summary = {"reason": error.message}
            raise
        finally:
            archive.end_run(run, status, summary)


def result_place(request: Request, task: Task) -> Path:
    """Where the result goes."""
    return request.out or RESULTS / task.name


def find_target(name: str, config: configuration.Settings, threads: int) -> Target:
    """The target called `name`. Raises UserError for one that is not there yet."""
    if name != "cpu":
        raise UserError(f"there is no target called {name}", "targets of this release: cpu")
    return CpuTarget(config.home, threads, config.compiler)


def lab_settings(config: configuration.Settings, threads: int, allow_foreign: bool) -> LabSettings:
    """The Lab's settings under the user's configuration."""
    return LabSettings(folder=config.objects, threads=threads, allow_foreign=allow_foreign)


def _seed(request: Request, archive: Archive, task: Task) -> int:
    """With --resume, the seed of the last run of this very task: its proposals come again and cost nothing."""
    if not request.resume:
        return request.seed
    earlier = next((r for r in archive.runs() if r.task_digest == task.digest), None)
    if earlier is None:
        raise UserError(f"there is no earlier run of {task.name} to resume", "run it without --resume")
    return earlier.seed


@dataclass(frozen=True)
class _Run:
    """One run on its way through the layers."""

    request: Request
    task: Task
    target: Target
    archive: Archive
    config: configuration.Settings
    run: str
    seed: int
    tell: _Recorder
    began: float

    def go(self) -> Outcome:
        """From the reference to the outcome."""
        request, tell = self.request, self.tell
        budget = Budget(request.budget_seconds, request.evaluations, time.monotonic)
        threads = request.threads or self.config.threads
        settings = replace(
            lab_settings(self.config, threads, request.allow_no_sandbox), admit_seconds=request.reference_seconds
        )
        with Lab(
            self.task, self.target, self.archive, detect(), settings, run=self.run, budget=budget, on_event=tell
        ) as lab:
            tell(PhaseStarted("admit", "the reference runs twice, against float64"))
            admitted = lab.admit()
            tell(PhaseStarted("limits", "this machine's limits (measured once, then kept)"))
            machine = self.target.machine()
            tell(PhaseStarted("capture"))
            captured = lab.capture()
            for name, reason in captured.library_reasons:
                tell(Notice(f"{name} stays a library call: {reason}"))
            tell(PhaseStarted("baseline", "eager"))
            eager = lab.baselines((Baseline.EAGER,))[0]
            if eager.median_ns is not None:
                tell(BaselineTimed(eager.baseline.value, eager.median_ns))
            budget.start(_search_seconds(request.budget_seconds, time.monotonic() - self.began))
            tell(PhaseStarted("search", f"{budget.seconds_left:.0f} s"))
            with Interruption(budget.stop) as interruption:
                found = search(
                    GraphSpace(captured.graph, machine),
                    lab.evaluate,
                    lambda: budget.exhausted,
                    SearchSettings(seed=self.seed),
                    lambda why: tell(Notice(f"search: {INTERRUPTED if interruption.asked else why}")),
                )
            closing = _Closing(request, self.task, lab, captured, admitted, eager, tell, self.run, budget.seconds_spent)
            generated = [m.candidate for m in found if _is_generated(m.candidate)]
            final = _finals(lab, generated, request, self.seed)
            return closing.close(final, found, self.began)


def _search_seconds(whole: float, spent: float) -> float:
    """What the search may spend: the budget less what is spent and what the finals need, but a third of it at least."""
    return max(whole / 3.0, whole - spent - min(FINALS_SECONDS, FINALS_SHARE * whole))


def _is_generated(candidate: Candidate) -> bool:
    return candidate.manifest is not None and any(isinstance(s, GeneratedStep) for s in candidate.manifest.steps)


def _finals(lab: Lab, generated: Sequence[Candidate], request: Request, seed: int) -> Final | None:
    if not generated:
        return None
    baselines = tuple(Baseline) if request.all_baselines else (Baseline.EAGER, Baseline.EAGER_DEFAULT)
    return lab.finalists(generated[:6], baselines, seed)


@dataclass(frozen=True)
class _Closing:
    """What is needed to turn the finals into an outcome."""

    request: Request
    task: Task
    lab: Lab
    captured: Captured
    admitted: Admitted
    eager: BaselineTime
    tell: _Recorder
    run: str
    search_seconds: float

    def close(self, final: Final | None, found: Sequence[Measured], began: float) -> Outcome:
        """The outcome; a winner that is faster than every baseline is packaged first."""
        reason = _why_not(final, found)
        measurement = final.measurement if final is not None else None
        result = None if reason or final is None else self._package(final)
        if result is not None and result.kept is not None:
            self.tell(Notice(f"the earlier result was kept as {result.kept.name}"))
        return Outcome(
            run=self.run,
            task=self.task,
            better=result is not None,
            reason=reason,
            measurement=measurement,
            certificate=result.certificate if result is not None else None,
            folder=result.path if result is not None else None,
            evaluated=len(self.tell.candidates),
            seconds=time.monotonic() - began,
            notices=tuple(self.tell.notices),
        )

    def _package(self, final: Final) -> ResultFolder:
        assert final.winner is not None, "a claim has a winner"
        assert final.measurement is not None, "a claim was measured"
        self.tell(PhaseStarted("package"))
        packaging = Packaging(
            task=self.task,
            run=self.run,
            final=final,
            winner=final.winner,
            measurement=final.measurement,
            captured=self.captured,
            admitted=self.admitted,
            machine=self.lab.machine,
            points=tuple(self.tell.points),
            notices=tuple(self.tell.notices),
            search_seconds=self.search_seconds,
            eager_screen_ns=self.eager.median_ns,
        )
        return package(result_place(self.request, self.task), packaging)


def _why_not(final: Final | None, found: Sequence[Measured]) -> str:
    """Why nothing is claimed, or "" where the winner is faster than every baseline."""
    if final is None:
        return "no generated candidate was correct" if not found else "only library calls were correct"
    if final.winner is None:
        return "no finalist was correct on the thorough cases"
    against = {k: c for k, c in final.claims.items() if k != Baseline.EAGER_DEFAULT.value}
    if Baseline.EAGER.value not in against:
        missing = final.measurement.unavailable if final.measurement is not None else {}
        return f"eager could not be timed: {missing.get(Baseline.EAGER.value, 'no reason was given')}"
    if any(c is Claim.TOO_NOISY for c in against.values()):
        floor = final.measurement.noise_floor if final.measurement is not None else 0.0
        return f"the machine is too noisy to tell (the same kernel twice differs by up to {floor:.1%})"
    slower = [k for k, c in against.items() if c is not Claim.FASTER]
    return f"not faster than {', '.join(slower)} beyond the noise" if slower else ""
