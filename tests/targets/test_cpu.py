"""The cpu target with the compilers of this machine: builds, refusals, first errors, the cache, what it proves."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.errors import UserError
from kernelwright.records import Candidate, Evidence, EvidenceKind, Manifest, Origin, Status
from kernelwright.sandbox.isolation import Strength, detect
from kernelwright.targets.base import Compiled, Target
from kernelwright.targets.cpu import CpuTarget
from kernelwright.targets.machine import host_isa, host_isas
from kernelwright.targets.toolchain import Compiler, find_compiler, first_error

EMPTY = Manifest((), (), (), (), (), (), (), "", (), 0, 0, 0)
SOURCE = 'extern "C" void kw_run_0(void* const*, char*, char*, const void*) {}\n'


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> CpuTarget:
    return CpuTarget(tmp_path_factory.mktemp("cache"), threads=1)


def candidate(source: str = SOURCE, *flags: str) -> Candidate:
    return Candidate(target="cpu", source=source, manifest=EMPTY, flags=flags)


def test_it_is_a_target(target: CpuTarget) -> None:
    as_target: Target = target
    assert as_target.name == "cpu"


def test_compiles_once(target: CpuTarget, tmp_path: Path) -> None:
    first = target.compile(candidate(), tmp_path)
    assert isinstance(first, Compiled)
    assert first.isa == host_isa()
    assert first.evidence.status is Status.PASS
    assert first.evidence.command.startswith(target.compiler.path)
    assert str(tmp_path) not in first.evidence.command
    built = first.so_path.stat().st_mtime_ns
    again = target.compile(candidate(), tmp_path)
    assert isinstance(again, Compiled)
    assert again.so_path == first.so_path
    assert again.so_path.stat().st_mtime_ns == built
    assert [p.name for p in tmp_path.iterdir()] == [first.so_path.name]


def test_an_object_is_named_after_all_that_makes_it(target: CpuTarget, tmp_path: Path) -> None:
    made = [
        target.compile(candidate(), tmp_path),
        target.compile(candidate(), tmp_path, isa="portable"),
        target.compile(candidate(SOURCE, "-O1"), tmp_path),
        target.compile(candidate(SOURCE + "\n"), tmp_path),
    ]
    assert len({one.so_path for one in made if isinstance(one, Compiled)}) == len(made)


@pytest.mark.parametrize("isa", ["avx512", "avx2", "portable"])
def test_the_source_sees_its_instruction_set(target: CpuTarget, tmp_path: Path, isa: str) -> None:
    guard = f"#ifndef KW_ISA_{isa.upper()}\n#error not {isa}\n#endif\n"
    assert isinstance(target.compile(candidate(guard + SOURCE), tmp_path, isa=isa), Compiled)


def test_first_error_with_its_line(target: CpuTarget, tmp_path: Path) -> None:
    source = f"{SOURCE}int f() {{\n  return nowhere + 1;\n}}\nint g() {{ return also_nowhere; }}\n"
    failed = target.compile(candidate(source), tmp_path)
    assert isinstance(failed, Evidence)
    assert (failed.kind, failed.status) == (EvidenceKind.COMPILED, Status.FAIL)
    assert failed.summary.startswith("kernel.cpp:3:")
    assert "nowhere" in failed.summary
    assert "return nowhere + 1;" in failed.log.splitlines()[1]
    assert str(tmp_path) not in failed.log
    assert not list(tmp_path.iterdir())


def test_a_symbol_that_nobody_defines_is_found_when_loaded_not_here(target: CpuTarget, tmp_path: Path) -> None:
    """The runner resolves against the process it loads into: a shared object may have open symbols."""
    assert isinstance(target.compile(candidate("void other(); void f() { other(); }"), tmp_path), Compiled)


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=/tmp/x.so",
        "-wrapper",
        "-specs=x",
        "-o",
        "@file",
        "-ffast-math",
        "-Ofast",
        "-include",
        "-I/etc",
        "-Wl,-z",
        "x.cpp",
    ],
)
def test_flags_that_a_candidate_may_not_set(target: CpuTarget, tmp_path: Path, flag: str) -> None:
    refused = target.compile(candidate(SOURCE, flag), tmp_path)
    assert isinstance(refused, Evidence)
    assert refused.status is Status.UNSUPPORTED
    assert flag in refused.summary


@pytest.mark.parametrize("flag", ["-O2", "-fno-unroll-loops", "-mprefer-vector-width=256", "-DKW_TILE=8", "-fno-builtin"])
def test_flags_that_a_candidate_may_set(target: CpuTarget, tmp_path: Path, flag: str) -> None:
    assert isinstance(target.compile(candidate(SOURCE, flag), tmp_path), Compiled)


def test_what_is_not_ours_to_build(target: CpuTarget, tmp_path: Path) -> None:
    for refused in (
        target.compile(Candidate("cuda", SOURCE, EMPTY), tmp_path),
        target.compile(Candidate("cpu", "class ModelNew: ...", None), tmp_path),
        target.compile(candidate(), tmp_path, isa="sve"),
    ):
        assert isinstance(refused, Evidence)
        assert refused.status is Status.UNSUPPORTED


def test_a_compiler_that_never_ends_is_stopped(tmp_path: Path) -> None:
    script(tmp_path / "g++", "sleep 60")
    stuck = CpuTarget(tmp_path, 1, compile_seconds=0.5)
    stuck.__dict__["compiler"] = Compiler(str(tmp_path / "g++"), "g++", 12, "g++ (Test) 12.0.0")
    stopped = stuck.compile(candidate(), tmp_path / "objects")
    assert isinstance(stopped, Evidence)
    assert stopped.status is Status.TIMEOUT


@pytest.mark.skipif(detect().strength is not Strength.BUBBLEWRAP, reason="needs bubblewrap")
@pytest.mark.parametrize("line", ['#include "{}"', 'asm(".incbin \\"{}\\"");'])
def test_a_foreign_source_reads_no_files(target: CpuTarget, tmp_path: Path, line: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("int secret;\n")
    ours = candidate(SOURCE + line.format(secret) + "\n")
    assert isinstance(target.compile(ours, tmp_path / "ours"), Compiled)
    refused = target.compile(replace(ours, origin=Origin.FOREIGN), tmp_path / "foreign")
    assert isinstance(refused, Evidence)
    assert refused.status is Status.FAIL
    assert "secret" in refused.summary
    honest = target.compile(replace(candidate(), origin=Origin.FOREIGN), tmp_path / "foreign")
    assert isinstance(honest, Compiled)
    assert honest.evidence.command.startswith(target.compiler.path)


def test_many_at_once_make_one_object(target: CpuTarget, tmp_path: Path) -> None:
    made: list[Compiled | Evidence] = []
    threads = [threading.Thread(target=lambda: made.append(target.compile(candidate(), tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one.so_path for one in made if isinstance(one, Compiled)}) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_capabilities_are_seen_not_assumed(target: CpuTarget) -> None:
    seen = {(e.kind, e.subject): e.status for e in target.capabilities()}
    for isa in ("avx512", "avx2", "portable"):
        expected = Status.PASS if isa in host_isas() else Status.UNAVAILABLE
        assert seen[EvidenceKind.RAN, isa] is expected
        assert seen[EvidenceKind.COMPILED, isa] is Status.PASS


def test_a_compiler_that_accepts_everything_is_not_believed(tmp_path: Path) -> None:
    script(tmp_path / "g++", 'while [ "$1" != -o ]; do shift; done; : > "$2"')
    blind = CpuTarget(tmp_path, 1)
    blind.__dict__["compiler"] = Compiler(str(tmp_path / "g++"), "g++", 12, "blind")
    assert {e.status for e in blind.capabilities()} == {Status.UNAVAILABLE}


def test_no_compiler_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"apt-get install g\+\+"):
        find_compiler()


def test_a_broken_compiler_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_compiler()
    script(tmp_path / "g++", 'case "$1" in --version) echo "g++ (Broken) 99.0.0";; *) exit 1;; esac')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find_compiler() == real


def test_an_old_compiler_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "g++", 'echo "g++ (Old) 7.5.0"')
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="11 or newer"):
        find_compiler()


def test_the_compiler_asked_for_is_taken_or_refused() -> None:
    real = find_compiler()
    assert find_compiler(real.path).path == real.path
    with pytest.raises(UserError, match="was asked for but does not work"):
        find_compiler("no-such-compiler")


@pytest.mark.skipif(not shutil.which("clang++") and not shutil.which("clang++-19"), reason="needs clang++")
def test_clang_compiles_and_reports_alike(tmp_path: Path) -> None:
    target = CpuTarget(tmp_path, 1, shutil.which("clang++") or shutil.which("clang++-19"))
    assert target.compiler.family == "clang++"
    assert isinstance(target.compile(candidate(), tmp_path), Compiled)
    failed = target.compile(candidate("int f() { return nowhere; }"), tmp_path)
    assert isinstance(failed, Evidence)
    assert failed.summary.startswith("kernel.cpp:1:")


def test_first_error_skips_what_comes_before() -> None:
    output = "In file included from a.h:1:\nnote: something\nkernel.cpp:3:1: error: bad\n  3 | bad\n"
    assert first_error(output) == "kernel.cpp:3:1: error: bad\n  3 | bad"
    assert first_error("Killed\n") == "Killed"
    assert first_error("") == ""
    assert len(first_error("error: x" * 10_000)) == 4000


def script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n")
    path.chmod(0o755)
