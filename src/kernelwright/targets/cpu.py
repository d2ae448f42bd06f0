"""The `cpu` target: header-free C++ candidates, built by g++ or clang++ for the instruction sets of this machine.

What it does: builds candidates into shared objects that are cached by content, measures the machine's limits once, and says
what it can truly do, each ability seen on a kernel that works, one that computes wrong and one that does not compile.
Foreign sources are compiled in the sandbox.
What it does not do: load candidates into this process, check their results or time them (the Lab does, in a worker).
Called by lab, optimize (`machine`) and cli (`targets`).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kernelwright.records import Candidate, Evidence, EvidenceKind, Machine, Origin, Status
from kernelwright.sandbox.isolation import detect
from kernelwright.sandbox.process import Completed, run
from kernelwright.targets.base import Compiled
from kernelwright.targets.machine import host_isa, host_isas, keep_machine, measure, stored_machine
from kernelwright.targets.toolchain import FLAGS, ISA_FLAGS, Compiler, compile_file, confined, find_compiler, first_error

TRIAL_SOURCE = Path(__file__).with_name("trial_kernel.cpp")
TRIAL_PROGRAM = Path(__file__).with_name("trial.py")

# What a candidate may add to the build. Plug-ins, wrappers, spec files and files to read or write stay out, and so does
# fast-math: it changes results, and g++ before 13 then turns denormals off in whatever process loads the object.
_ALLOWED_FLAG = re.compile(
    r"-O[0-3]|-m(arch|tune|prefer-vector-width)=[\w.-]+|-m(no-)?[a-z0-9.-]+|-D[A-Za-z_]\w*(=[\w.]+)?"
    r"|-f(no-)?(unroll-loops|tree-vectorize|tree-slp-vectorize|vectorize|slp-vectorize|strict-aliasing|omit-frame-pointer|inline)"
    r"|-fp-contract=(fast|off)|-ffp-contract=(fast|off)|-fno-builtin|-fno-tree-loop-distribute-patterns"
)
_NOT_RUN = "says nothing about results or speed: it was not run"


class CpuTarget:
    """Owns the folder of kept limits and the choice of compiler. `threads`: how many the kernels may use.

    A compilation that takes longer than `compile_seconds` is stopped.
    """

    name = "cpu"

    def __init__(self, cache_folder: Path, threads: int, compiler: str | None = None, compile_seconds: float = 60.0) -> None:
        self._cache_folder = cache_folder
        self._threads = threads
        self._override = compiler
        self._compile_seconds = compile_seconds

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler that builds everything here; found at first use. Raises UserError where none works."""
        return find_compiler(self._override)

    def machine(self, again: bool = False) -> Machine:
        """The machine's limits: kept ones, or measured now (about 5 s) where there are none or `again` is asked for."""
        kept = None if again else stored_machine(self._cache_folder, self.compiler, self._threads)
        if kept is not None:
            return kept
        measured = measure(self.compiler, self._threads)
        keep_machine(self._cache_folder, self.compiler, measured)
        return measured.machine

    def compile(self, candidate: Candidate, folder: Path, isa: str | None = None) -> Compiled | Evidence:
        """The candidate as a shared object in `folder` for `isa` (default: this machine's widest)."""
        isa = isa or host_isa()
        refusal = _refusal(candidate, isa)
        if refusal is not None:
            return Evidence(EvidenceKind.COMPILED, Status.UNSUPPORTED, isa, refusal, tool=self.compiler.version)
        return self._build(candidate.source, candidate.flags, folder, isa, foreign=candidate.origin is Origin.FOREIGN)

    def capabilities(self) -> tuple[Evidence, ...]:
        """For each instruction set: does it compile, does what it compiled run here. Takes about half a second each."""
        with tempfile.TemporaryDirectory(prefix="kernelwright-") as folder:
            return tuple(one for isa in ISA_FLAGS for one in self._try(isa, Path(folder)))

    def _build(
        self, source: str, extra: tuple[str, ...], folder: Path, isa: str, *, foreign: bool = False
    ) -> Compiled | Evidence:
        """Compile `source` into `folder` under the name of its content; the object appears there whole or not at all."""
        compiler, flags = self.compiler, (*FLAGS, *ISA_FLAGS[isa], *extra)
        key = "\x00".join((source, isa, compiler.version, *flags))
        target = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.so"
        passed = Evidence(EvidenceKind.COMPILED, Status.PASS, isa, "compiled before", tool=compiler.version, uncovered=_NOT_RUN)
        if target.exists():
            return Compiled(target, isa, passed)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as partial:
            file, made = Path(partial) / "kernel.cpp", Path(partial) / "kernel.so"
            file.write_text(source)
            began = time.monotonic()
            inside = confined(detect(), compiler, Path(partial)) if foreign else ()
            done, command = compile_file(compiler, file, made, flags, seconds=self._compile_seconds, inside=inside)
            seconds = round(time.monotonic() - began, 4)
            command = command.replace(f"{partial}{os.sep}", "")
            evidence = replace(passed, summary=f"compiled in {seconds:.2f} s", command=command, seconds=seconds)
            if done.returncode != 0 or not made.exists():
                return _failure(evidence, done, file)
            os.replace(made, target)
        return Compiled(target, isa, evidence)

    def _try(self, isa: str, folder: Path) -> tuple[Evidence, ...]:
        source = TRIAL_SOURCE.read_text()
        good, wrong, broken = (self._build(source, (f"-DKW_TRIAL={number}",), folder, isa) for number in range(3))
        compiled = EvidenceKind.COMPILED
        if not (isinstance(good, Compiled) and isinstance(wrong, Compiled)):
            failed = good if isinstance(good, Evidence) else wrong
            log = failed.log if isinstance(failed, Evidence) else ""
            summary = "a kernel that is known to be good does not compile"
            return (Evidence(compiled, Status.UNAVAILABLE, isa, summary, tool=self.compiler.version, log=log),)
        if isinstance(broken, Compiled):
            summary = "a kernel with an error in it was accepted: the compiler is not believed"
            return (Evidence(compiled, Status.UNAVAILABLE, isa, summary, tool=self.compiler.version),)
        summary = f"compiles the good kernel, refuses the broken one ({self.compiler.family} {self.compiler.major})"
        seen = Evidence(compiled, Status.PASS, isa, summary, tool=self.compiler.version, log=broken.log, uncovered=_NOT_RUN)
        return seen, _run_trial(isa, good, wrong)


