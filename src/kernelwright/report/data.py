"""What a report shows: records and plain numbers, nothing that must be computed with torch.

What it does: the frozen input of `report.render`. What it does not do: format. Made by optimize; tests make it by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.result.certificate import Certificate


@dataclass(frozen=True)
class ProgramStep:
    """One step of the program. `share` is its part of the kernel's time, None where it was not measured.

    `work` names the ATen operators it came from; `detail` is the schedule in a line, or why it stayed a library call.
    """

    name: str
    generated: bool
    work: str
    detail: str = ""
    share: float | None = None


@dataclass(frozen=True)
class ProgressPoint:
    """One evaluation of the search, in order. `median_ns` is the screening time of a correct candidate, else None."""

    median_ns: float | None
    verdict: str
    note: str = ""
    known: bool = False  # found in the archive, not measured again


@dataclass(frozen=True)
class ReportData:
    """All that one report shows. `import_line` is how the result is used; `notices` are a run's visible lines."""

    certificate: Certificate
    source: str  # kernel.cpp
    steps: tuple[ProgramStep, ...]
    progress: tuple[ProgressPoint, ...]
    search_seconds: float
    baseline_screen_ns: float | None  # eager under the search's own clock, for the progress picture
    import_line: str
    notices: tuple[str, ...] = ()
    search_end: str = ""  # why the search ended, e.g. "budget spent"
