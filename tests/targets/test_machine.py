"""What the machine tells and what is measured: plausible, reduced as stated, kept and found again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.errors import UserError
from kernelwright.records import Machine
from kernelwright.targets import machine as module
from kernelwright.targets.cpu import CpuTarget
from kernelwright.targets.machine import Measured, cache_bytes, host_isa, host_isas, keep_machine, parse_samples, stored_machine
from kernelwright.targets.toolchain import find_compiler


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[CpuTarget, Machine, Path]:
    folder = tmp_path_factory.mktemp("cache")
    patch = pytest.MonkeyPatch()
    patch.setattr(module, "PROBE_SECONDS", 0.5)
    target = CpuTarget(folder, threads=2)
    machine = target.machine()
    patch.undo()
    return target, machine, folder


def test_measured_limits_are_plausible(measured: tuple[CpuTarget, Machine, Path]) -> None:
    machine = measured[1]
    assert machine.isa == host_isa()
    assert machine.threads == 2
    assert 1 < machine.fma_gflops_core < 2000
    assert machine.fma_gflops_core * 0.5 < machine.fma_gflops < machine.fma_gflops_core * 3
    assert machine.fork_join_us > 0
    assert machine.l1_bytes <= machine.l2_bytes <= machine.l3_bytes
    sizes = [b.bytes for b in machine.bandwidth]
    assert sizes == sorted(set(sizes))
    assert len(sizes) >= 3
    for row in machine.bandwidth:
        assert min(row.copy_gbps, row.stream_gbps, row.read_gbps) > 0.1


def test_measured_once(measured: tuple[CpuTarget, Machine, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    target, machine, folder = measured
    keep_machine(folder, target.compiler, Measured(machine, busy=False))
    monkeypatch.setattr("kernelwright.targets.cpu.measure", lambda *_: pytest.fail("measured again"))
    assert target.machine() == machine
    assert CpuTarget(folder, threads=2).machine() == machine
    with pytest.raises(pytest.fail.Exception):
        target.machine(again=True)
    with pytest.raises(pytest.fail.Exception):
        CpuTarget(folder, threads=1).machine()


def test_kept_by_compiler_and_threads(measured: tuple[CpuTarget, Machine, Path], tmp_path: Path) -> None:
    machine, compiler = measured[1], find_compiler()
    keep_machine(tmp_path, compiler, Measured(machine, busy=False))
    assert stored_machine(tmp_path, compiler, 2) == machine
    assert stored_machine(tmp_path, compiler, 3) is None
    assert stored_machine(tmp_path, replace(compiler, version="another"), 2) is None


def test_a_disturbed_measurement_serves_only_while_the_machine_is_busy(
    measured: tuple[CpuTarget, Machine, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, compiler = measured[1], find_compiler()
    keep_machine(tmp_path, compiler, Measured(machine, busy=True))
    monkeypatch.setattr("os.getloadavg", lambda: (64.0, 0.0, 0.0))
    assert stored_machine(tmp_path, compiler, 2) == machine
    monkeypatch.setattr("os.getloadavg", lambda: (0.1, 0.0, 0.0))
    assert stored_machine(tmp_path, compiler, 2) is None
    better = replace(machine, fma_gflops=machine.fma_gflops * 2)
    keep_machine(tmp_path, compiler, Measured(better, busy=False))
    monkeypatch.setattr("os.getloadavg", lambda: (64.0, 0.0, 0.0))
    assert stored_machine(tmp_path, compiler, 2) == better


def test_a_spoilt_file_is_measured_again(measured: tuple[CpuTarget, Machine, Path], tmp_path: Path) -> None:
    compiler = find_compiler()
    path = keep_machine(tmp_path, compiler, Measured(measured[1], busy=False))
    path.write_text(path.read_text()[:100])
    assert stored_machine(tmp_path, compiler, 2) is None


def test_samples_are_parsed() -> None:
    samples = parse_samples("fma_core 80.5\nfma_core 81\nbandwidth 1024 1 2 3\nbandwidth 1024 4 5 6\n")
    assert samples.rates == {"fma_core": [80.5, 81.0]}
    assert samples.bandwidth == {1024: [(1, 2, 3), (4, 5, 6)]}


def test_a_probe_that_does_not_compile_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "probe.cpp"
    broken.write_text("int main() { return nothing; }\n")
    monkeypatch.setattr(module, "PROBE", broken)
    with pytest.raises(UserError, match=r"probe of this machine does not compile: .*nothing"):
        module.measure(find_compiler(), 1)


def test_a_probe_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = tmp_path / "probe.cpp"
    failing.write_text("int main() { return 7; }\n")
    monkeypatch.setattr(module, "PROBE", failing)
    with pytest.raises(UserError, match="exit code 7"):
        module.measure(find_compiler(), 1)


def test_instruction_sets_are_nested() -> None:
    assert host_isas()[0] == host_isa()
    assert host_isas()[-1] == "portable"


def test_cache_sizes() -> None:
    sizes = cache_bytes()
    assert 8 << 10 <= sizes["L1"] <= sizes["L2"] <= sizes["L3"]
