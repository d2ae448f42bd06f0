"""What the rows of a bench say together: success, fast_p, geometric means with an interval, by family and by level.

What it does: pure functions over rows. A task without a verified kernel counts as not fast in fast_p, and is left out of the
geometric mean, whose `counted` says over how many tasks it is. What it does not do: run or time. Called by `bench.run`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.records import Interval

THRESHOLDS = (0.8, 1.0, 1.5, 2.0)
RESAMPLES = 2000


@dataclass(frozen=True)
class Row:
    """One task's end. `speedup`: against the best baseline (`best_baseline`), None where nothing was verified."""

    name: str
    family: str
    level: str
    verified: bool  # a generated kernel was correct on the thorough cases
    better: bool  # and claimed faster than every baseline
    reason: str
    speedup: float | None
    best_baseline: str | None
    speedups: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class Summary:
    """The numbers of one group of tasks. Rates are shares of `tasks`; `geomean` is over `counted` of them."""

    group: str
    tasks: int
    success_rate: float
    better_rate: float
    fast: dict[str, float]  # "1.5" -> share that is verified and more than 1.5 times as fast as the best baseline
    geomean: Interval | None
    counted: int


@dataclass(frozen=True)
class BenchResult:
    """A suite's result. `failures`: each task without a verified kernel, with the reason."""

    suite: str
    whole: Summary
    families: tuple[Summary, ...]
    levels: tuple[Summary, ...]
    against: dict[str, Interval]  # baseline -> geometric mean of the speed against it alone
    failures: dict[str, str]
    rows: tuple[Row, ...]


def summarize(suite: str, rows: Sequence[Row], seed: int = 0) -> BenchResult:
    """The result of a non-empty list of rows."""
    baselines = sorted({name for row in rows for name in row.speedups})
    against = {n: geomean([r.speedups[n] for r in rows if n in r.speedups], seed) for n in baselines}
    return BenchResult(
        suite=suite,
        whole=_summary("all", rows, seed),
        families=tuple(_summary(f, [r for r in rows if r.family == f], seed) for f in dict.fromkeys(r.family for r in rows)),
        levels=tuple(_summary(n, [r for r in rows if r.level == n], seed) for n in dict.fromkeys(r.level for r in rows)),
        against={n: interval for n, interval in against.items() if interval is not None},
        failures={r.name: r.reason for r in rows if not r.verified},
        rows=tuple(rows),
    )


def _summary(group: str, rows: Sequence[Row], seed: int) -> Summary:
    speeds = [r.speedup for r in rows if r.verified and r.speedup is not None]
    return Summary(
        group=group,
        tasks=len(rows),
        success_rate=sum(r.verified for r in rows) / len(rows),
        better_rate=sum(r.better for r in rows) / len(rows),
        fast={f"{p:g}": sum(s > p for s in speeds) / len(rows) for p in THRESHOLDS},
        geomean=geomean(speeds, seed),
        counted=len(speeds),
    )


def geomean(values: Sequence[float], seed: int = 0) -> Interval | None:
    """The geometric mean of positive values with its 95% percentile-bootstrap interval over tasks; None of none."""
    if not values:
        return None
    logs = [math.log(v) for v in values]
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(logs, k=len(logs))) / len(logs) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return Interval(math.exp(sum(logs) / len(logs)), math.exp(low), math.exp(high))


def format_result(result: BenchResult) -> str:
    """A plain table: all, levels, families; then the speed against each baseline; then the failures with their reasons."""
    heads = ("group", "tasks", "verified", "faster", *(f">{p:g}x" for p in THRESHOLDS), "geomean", "interval", "of")
    lines = [_line(heads)]
    lines += [_line(_cells(s)) for s in (result.whole, *result.levels, *result.families)]
    lines += [""] + [f"against {n}: {i.estimate:.2f}x [{i.low:.2f}, {i.high:.2f}]" for n, i in result.against.items()]
    lines += [""] + [f"failed: {name}: {reason}" for name, reason in result.failures.items()]
    return "\n".join(lines).rstrip()


def _cells(summary: Summary) -> tuple[str, ...]:
    mean = summary.geomean
    shares = [summary.success_rate, summary.better_rate, *summary.fast.values()]
    return (
        summary.group,
        str(summary.tasks),
        *(f"{s:.1%}" for s in shares),
        f"{mean.estimate:.2f}x" if mean is not None else "-",
        f"{mean.low:.2f}-{mean.high:.2f}" if mean is not None else "-",
        str(summary.counted),
    )


def _line(cells: Sequence[str]) -> str:
    return (cells[0].ljust(18) + "".join(c.rjust(11) for c in cells[1:])).rstrip()
