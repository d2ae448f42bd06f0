"""Report data made by hand: a run with two baselines, one that was not there, and a search of six candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kernelwright.records import (
    Case,
    CaseRole,
    CheckedCase,
    Evidence,
    EvidenceKind,
    Fill,
    Interval,
    Machine,
    Measurement,
    Precision,
    Sample,
    Status,
    Task,
)
from kernelwright.report.data import ProgramStep, ProgressPoint, ReportData
from kernelwright.result.certificate import Certificate, Roofline, Versions, claim_of

MACHINE = Machine("Zen 3", "avx2", 32, 2, 32768, 524288, 1 << 25, 150.0, 75.0, None, (), 1.0, "g++ 12", "2026-01-01")
MEASUREMENT = Measurement(
    ("0123456789abcdef", "eager", "compile", "again"),
    tuple(Sample(n, (1.1e6 + n, 2.1e6 + n, 1.8e6 - n, 1.1e6)) for n in range(20)),
    {"0123456789abcdef": 1.1e6, "eager": 2.2e6, "compile": 1.7e6, "again": 1.11e6},
    {"eager": Interval(2.0, 1.95, 2.05), "compile": Interval(1.6, 1.5, 1.7)},
    0.021, 2, "warm", 0.3, {"compile_max_autotune": "it took more than 120 s"},
)  # fmt: skip
STEPS = (
    ProgramStep("n_softmax", True, "aten._softmax", "i0 by 8 of 4096"),
    ProgramStep("aten.sort.default", False, "aten.sort", "no lowering"),
)
PROGRESS = tuple(ProgressPoint(ns, "correct" if ns else "not_compiled") for ns in (3.0e6, 2.0e6, None, 2.4e6, 1.2e6, 1.1e6))
SOURCE = '// a step\nextern "C" void kw_run_0(void* const* t) {\n    float x = 0x1p-3f + 1.5f; /* two\n lines */\n}\n'


def certificate(**changes: Any) -> Certificate:
    cases = (Case("nominal", CaseRole.TIME, Fill.REFERENCE, 1),)
    task = Task("softmax", "softmax.py", "Model", False, None, False, Precision.STRICT, cases, "abc")
    evidence = Evidence(EvidenceKind.COMPILED, Status.PASS, "avx2", "compiled in 0.1 s", "g++ 12", uncovered="that it is right")
    made = Certificate(
        1, "2026-01-01T00:00:00+00:00", "softmax-1", task, "0123456789abcdef", "tile.y.i = 4", claim_of(MEASUREMENT),
        Versions("0.1", "2.13.0", "3.11", "g++ 12", "Linux 6"), MACHINE, (MEASUREMENT,),
        (
            CheckedCase("nominal", "reference", 1, True, 1.25e-7, 2e-7, 4e-7),
            CheckedCase("indices", "integers", 2, True, None, None, None),
        ),
        (evidence,), Roofline(1 << 20, 1e6, 40.0, 150.0, 50.0, "memory", 0.5), None,
        "kernelwright replay certificate.json", {"kernel.cpp": "ff" * 32}, "ee" * 32,
    )  # fmt: skip
    return replace(made, **changes)


def report(**changes: Any) -> ReportData:
    made = ReportData(certificate(), SOURCE, STEPS, PROGRESS, 12.0, 2.3e6, "from module import Model", ("one notice",))
    return replace(made, **changes)
