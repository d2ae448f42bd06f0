"""`kernelwright runs` and `kernelwright show`: the archive for people and for machines.

What it does: prints tables (or JSON). What it does not do: read SQL (archive.store does). Called by `cli.main`.
"""

from __future__ import annotations

import click

from kernelwright import settings
from kernelwright.archive.store import Archive, RunHistory, RunRecord, Seen
from kernelwright.records import to_json

_SHOWN = 12


def show_runs(as_json: bool) -> None:
    """All runs, newest first."""
    with Archive(settings.load().archive) as archive:
        found = archive.runs()
    if as_json:
        click.echo(to_json(found))
        return
    if not found:
        click.echo("No runs yet. Start one: kernelwright optimize FILE.py")
        return
    from kernelwright.cli.display import milliseconds, results, table

    rows = [
        (r.id, r.started[:19].replace("T", " "), r.task_name, r.target, str(r.evaluations),
         milliseconds(r.best_ns) if r.best_ns is not None else "-", _state(r))
        for r in found
    ]  # fmt: skip
    results().print(table("", ("run", "started (UTC)", "task", "target", "candidates", "best", "status"), rows))


def show_run(name: str, as_json: bool) -> None:
    """One run: its candidates by time, its measurements and how it ended."""
    with Archive(settings.load().archive) as archive:
        if as_json:
            for line in archive.export(name):
                click.echo(line)
            return
        history = archive.run(name)
    from kernelwright.cli.display import milliseconds, results, table

    out = results()
    run = history.run
    out.print(f"[bold]{run.id}[/]  {run.task_name}  ({run.task_path})  target {run.target}, seed {run.seed}: {_state(run)}")
    latest = {s.evaluation.candidate: s for s in history.seen}  # of a finalist, the thorough evaluation
    ranked = sorted(latest.values(), key=_order)
    rows = [
        (s.evaluation.candidate, s.evaluation.verdict.value,
         milliseconds(s.evaluation.median_ns) if s.evaluation.median_ns is not None else "-",
         "archive" if s.known else "new", s.candidate.note[:60])
        for s in ranked[:_SHOWN]
    ]  # fmt: skip
    out.print(table(f"{len(ranked)} candidates, best first", ("candidate", "verdict", "median", "from", "why"), rows, 0))
    if len(ranked) > _SHOWN:
        out.print(f"... and {len(ranked) - _SHOWN} more: kernelwright show {run.id} --json")
    _show_failures(history, out.print)
    for digest, measured in history.measurements:
        for baseline, speedup in measured.speedup.items():
            text = f"{speedup.estimate:.2f}x  [{speedup.low:.2f}, {speedup.high:.2f}]  {measured.threads} threads"
            out.print(f"final  {digest} against {baseline}: {text}")


def _show_failures(history: RunHistory, say: object) -> None:
    assert callable(say)
    first: dict[str, str] = {}
    for seen in history.seen:
        failed = [e for e in seen.evaluation.evidence if e.status.value not in ("pass", "unavailable")]
        if failed:
            first.setdefault(failed[0].summary, seen.evaluation.candidate)
    for summary, digest in list(first.items())[:5]:
        say(f"failed {digest}: {summary}")


def _order(seen: Seen) -> float:
    return seen.evaluation.median_ns if seen.evaluation.median_ns is not None else 1e18


def _state(run: RunRecord) -> str:
    return run.status or "unfinished (running, or stopped before its end)"