def _failure(evidence: Evidence, done: Completed, file: Path) -> Evidence:
    if done.timed_out:
        summary = f"the compiler was stopped after {evidence.seconds:.0f} s"
        return replace(evidence, status=Status.TIMEOUT, summary=summary, log=first_error(done.stderr, file))
    log = first_error(done.stderr, file) or f"the compiler ended with exit code {done.returncode} and said nothing"
    return replace(evidence, status=Status.FAIL, summary=log.partition("\n")[0], log=log)


def _refusal(candidate: Candidate, isa: str) -> str | None:
    if candidate.target != CpuTarget.name:
        return f"this candidate is for the target {candidate.target!r}"
    if candidate.manifest is None:
        return "this candidate has no native entry: there is nothing to compile"
    if isa not in ISA_FLAGS:
        return f"no instruction set {isa!r}: there are {', '.join(ISA_FLAGS)}"
    for flag in candidate.flags:
        if not _ALLOWED_FLAG.fullmatch(flag):
            return f"the build flag {flag!r} is not one that a candidate may set"
    return None


def _run_trial(isa: str, good: Compiled, wrong: Compiled) -> Evidence:
    """Run the good and the wrong kernel, each in its own process: only the good one may give the right numbers."""
    if isa not in host_isas():
        return Evidence(EvidenceKind.RAN, Status.UNAVAILABLE, isa, "this CPU does not have the instruction set")
    expected = [float(3 * i + 1) for i in range(64)]
    answers = [_trial_answer(kernel) for kernel in (good, wrong)]
    if answers[0] != expected:
        return Evidence(EvidenceKind.RAN, Status.FAIL, isa, "the good kernel gives wrong numbers or does not load")
    if answers[1] is None or answers[1] == expected:
        return Evidence(EvidenceKind.RAN, Status.UNAVAILABLE, isa, "the wrong kernel was not told from the good one")
    return Evidence(EvidenceKind.RAN, Status.PASS, isa, "runs the good kernel, and sees that the wrong one is wrong")


def _trial_answer(kernel: Compiled) -> list[float] | None:
    done = run([sys.executable, "-I", str(TRIAL_PROGRAM), str(kernel.so_path)], timeout=20)
    return [float(word) for word in done.stdout.split()] if done.returncode == 0 else None
