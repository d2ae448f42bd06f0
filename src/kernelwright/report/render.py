"""The report page from a run's data.

What it does: puts every number into words a reader understands at once, and fills report.html.jinja. All that comes from a task
(names, source, error texts) is escaped; the page loads nothing and runs no script.
What it does not do: measure or decide. Called by package; jinja2 and matplotlib are imported when a page is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelwright.records import CheckedCase, Interval, Measurement
from kernelwright.report.data import ProgramStep, ReportData
from kernelwright.report.figures import duration, progress_figure, roofline_figure
from kernelwright.report.highlight import highlight
from kernelwright.result.certificate import Certificate, Roofline

_HERE = Path(__file__).parent
_NAMES = {
    "eager": "PyTorch eager",
    "eager_default_allocator": "PyTorch eager, default allocator",
    "compile": "torch.compile",
    "compile_max_autotune": "torch.compile, max-autotune",
}


@dataclass(frozen=True)
class Headline:
    """The claim in the page's largest letters. `faster`: the interval lies above 1."""

    speedup: str
    faster: bool
    words: str
    baseline: str
    interval: str
    rounds: int


@dataclass(frozen=True)
class Fact:
    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One line of the table of times; `median` "" where it was not measured, then `unavailable` says why."""

    name: str
    ours: bool = False
    median: str = ""
    spread: str = ""
    speedup: str = ""
    interval: str = ""
    percent: float = 0.0
    unavailable: str = ""


@dataclass(frozen=True)
class Group:
    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class CaseRow:
    name: str
    inputs: str
    error: str
    reference: str
    budget: str
    passed: bool


def render(data: ReportData) -> str:
    """The page as one HTML text: styles and pictures inside, no script, no address to load from."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    template = environment.from_string((_HERE / "report.html.jinja").read_text(encoding="utf-8"))
    c = data.certificate
    roof = c.roofline
    share = None if c.generated_share is None else round(100 * c.generated_share)
    return template.render(
        c=c,
        css=Markup((_HERE / "report.css").read_text(encoding="utf-8")),
        headline=_headline(c),
        threads=_count(c.measurements[0].threads, "thread"),
        facts=_facts(c),
        notices=data.notices,
        floor=f"{c.measurements[0].noise_floor:.1%}",
        groups=tuple(_group(m) for m in c.measurements),
        search=_search_words(data),
        progress_svg=Markup(progress_figure(data.progress, data.baseline_screen_ns)),
        roofline=_roofline_words(roof) if roof is not None else "",
        roofline_svg=Markup(roofline_figure(roof, _times(c.measurements[0]))) if roof is not None else "",
        generated=_generated_words(data.steps, share),
        share=share if share is not None and any(not s.generated for s in data.steps) else None,
        steps=data.steps,
        shares=any(step.share is not None for step in data.steps),
        cases=tuple(_case(case) for case in c.cases),
        import_line=data.import_line,
        lines=tuple(Markup(line) for line in highlight(data.source)),
        particulars=_particulars(c),
    )


def _headline(c: Certificate) -> Headline:
    speedup = c.claim.speedup
    faster = speedup.low > 1
    return Headline(
        speedup=f"{_ratio(speedup.estimate)}×",
        faster=faster,
        words="as fast as" if faster else "as fast as, which is no win over",
        baseline=baseline_name(c.claim.baseline),
        interval=_interval(speedup),
        rounds=len(c.measurements[0].samples),
    )


def baseline_name(name: str) -> str:
    """A baseline's name for people."""
    return _NAMES.get(name, name.replace("_", " "))


def _facts(c: Certificate) -> tuple[Fact, ...]:
    facts = [
        Fact("Time a call", duration(c.claim.median_ns), f"{baseline_name(c.claim.baseline)}: {duration(c.claim.baseline_ns)}")
    ]
    if c.roofline is not None:
        rate = "memory traffic" if c.roofline.bound == "memory" else "arithmetic"
        facts.append(Fact("Of the hardware's limit", f"{c.roofline.fraction:.0%}", f"the limit here is {rate}"))
    errors = [case for case in c.cases if case.error is not None]
    worst = max(errors, key=lambda case: case.error or 0.0, default=None)
    if worst is not None:
        note = f"the reference's own: {_error(worst.reference_error)}" if worst.reference_error is not None else ""
        facts.append(Fact("Largest error", _error(worst.error), note))
    elif c.cases:
        facts.append(Fact("Error", "none", "equal bit by bit"))
    passed = sum(case.passed for case in c.cases)
    if c.cases:
        facts.append(Fact("Cases checked", f"{passed} of {len(c.cases)}", "against float64, with fresh inputs"))
    return tuple(facts)


