"""What a person sees: lines and tables, without a terminal."""

from __future__ import annotations

import contextlib
import signal

import pytest
from rich.console import Console

from kernelwright.cli.display import Progress, milliseconds, table
from kernelwright.cli.outcome import measurement_table
from kernelwright.events import BaselineTimed, Evaluated, Notice, PhaseStarted
from kernelwright.interrupt import Interruption
from kernelwright.records import Interval, Measurement, Sample


def evaluated(number: int, best_ns: float | None) -> Evaluated:
    return Evaluated("c" * 16, "correct", best_ns, best_ns, number, number, 10.0 - number, None, "", False)


@pytest.mark.parametrize(
    ("ns", "text"),
    [(1.0, "0.001 us"), (12_345.0, "12.3 us"), (999_400.0, "999 us"), (1_234_567.0, "1.23 ms"), (123_456_789.0, "123 ms"),
     (2.5e9, "2.5 s")],
)  # fmt: skip
def test_three_digits(ns: float, text: str) -> None:
    assert milliseconds(ns) == text


def test_progress_says_the_best_so_far_against_eager(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("title", quiet=False) as progress:
        for event in (
            PhaseStarted("baseline", "eager, compile"),
            BaselineTimed("eager", 4e6),
            PhaseStarted("search", "10 s"),
            evaluated(1, None),
            evaluated(2, 2e6),
            evaluated(3, 2e6),
            evaluated(4, 1e6),
            Notice("search: [budget] spent"),
        ):
            progress.show(event)
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line.partition(" s  ")[2].strip() for line in err.splitlines()]
    assert lines == [
        "baseline  PyTorch eager, torch.compile",
        "PyTorch eager takes 4 ms",
        "search    10 s",
        "2 tried, best so far 2 ms, 2.00x eager",
        "4 tried, best so far 1 ms, 4.00x eager",
        "note      search: [budget] spent",
    ]


def test_quiet_progress_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("title", quiet=True) as progress:
        progress.show(PhaseStarted("search"))
        progress.show(evaluated(1, 1e6))
    assert capsys.readouterr() == ("", "")


def printed(what: object, width: int = 110) -> list[str]:
    console = Console(width=width, record=True, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(what)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_closing_table_is_one_row_a_contestant() -> None:
    speed = Interval(3.4, 3.3, 3.5)
    names = ("c" * 16, "eager", "eager_default_allocator", "compile", "again")
    measured = Measurement(
        contestants=names, samples=(Sample(0, (1e6, 3.4e6, 6e6, 2e6, 1e6)),),
        median_ns=dict(zip(names, (1e6, 3.4e6, 6e6, 2e6, 1e6), strict=True)),
        speedup={"eager": speed, "eager_default_allocator": speed, "compile": speed},
        noise_floor=0.012, threads=2, allocator="warm", load_before=0.1,
        unavailable={"compile_max_autotune": "it raised an error whose text is very long " * 5},
    )  # fmt: skip
    lines = printed(measurement_table(measured), 80)
    assert len(lines) == 6
    assert lines[-1].split()[:3] == ["Kernelwright", "1", "ms"]
    assert "3.40x  [3.30, 3.50]" in lines[1]


def test_prose_stands_left_and_numbers_right() -> None:
    rows = [("a", "1"), ("bb", "22")]
    assert printed(table("", ("name", "n"), rows)) == ["name   n", "a      1", "bb    22"]
    assert printed(table("", ("name", "n"), rows, prose=True)) == ["name  n", "a     1", "bb    22"]


def test_the_first_interrupt_asks_and_the_second_ends() -> None:
    stopped: list[int] = []
    with Interruption(lambda: stopped.append(1)) as interruption:
        assert not interruption.asked
        signal.raise_signal(signal.SIGINT)
        assert interruption.asked
    assert stopped == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        twice()


def twice() -> None:
    with Interruption(lambda: None):
        signal.raise_signal(signal.SIGINT)
        with contextlib.suppress(KeyboardInterrupt):  # as the search does
            signal.raise_signal(signal.SIGINT)
