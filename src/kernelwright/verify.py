"""Measuring somebody's claim: the replay of a certificate through the Lab.

What it does: builds the Lab around what a result folder holds and measures it in fresh processes.
What it does not do: decide by a rule of its own (`replay` does), or know a second way to measure. Called by cli.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright import settings as configuration
from kernelwright.archive.store import Archive
from kernelwright.errors import UserError
from kernelwright.events import OnEvent
from kernelwright.lab.budget import Budget
from kernelwright.lab.lab import Lab
from kernelwright.lab.protocol import Baseline
from kernelwright.optimize import find_target, lab_settings
from kernelwright.records import Candidate, Machine, Manifest, Measurement, Origin, from_json
from kernelwright.replay import ReplayOutcome, replay
from kernelwright.result.certificate import Certificate
from kernelwright.sandbox.isolation import detect


def replay_certificate(path: Path, allow_no_sandbox: bool, on_event: OnEvent) -> ReplayOutcome:
    """Measure the claim of the certificate at `path` again. Raises UserError where there is none or it can't be measured."""

    def measure(certificate: Certificate, folder: Path) -> tuple[Measurement, Machine]:
        return _measure(certificate, folder, allow_no_sandbox, on_event)

    return replay(path, measure)


def _measure(
    certificate: Certificate, folder: Path, allow_no_sandbox: bool, on_event: OnEvent
) -> tuple[Measurement, Machine]:
    """The result folder's own kernel against its own copy of the reference: correct first, then timed."""
    config = configuration.load()
    claimed = certificate.measurements[0]
    target = find_target("cpu", config, claimed.threads)
    task = replace(certificate.task, path=str((folder / "reference.py").absolute()))
    candidate = read_candidate(folder)
    if candidate.digest != certificate.candidate:
        raise UserError(f"the kernel in {folder} is not the one of the certificate", "give the folder that optimize wrote")
    baselines = tuple(b for b in Baseline if b.value in claimed.speedup)
    with Archive(config.archive) as archive:
        run = archive.begin_run(task, target.name, {"replay": str(folder)}, 0, ("replay", str(folder)))
        status = "failed"
        try:
            labs = lab_settings(config, claimed.threads, allow_no_sandbox)
            budget = Budget(600.0, None, time.monotonic)
            with Lab(task, target, archive, detect(), labs, run=run, budget=budget, on_event=on_event) as lab:
                final = lab.finalists([candidate], baselines)
                if final.measurement is None:
                    failed = final.evaluations[-1].evidence[-1].summary if final.evaluations else "it was not evaluated"
                    raise UserError(f"the kernel in {folder} is not correct here: {failed}", "the claim can't be measured")
                status = "done"
                return final.measurement, lab.machine
        finally:
            archive.end_run(run, status, {})


@dataclass(frozen=True)
class _About:
    """What a replay needs of a result folder's manifest.json."""

    flags: tuple[str, ...]
    manifest: Manifest


def read_candidate(folder: Path) -> Candidate:
    """The candidate in a result folder. It comes from a file that anyone may have edited, so it is foreign code."""
    try:
        source = (folder / "kernel.cpp").read_text(encoding="utf-8")
        about = from_json((folder / "manifest.json").read_bytes(), _About)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} is not a whole result folder: {error}", "give a folder that optimize wrote") from error
    return Candidate("cpu", source, about.manifest, about.flags, origin=Origin.FOREIGN, proposer="replay")
