"""Runs every task of a suite through `optimize`, one after the other, and keeps each row as soon as it is known.

What it does: reads the rows of an earlier run from the JSON-lines file (the last row of a name counts), runs what is missing,
appends a row a task, joins them into a BenchResult. A user's error of one task is that task's reason, not the end.
What it does not do: time or judge (optimize does), or run two tasks at once, which would disturb the timing. Called by cli.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernelwright.bench.statistics import BenchResult, Row, summarize
from kernelwright.bench.suite import SuiteTask, read_suite
from kernelwright.errors import UserError
from kernelwright.events import Notice, OnEvent, PhaseStarted
from kernelwright.lab.protocol import Baseline
from kernelwright.optimize import Outcome, Request, optimize
from kernelwright.records import from_json, to_json

Optimize = Callable[[Request, OnEvent], Outcome]
NOT_COMPARED = (Baseline.EAGER_DEFAULT.value,)  # reported by optimize, but no claim rests on it


@dataclass(frozen=True)
class BenchSettings:
    """`out`: the folder of rows.jsonl, result.json and the tasks' own results. `only`: families or task names; () is all."""

    out: Path
    budget_seconds: float = 60.0
    seed: int = 0
    threads: int | None = None
    all_baselines: bool = True
    only: tuple[str, ...] = ()
    again: bool = False  # run tasks that have a row, too


def bench(folder: Path, settings: BenchSettings, on_event: OnEvent, run: Optimize = optimize) -> BenchResult:
    """Run the suite in `folder`. Raises UserError where there is no such suite or `only` fits no task."""
    suite = read_suite(folder)
    chosen = [t for t in suite.tasks if not settings.only or {t.name, t.family} & set(settings.only)]
    if not chosen:
        raise UserError(f"no task or family of {suite.name} is called {', '.join(settings.only)}")
    settings.out.mkdir(parents=True, exist_ok=True)
    file = settings.out / "rows.jsonl"
    known = {} if settings.again else read_rows(file)
    rows = []
    for number, task in enumerate(chosen, 1):
        row = known.get(task.name)
        if row is None:
            on_event(PhaseStarted("task", f"{number} of {len(chosen)}: {task.name}"))
            row = _run(task, settings, on_event, run)
            with file.open("a") as sink:
                sink.write(to_json(row) + "\n")
        rows.append(row)
    result = summarize(suite.name, rows, settings.seed)
    (settings.out / "result.json").write_text(to_json(result, indent=1) + "\n")
    return result


def read_rows(file: Path) -> dict[str, Row]:
    """The rows in `file` by task; {} where it is not there. Raises UserError for a line that is no row."""
    if not file.exists():
        return {}
    rows = {}
    for line in file.read_text().splitlines():
        try:
            row = from_json(line, Row)
        except ValueError as error:
            raise UserError(f"{file}: {error}", "delete the broken line to resume") from None
        rows[row.name] = row
    return rows


def _run(task: SuiteTask, settings: BenchSettings, on_event: OnEvent, run: Optimize) -> Row:
    request = Request(
        spec=str(task.path),
        budget_seconds=settings.budget_seconds,
        seed=settings.seed,
        threads=settings.threads,
        all_baselines=settings.all_baselines,
        out=settings.out / "results" / task.name,
    )
    try:
        outcome = run(request, on_event)
    except UserError as error:
        on_event(Notice(f"{task.name}: {error.message}"))
        return Row(task.name, task.family, task.level, False, False, error.message, None, None, {}, 0.0)
    return row_of(task, outcome)


def row_of(task: SuiteTask, outcome: Outcome) -> Row:
    """What the bench keeps of one outcome. Verified: a generated candidate passed the thorough cases and was timed."""
    measured = outcome.measurement
    times = dict(measured.median_ns) if measured is not None else {}
    ours = times.get(measured.contestants[0]) if measured is not None else None
    against = {} if measured is None else {n: s.estimate for n, s in measured.speedup.items() if n not in NOT_COMPARED}
    fastest = min(against, key=lambda n: against[n]) if against else None
    return Row(
        name=task.name,
        family=task.family,
        level=task.level,
        verified=measured is not None and ours is not None,
        better=outcome.better,
        reason=outcome.reason,
        speedup=against[fastest] if fastest is not None else None,
        best_baseline=fastest,
        speedups=against,
        seconds=outcome.seconds,
    )
