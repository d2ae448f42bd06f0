"""From the finals to a result folder: certificate, report data, module.

What it does: puts together what `result` writes and `report` shows. What it does not do: measure. Called by optimize.
"""

from __future__ import annotations

import platform
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kernelwright import __version__
from kernelwright.capture.captured import Captured
from kernelwright.ir.graph import Library
from kernelwright.ir.plan import plan
from kernelwright.ir.schedule import Decision, Schedule
from kernelwright.ir.tile import Nest, Program
from kernelwright.lab.lab import Final
from kernelwright.lab.protocol import Admitted
from kernelwright.proposers.cost import bandwidth, compulsory_bytes, flops
from kernelwright.records import Candidate, Machine, Measurement, Task
from kernelwright.report.data import ProgramStep, ProgressPoint, ReportData
from kernelwright.result.certificate import FORMAT, Certificate, Roofline, Versions, claim_of
from kernelwright.result.folder import Product, ResultFolder, write_result

_SEARCH = "search: "  # how optimize begins the line that tells why a search ended


@dataclass(frozen=True)
class Packaging:
    """All that a result rests on."""

    task: Task
    run: str
    final: Final
    winner: Candidate
    measurement: Measurement
    captured: Captured
    admitted: Admitted
    machine: Machine
    points: tuple[ProgressPoint, ...]
    notices: tuple[str, ...]
    search_seconds: float
    eager_screen_ns: float | None


def package(folder: Path, given: Packaging) -> ResultFolder:
    """Write the result folder. Raises UserError where it can't be written."""
    program = plan(given.captured.graph, parse_schedule(given.winner.schedule), given.machine)
    draft = _certificate(folder, given, program)
    steps = _steps(program)
    product = Product(given.task, given.winner, given.captured.graph.constants, given.admitted.keywords)

    def report(certificate: Certificate) -> str:
        from kernelwright.report import render  # draws with matplotlib: half a second that no other command pays

        data = ReportData(
            certificate=certificate,
            source=given.winner.source,
            steps=steps,
            progress=given.points,
            search_seconds=given.search_seconds,
            baseline_screen_ns=given.eager_screen_ns,
            import_line=f"from module import {given.task.entry}",
            notices=tuple(text for text in given.notices if not text.startswith(_SEARCH)),
            search_end="; ".join(text.removeprefix(_SEARCH) for text in given.notices if text.startswith(_SEARCH)),
        )
        return render(data)

    return write_result(folder, product, draft, report)


def parse_schedule(text: str) -> Schedule:
    """The inverse of Schedule.text."""
    rows = [line.split(" = ", 1) for line in text.splitlines() if line]
    return Schedule(tuple(Decision(name, int(value) if value.lstrip("-").isdigit() else value) for name, value in rows))


def _certificate(folder: Path, given: Packaging, program: Program) -> Certificate:
    evaluation = next(e for e in reversed(given.final.evaluations) if e.candidate == given.winner.digest)
    versions = Versions(
        kernelwright=__version__,
        torch=given.admitted.torch_version,
        python=platform.python_version(),
        compiler=given.machine.compiler,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
    )
    claim = claim_of(given.measurement)
    return Certificate(
        format=FORMAT,
        issued=datetime.now(UTC).isoformat(timespec="seconds"),
        run=given.run,
        task=given.task,
        candidate=given.winner.digest,
        schedule=given.winner.schedule,
        claim=claim,
        versions=versions,
        machine=given.machine,
        measurements=(given.measurement,),
        cases=given.final.cases,
        evidence=evaluation.evidence,
        roofline=_roofline(program, given.machine, claim.median_ns),
        generated_share=1.0 if not any(isinstance(s, Library) for s in program.steps) else None,
        replay=f"kernelwright replay {shlex.quote(str(folder / 'certificate.json'))}",
        files={},
    )


def _roofline(program: Program, machine: Machine, median_ns: float) -> Roofline:
    total = compulsory_bytes(program)
    work = flops(program)
    rotated = max(float(total), min(8.0 * total, 4.0 * machine.l3_bytes))  # the Lab goes round inputs beyond the L3
    rate = bandwidth(machine, rotated, stream=True)
    memory, compute = total / rate * 1e9, work / machine.fma_gflops
    limit = max(memory, compute)
    return Roofline(
        bytes=total,
        flops=work,
        bandwidth_gbps=rate / 1e9,
        peak_gflops=machine.fma_gflops,
        limit_ns=limit,
        bound="memory" if memory >= compute else "compute",
        fraction=limit / median_ns,
    )


def _steps(program: Program) -> tuple[ProgramStep, ...]:
    found = []
    for step in program.steps:
        if isinstance(step, Nest):
            origins = " ".join(op.origin for stage in step.stages for op in stage.ops if op.origin)
            work = ", ".join(dict.fromkeys(origins.split()))
            tiles = ", ".join(f"{loop.axis} by {min(loop.step, loop.extent)} of {loop.extent}" for loop in step.loops)
            found.append(ProgramStep(step.name, True, work or "data movement", tiles))
        else:
            found.append(ProgramStep(step.call.target, False, step.origin or step.call.target, step.reason))
    return tuple(found)
