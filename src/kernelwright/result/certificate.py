"""The certificate: everything a speed claim rests on, in one JSON file beside the result.

What it does: the frozen `Certificate` with its canonical digest, its writing and reading, and the check of the files it names.
What it does not do: measure (see `replay`). The digest finds damage and careless edits; it is not a signature: whoever may
write the file may also write a new digest. What can't be forged is that the replay measures the claim again.
Called by result.folder (writes), replay (reads), report and cli (show).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright.errors import UserError
from kernelwright.records import CheckedCase, Evidence, Interval, Machine, Measurement, Task, from_json, to_json

FORMAT = 1
FILE = "certificate.json"
NO_BASE = "eager_default_allocator"  # lab.protocol.Baseline.EAGER_DEFAULT: shown apart


@dataclass(frozen=True)
class Versions:
    """What it was measured with."""

    kernelwright: str
    torch: str
    python: str
    compiler: str
    system: str  # operating system and kernel


@dataclass(frozen=True)
class Roofline:
    """What the machine could do at best for this task, and how near the kernel comes.

    `bytes` counts each input, weight and output once; `flops` the arithmetic of the reference (2 a multiply-add).
    `limit_ns` = max(bytes / bandwidth, flops / peak); `bound` names the larger one.
    """

    bytes: int
    flops: float
    bandwidth_gbps: float  # of the measured size nearest to `bytes`
    peak_gflops: float
    limit_ns: float
    bound: str  # "memory" or "compute"
    fraction: float  # limit_ns / median_ns of the kernel


@dataclass(frozen=True)
class Claim:
    """The headline: candidate against the fastest of the baselines that could be measured, in `Measurement` number 0."""

    baseline: str
    speedup: Interval
    median_ns: float
    baseline_ns: float


@dataclass(frozen=True)
class Certificate:
    """What was claimed, on what grounds. `measurements[0]` is the one the claim is made of.

    `files` are SHA-256 of the result folder's files by name. `replay` is the command that measures the claim again.
    """

    format: int
    issued: str  # ISO 8601, UTC
    run: str
    task: Task
    candidate: str
    schedule: str
    claim: Claim
    versions: Versions
    machine: Machine
    measurements: tuple[Measurement, ...]
    cases: tuple[CheckedCase, ...]
    evidence: tuple[Evidence, ...]
    roofline: Roofline | None
    generated_share: float | None  # of the time, not spent in library calls; None where it was not measured
    replay: str
    files: dict[str, str]
    digest: str = ""


def bases(measurement: Measurement) -> tuple[str, ...]:
    """The baselines on which a claim may rest: all but eager under malloc's default (page faults are no kernel's merit)."""
    return tuple(name for name in measurement.speedup if name != NO_BASE)


def claim_of(measurement: Measurement) -> Claim:
    """The claim that a measurement allows: against the baseline with the least speed-up, never a friendlier one."""
    against = bases(measurement)
    if not against:
        raise ValueError("no baseline was measured")
    baseline = min(against, key=lambda name: measurement.speedup[name].estimate)
    ours = measurement.contestants[0]
    return Claim(baseline, measurement.speedup[baseline], measurement.median_ns[ours], measurement.median_ns[baseline])


def digest_of(certificate: Certificate) -> str:
    """SHA-256 over the canonical JSON of all but the digest itself."""
    return hashlib.sha256(to_json(replace(certificate, digest="")).encode()).hexdigest()


def seal(certificate: Certificate) -> Certificate:
    """The certificate with its digest."""
    return replace(certificate, digest=digest_of(certificate))


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_certificate(certificate: Certificate, path: Path) -> None:
    """Write a sealed certificate, indented for people."""
    path.write_text(to_json(certificate, indent=1) + "\n", encoding="utf-8")


def read_certificate(path: Path) -> Certificate:
    """The certificate in `path` (a file, or the result folder). Raises UserError where there is none or it can't be read."""
    import msgspec

    file = path / FILE if path.is_dir() else path
    try:
        text = file.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}", "give a result folder or its certificate.json") from error
    try:
        certificate = from_json(text, Certificate)
    except msgspec.DecodeError as error:  # ValidationError is one
        raise UserError(f"{file} is not a certificate of Kernelwright: {error}", "give a result's certificate.json") from error
    if certificate.format > FORMAT:
        raise UserError(f"{file} has format {certificate.format}, this Kernelwright knows {FORMAT}", "upgrade Kernelwright")
    return certificate


def verify_files(folder: Path) -> list[str]:
    """What is wrong with a result folder: an edited certificate, files that are missing or not those that were measured."""
    certificate = read_certificate(folder)
    problems = []
    if digest_of(certificate) != certificate.digest:
        problems.append(f"{FILE} was changed after it was issued: its digest does not fit its content")
    for name, expected in sorted(certificate.files.items()):
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            problems.append(f"{name} lies outside the result folder")
        elif not path.is_file():
            problems.append(f"{name} is missing")
        elif file_hash(path) != expected:
            problems.append(f"{name} is not the file that was measured")
    return problems