def _group(measurement: Measurement) -> Group:
    """The kernel first, then the baselines, fastest first, then what could not be measured. Its twin is the noise floor."""
    ours = measurement.contestants[0]
    slowest = max(measurement.median_ns[name] for name in (ours, *measurement.speedup))
    others = sorted(measurement.speedup, key=lambda n: measurement.median_ns[n])
    rows = [_row(measurement, name, slowest) for name in (ours, *others)]
    rows += [Row(baseline_name(name), unavailable=why) for name, why in measurement.unavailable.items()]
    return Group(f"{_count(measurement.threads, 'thread')}, {measurement.allocator} allocator", tuple(rows))


def _times(measurement: Measurement) -> tuple[tuple[str, float], ...]:
    """Names for people and medians, the kernel first, without its twin."""
    ours = measurement.contestants[0]
    baselines = ((baseline_name(name), measurement.median_ns[name]) for name in measurement.speedup)
    return (("this kernel", measurement.median_ns[ours]), *baselines)


def _row(measurement: Measurement, name: str, slowest: float) -> Row:
    ours = name == measurement.contestants[0]
    index = measurement.contestants.index(name)
    times = sorted(sample.ns[index] for sample in measurement.samples)
    speedup = measurement.speedup.get(name)
    median = measurement.median_ns[name]
    return Row(
        name="this kernel" if ours else baseline_name(name),
        ours=ours,
        median=duration(median),
        spread=f"{duration(times[0])} to {duration(times[-1])}" if times else "",
        speedup=f"{_ratio(speedup.estimate)}×" if speedup is not None else "",
        interval=_interval(speedup) if speedup is not None else "",
        percent=round(100 * median / slowest, 1),
    )


def _search_words(data: ReportData) -> str:
    points = data.progress
    correct = [p for p in points if p.verdict == "correct"]
    words = f"{_count(len(points), 'candidate')} in {data.search_seconds:.0f} s, {len(correct)} of them correct"
    words += f"; it ended because: {data.search_end}" if data.search_end else ""
    known = sum(p.known for p in points)
    words += f"; {known} were known from earlier runs. " if known else ". "
    return words + "Each dot is one that was timed, each cross one that was refused; the line is the best so far."


def _roofline_words(roof: Roofline) -> str:
    how = (
        f"moves at least {roof.bytes / 1e6:.3g} MB, at {roof.bandwidth_gbps:.3g} GB/s"
        if roof.bound == "memory"
        else f"computes {roof.flops / 1e9:.3g} GFLOP, at {roof.peak_gflops:.3g} GFLOP/s"
    )
    return f"A call {how} (measured here): {duration(roof.limit_ns)} at best. The kernel reaches {roof.fraction:.0%} of that."


def _generated_words(steps: Sequence[ProgramStep], share: int | None) -> str:
    made = sum(step.generated for step in steps)
    calls = len(steps) - made
    if not calls:
        return f"All of it: {_count(made, 'generated step')} in one native entry, no library call."
    words = f"{_count(made, 'generated step')}, {_count(calls, 'library call')} between them in the same program"
    return words + (f"; {share}% of the time is in generated code." if share is not None else ".")


def _case(case: CheckedCase) -> CaseRow:
    fill = "the task's own" if case.fill == "reference" else case.fill
    inputs = f"{fill}, seed {case.seed}"
    if case.error is None:
        return CaseRow(case.case, inputs, "equal", "", "bit by bit", case.passed)
    errors = (_error(case.error), _error(case.reference_error), _error(case.budget))
    return CaseRow(case.case, inputs, *errors, case.passed)


def _particulars(c: Certificate) -> tuple[tuple[str, str], ...]:
    versions = c.versions
    return (
        ("Kernelwright", versions.kernelwright),
        ("PyTorch", versions.torch),
        ("Python", versions.python),
        ("compiler", versions.compiler),
        ("system", versions.system),
        ("task", c.task.digest),
        ("candidate", c.candidate),
        *((name, digest) for name, digest in sorted(c.files.items())),
        ("certificate", c.digest),
    )


def _interval(interval: Interval) -> str:
    return f"{_ratio(interval.low)}× to {_ratio(interval.high)}×"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _error(value: float | None) -> str:
    return "" if value is None else "0" if value == 0 else f"{value:.1e}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
