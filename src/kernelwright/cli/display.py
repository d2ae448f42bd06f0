"""What a person sees while a run goes on, and the closing table.

What it does: turns events into a live status (on a terminal) or plain lines (elsewhere). Progress goes to standard error,
results to standard output.
What it does not do: decide anything. Called by `cli.main`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kernelwright.events import BaselineTimed, Evaluated, Event, Notice, PhaseStarted

CONTESTANTS = {
    "eager": "PyTorch eager",
    "eager_default_allocator": "PyTorch eager, default malloc",
    "compile": "torch.compile",
    "compile_max_autotune": "torch.compile, max-autotune",
}
PIPED_WIDTH = 160  # of tables that no terminal bounds, so that a pipe sees a row as one line
BAR_WIDTH = 40


def results() -> Console:
    """Standard output for tables."""
    console = Console()
    return console if console.is_terminal else Console(width=PIPED_WIDTH)


def milliseconds(ns: float) -> str:
    """A time for people, three significant digits: 12.3 us, 1.23 ms."""
    value, unit = (ns / 1e3, "us") if ns < 1e6 else (ns / 1e6, "ms") if ns < 1e9 else (ns / 1e9, "s")
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


class Progress:
    """A context manager whose `show` takes each event of a run."""

    def __init__(self, title: str, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._title = title
        self._phase = PhaseStarted("start")
        self._latest: Evaluated | None = None
        self._best_ns: float | None = None
        self._baseline_ns: float | None = None
        self._began = time.monotonic()
        self._seconds_at_first: float | None = None  # of the search's budget: the length of its bar
        live = self._console.is_terminal and not quiet
        self._live = Live(self, console=self._console, refresh_per_second=8, transient=True) if live else None

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._console.print(Text(self._title, "bold"))
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, PhaseStarted):
            self._phase = event
            self._say(event.name, ", ".join(CONTESTANTS.get(word, word) for word in event.detail.split(", ")), "cyan")
        elif isinstance(event, Notice):
            self._say("note", event.text, "yellow")
        elif isinstance(event, BaselineTimed):
            self._baseline_ns = event.median_ns
            self._say("", f"{CONTESTANTS.get(event.baseline, event.baseline)} takes {milliseconds(event.median_ns)}")
        else:
            self._evaluated(event)

    def _evaluated(self, event: Evaluated) -> None:
        if self._seconds_at_first is None:
            self._seconds_at_first = max(event.seconds_left, 1.0)
        self._latest = event
        if event.best_ns is not None and event.best_ns != self._best_ns:
            self._best_ns = event.best_ns
            self._say("", f"{event.evaluated} tried, {self._best(event.best_ns)}")

    def _say(self, name: str, words: str, style: str = "") -> None:
        spent = f"{time.monotonic() - self._began:4.0f} s  "
        head = Text.assemble((spent, "dim"), (f"{name:<10}", style))
        line = Table.grid(expand=False)
        line.add_row(head, Text(words))  # what wraps stays under its own words
        self._console.print(line)

    def _best(self, ns: float) -> str:
        against = f", {self._baseline_ns / ns:.2f}x eager" if self._baseline_ns is not None else ""
        return f"best so far {milliseconds(ns)}{against}"

    def __rich__(self) -> Group:
        spent = time.monotonic() - self._began
        rows: list[Text | ProgressBar] = [Text.assemble((f"{spent:4.0f} s  ", "dim"), (self._phase.name, "bold cyan"), " ...")]
        latest = self._latest
        if latest is not None and self._phase.name == "search":
            whole = self._seconds_at_first or 1.0
            rows = [ProgressBar(total=whole, completed=max(0.0, whole - latest.seconds_left), width=BAR_WIDTH)]
            rows.append(Text(self._status(latest)))
            rows.append(Text("Ctrl-C ends the search and takes the best so far to the finals", "dim"))
        return Group(*rows)

    def _status(self, latest: Evaluated) -> str:
        parts = [f"{latest.evaluated} tried", f"{latest.correct} correct"]
        if latest.best_ns is not None:
            parts.append(self._best(latest.best_ns))
        parts.append(f"{latest.seconds_left:.0f} s left")
        if latest.evaluations_left is not None:
            parts.append(f"{latest.evaluations_left} evaluations left")
        return "  |  ".join(parts)


def table(
    title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], emphasise: int | None = None, prose: bool = False
) -> Table:
    """A plain table; the row `emphasise` is bold. Columns of numbers stand right, those of a table of `prose` left."""
    grid = Table(title=title or None, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for at, name in enumerate(columns):
        last = at == len(columns) - 1
        grid.add_column(name, justify="left" if at == 0 or prose else "right", no_wrap=not last, overflow="fold")
    for at, row in enumerate(rows):
        grid.add_row(*row, style="bold green" if at == emphasise else None)
    return grid
