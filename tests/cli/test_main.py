"""The commands in this process: what they refuse, what they print of an empty archive, and durations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kernelwright.cli.main import _Seconds, main
from kernelwright.targets.fake import FakeTarget
from kernelwright.targets.machine import Measured, cpu_name, host_isa, keep_machine
from kernelwright.targets.toolchain import find_compiler


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("KERNELWRIGHT_THREADS", "2")
    return tmp_path


def kernelwright(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("2min", 120.0), ("1.5 m", 90.0), ("1H", 3600.0)])
def test_durations(text: str, seconds: float) -> None:
    assert _Seconds().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "s", "-3", "0", "nan", "inf", "1e9", "3 weeks"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter):
        _Seconds().convert(text, None, None)


def test_an_empty_archive() -> None:
    assert kernelwright("runs").output.startswith("No runs yet.")
    assert json.loads(kernelwright("runs", "--json").output) == []
    shown = kernelwright("show", "last")
    assert shown.exit_code == 2
    assert shown.output.startswith("error: the archive holds no runs")


def test_targets_shows_the_kept_limits(home: Path) -> None:
    compiler = find_compiler()
    machine = replace(FakeTarget().machine(), cpu=cpu_name(), isa=host_isa(), compiler=compiler.text())
    keep_machine(home, compiler, Measured(machine, busy=False))
    shown = kernelwright("targets")
    assert shown.exit_code == 0, shown.output
    assert "200 GFLOP/s, one core 100" in shown.output
    assert "isolation: " in shown.output
    said = json.loads(kernelwright("targets", "--json").output)
    assert said["cpu"]["machine"]["fma_gflops"] == 200.0
    assert {one["subject"] for one in said["cpu"]["capabilities"]} == {"avx512", "avx2", "portable"}


@pytest.mark.parametrize("content", [None, "", "{}", "[1"])
def test_replay_refuses_what_is_no_certificate(home: Path, content: str | None) -> None:
    path = home / "certificate.json"
    if content is not None:
        path.write_text(content)
    shown = kernelwright("replay", str(path))
    assert shown.exit_code == 2
    assert shown.output.startswith("error: ")
    assert "Traceback" not in shown.output


def test_a_missing_compiler_says_how_to_install_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    shown = kernelwright("targets")
    assert shown.exit_code == 2
    assert "no working C++ compiler" in shown.output
    assert "apt-get install g++" in shown.output
