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

from kernelwright.events import Evaluated, Event, Notice, PhaseStarted


def milliseconds(ns: float) -> str:
    """A time for people, three significant digits: 12.3 us, 1.23 ms."""
    value, unit = (ns / 1e3, "us") if ns < 1e6 else (ns / 1e6, "ms") if ns < 1e9 else (ns / 1e9, "s")
    return f"{value:.3g} {unit}"


class Progress:
    """A context manager whose `show` takes each event of a run."""

    def __init__(self, title: str, seconds: float, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._title = title
        self._seconds = seconds
        self._phase = PhaseStarted("start")
        self._latest: Evaluated | None = None
        self._baseline_ns: float | None = None
        self._began = time.monotonic()
        live = self._console.is_terminal and not quiet
        self._live = Live(self, console=self._console, refresh_per_second=8, transient=True) if live else None

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, PhaseStarted):
            self._phase = event
            detail = f"  {event.detail}" if event.detail else ""
            self._say(f"[bold cyan]{event.name:<9}[/]{detail}")
        elif isinstance(event, Notice):
            self._say(f"[yellow]note[/]      {event.text}")
        else:
            better = self._latest is None or self._latest.best_ns != event.best_ns
            self._latest = event
            if better and event.best_ns is not None and self._live is None:
                self._say(f"          {event.evaluated:>4} tried, best {milliseconds(event.best_ns)}")

    def baseline(self, ns: float) -> None:
        """The eager time against which the best so far is shown."""
        self._baseline_ns = ns

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False)

    def __rich__(self) -> Group:
        spent = time.monotonic() - self._began
        head = Text.assemble((self._title, "bold"), "  ", (self._phase.name, "cyan"), f"  {spent:.0f} s")
        rows: list[Text | ProgressBar] = [head]
        latest = self._latest
        if latest is not None and self._phase.name == "search":
            rows.append(ProgressBar(total=self._seconds, completed=max(0.0, self._seconds - latest.seconds_left), width=60))
            rows.append(Text(self._status(latest)))
        return Group(*rows)

    def _status(self, latest: Evaluated) -> str:
        parts = [f"{latest.evaluated} tried", f"{latest.correct} correct"]
        if latest.best_ns is not None:
            best = f"best {milliseconds(latest.best_ns)}"
            if self._baseline_ns is not None:
                best += f" ({self._baseline_ns / latest.best_ns:.2f}x eager)"
            parts.append(best)
        parts.append(f"{latest.seconds_left:.0f} s left")
        if latest.evaluations_left is not None:
            parts.append(f"{latest.evaluations_left} evaluations left")
        return "  |  ".join(parts)


def table(title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], emphasise: int | None = None) -> Table:
    """A plain table; the row `emphasise` is bold."""
    grid = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for at, name in enumerate(columns):
        grid.add_column(name, justify="left" if at == 0 else "right")
    for at, row in enumerate(rows):
        grid.add_row(*row, style="bold green" if at == emphasise else None)
    return grid
