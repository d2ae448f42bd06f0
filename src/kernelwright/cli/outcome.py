"""The closing words of `optimize` and `replay`.

What it does: prints an Outcome as a table that is read in five seconds, or as JSON. Called by `cli.main`.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from kernelwright.cli.display import CONTESTANTS, Progress, milliseconds, results, table
from kernelwright.optimize import Outcome
from kernelwright.records import Measurement, to_json


def show_outcome(outcome: Outcome, as_json: bool, quiet: bool) -> None:
    """The result, for a machine or a person."""
    if as_json:
        click.echo(_as_json(outcome))
        return
    out = results()
    if outcome.measurement is not None and not quiet:
        out.print()
        out.print(measurement_table(outcome.measurement))
        out.print()
    certificate = outcome.certificate
    if not outcome.better or certificate is None:
        out.print(f"[bold]{outcome.task.name}: the baseline is kept.[/] {outcome.reason}.", highlight=False)
        spent = f"{outcome.evaluated} candidates in {outcome.seconds:.0f} s"
        out.print(f"{spent}; see kernelwright show {outcome.run}", highlight=False)
        return
    claim = certificate.claim
    speed = claim.speedup
    line = f"{outcome.task.name}: {speed.estimate:.2f}x faster than {CONTESTANTS.get(claim.baseline, claim.baseline)}"
    out.print(f"[bold green]{line}[/]  95% interval [{speed.low:.2f}, {speed.high:.2f}]", highlight=False)
    if quiet:
        return
    measured = certificate.measurements[0]
    roof = certificate.roofline
    words = [f"contract {outcome.task.precision.value}", f"{measured.threads} threads", certificate.machine.isa]
    if roof is not None:
        words.append(f"{roof.fraction:.0%} of the machine's {roof.bound} limit")
    words.append(f"{outcome.evaluated} candidates in {outcome.seconds:.0f} s")
    out.print(", ".join(words), highlight=False)
    if outcome.folder is not None:
        out.print(f"use      from {outcome.folder}/module.py import {outcome.task.entry}", highlight=False, soft_wrap=True)
        out.print(f"report   {outcome.folder}/report.html", highlight=False, soft_wrap=True)
        out.print(f"replay   {certificate.replay}", highlight=False, soft_wrap=True)


def measurement_table(measurement: Measurement) -> object:
    """Contestants with their medians and the candidate's speed-up over each."""
    ours = measurement.contestants[0]
    rows: list[tuple[str, ...]] = []
    for name in sorted(measurement.speedup, key=lambda n: -measurement.median_ns[n]):
        speed = measurement.speedup[name]
        interval = f"{speed.estimate:.2f}x  [{speed.low:.2f}, {speed.high:.2f}]"
        rows.append((CONTESTANTS.get(name, name), milliseconds(measurement.median_ns[name]), interval))
    rows += [(CONTESTANTS.get(name, name), "-", "unavailable") for name in measurement.unavailable]
    rows.append(("Kernelwright", milliseconds(measurement.median_ns[ours]), f"noise {measurement.noise_floor:.1%}"))
    return table("", ("", "median", "ours is faster by"), rows, len(rows) - 1)


def _as_json(outcome: Outcome) -> str:
    certificate = json.loads(to_json(outcome.certificate)) if outcome.certificate is not None else None
    measurement = json.loads(to_json(outcome.measurement)) if outcome.measurement is not None else None
    return json.dumps(
        {
            "run": outcome.run,
            "task": outcome.task.name,
            "better": outcome.better,
            "reason": outcome.reason,
            "folder": str(outcome.folder) if outcome.folder is not None else None,
            "evaluated": outcome.evaluated,
            "seconds": round(outcome.seconds, 3),
            "notices": list(outcome.notices),
            "measurement": measurement,
            "certificate": certificate,
        }
    )


def show_replay(path: Path, no_sandbox: bool, as_json: bool, quiet: bool) -> int:
    """Replay a certificate and print whether it holds; the exit code."""
    from kernelwright.replay import ReplayVerdict
    from kernelwright.verify import replay_certificate

    with Progress(f"replay {path}", quiet or as_json) as progress:
        outcome = replay_certificate(path, no_sandbox, progress.show)
    if as_json:
        click.echo(to_json(outcome))
    else:
        out = results()
        claimed, found = outcome.claimed, outcome.measured
        against = CONTESTANTS.get(outcome.baseline, outcome.baseline)
        out.print(f"[bold]{outcome.verdict.value}[/]: against {against}", highlight=False)
        out.print(f"claimed   {claimed.estimate:.2f}x  [{claimed.low:.2f}, {claimed.high:.2f}]", highlight=False)
        if found is not None:
            out.print(f"measured  {found.estimate:.2f}x  [{found.low:.2f}, {found.high:.2f}]", highlight=False)
        for reason in outcome.reasons:
            out.print(f"  {reason}", highlight=False)
    return 0 if outcome.verdict is ReplayVerdict.HOLDS else 1
