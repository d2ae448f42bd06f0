"""Replay: changed files, and each verdict of a new measurement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import packaged
import pytest

from kernelwright.records import Interval, Machine, Measurement, Origin
from kernelwright.replay import ReplayVerdict, replay
from kernelwright.result.certificate import FILE, Certificate, read_certificate
from kernelwright.verify import read_candidate

HOLDS, FAILS, UNKNOWN = ReplayVerdict.HOLDS, ReplayVerdict.DOES_NOT_HOLD, ReplayVerdict.CANNOT_TELL


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packaged.write_affine(tmp_path_factory.mktemp("replay") / "affine").path


def measured(low: float, high: float, noise: float = 0.02, threads: int = 2) -> Measurement:
    interval = Interval((low + high) / 2, low, high)
    speedup = {**packaged.MEASUREMENT.speedup, "compile": interval}
    return replace(packaged.MEASUREMENT, speedup=speedup, noise_floor=noise, threads=threads)


@pytest.mark.parametrize(
    ("measurement", "machine", "verdict", "reason"),
    [
        (measured(1.5, 1.7), packaged.MACHINE, HOLDS, "measured 1.50x to 1.70x"),
        (measured(1.9, 2.1), packaged.MACHINE, HOLDS, "measured 1.90x"),
        (measured(1.3, 1.4), packaged.MACHINE, HOLDS, "measured 1.30x"),  # sessions differ by some 10%
        (measured(1.1, 1.2), packaged.MACHINE, FAILS, "at most 1.20x, where at least 1.50x was claimed"),
        (measured(0.9, 0.95), packaged.MACHINE, FAILS, "at most 0.95x"),
        (measured(1.01, 1.6), packaged.MACHINE, UNKNOWN, "within the noise"),
        (measured(1.5, 1.7, noise=0.4), packaged.MACHINE, UNKNOWN, "too busy"),
        (measured(0.9, 0.95), replace(packaged.MACHINE, cpu="Zen 5"), UNKNOWN, "claimed for something else"),
        (measured(0.9, 0.95, threads=8), packaged.MACHINE, UNKNOWN, "claimed for something else"),
        (measured(1.5, 1.7), replace(packaged.MACHINE, cpu="Zen 5"), HOLDS, "measured 1.50x"),
        (replace(packaged.MEASUREMENT, speedup={}, unavailable={"compile": "no g++"}), packaged.MACHINE, UNKNOWN, "no g++"),
    ],
)
def test_verdicts(folder: Path, measurement: Measurement, machine: Machine, verdict: ReplayVerdict, reason: str) -> None:
    outcome = replay(folder / FILE, lambda certificate, at: (measurement, machine))
    assert outcome.verdict is verdict
    assert reason in outcome.reasons[0]
    assert outcome.claimed == packaged.MEASUREMENT.speedup["compile"]
    assert outcome.measured == measurement.speedup.get("compile")


def test_the_candidate_of_a_folder_is_the_one_of_its_certificate(folder: Path) -> None:
    candidate = read_candidate(folder)
    assert candidate.digest == read_certificate(folder).candidate
    assert candidate.origin is Origin.FOREIGN  # anyone may have edited the folder


def test_changed_files_are_not_measured(tmp_path: Path) -> None:
    folder = packaged.write_affine(tmp_path / "affine").path
    (folder / "kernel.cpp").write_text("// faster\n")

    def measure(certificate: Certificate, at: Path) -> tuple[Measurement, Machine]:
        raise AssertionError("must not be measured")

    outcome = replay(folder, measure)
    assert outcome.verdict is FAILS
    assert outcome.measured is None
    assert outcome.reasons == ("kernel.cpp is not the file that was measured",)
