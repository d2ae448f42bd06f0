"""The commands. Each parses, calls one function of the layers below, prints, and sets the exit code.

Exit codes: 0 done; 1 nothing better than the baseline (or the claim does not hold); 2 the user's mistake;
3 a part of the machinery failed (a sandbox that does not start); 130 ended by Ctrl-C.
Only click is imported at start; every command imports what it needs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kernelwright import __version__
from kernelwright.errors import KernelwrightError, UserError

INTERRUPTED = 130  # what a shell calls an end by SIGINT


class _Group(click.Group):
    """Turns a UserError into one clear line and exit code 2, and Ctrl-C into one line and 130, in every command."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except UserError as error:
            click.echo(f"{click.style('error:', fg='red', bold=True)} {error}", err=True)
            ctx.exit(2)
        except KernelwrightError as error:
            click.echo(f"{click.style('failed:', fg='red', bold=True)} {error}", err=True)
            ctx.exit(3)
        except BrokenPipeError:
            ctx.exit(1)
        except KeyboardInterrupt:
            click.echo("interrupted; what was evaluated is kept (optimize --resume goes on from there)", err=True)
            ctx.exit(INTERRUPTED)


class _Seconds(click.ParamType[float]):
    """A duration: 90, 90s, 2min, 1h."""

    name = "duration"
    _units = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}  # noqa: RUF012

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        text = str(value).strip().lower()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
        try:
            seconds = float(number) * self._units[text[len(number) :].strip() or "s"]
        except (KeyError, ValueError):
            self.fail(f"{value!r} is not a duration; write 90, 90s, 2min or 1h", param, ctx)
        if not 0.0 < seconds < 1e6:
            self.fail(f"{value!r} is not a sensible duration", param, ctx)
        return seconds


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="kernelwright")
def main() -> None:
    """Kernelwright writes kernels: a PyTorch reference in, a faster, verified, importable operator out.

    \b
    kernelwright optimize examples/softmax.py      search, verify, time; result folder + report
    kernelwright targets                           what this machine can compile, run and time
    kernelwright runs / show RUN                   what was tried before
    kernelwright replay RESULT/certificate.json    measure a claim again
    """


_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output, nothing else.")
_quiet = click.option("--quiet", "-q", is_flag=True, help="No progress; only the closing lines.")
_no_sandbox = click.option(
    "--no-sandbox", is_flag=True, help="Run foreign code without bubblewrap. Only for code that you trust."
)
_threads = click.option("--threads", type=click.IntRange(1), help="Threads for every contestant (default: all cores).")


@main.command()
@click.argument("spec", metavar="FILE.py[:NAME]")
@click.option("--input", "inputs", multiple=True, metavar="8x1024xf32", help="Shape and dtype of one input; repeat in order.")
@click.option("--target", default="cpu", show_default=True, help="The chip to write for.")
@click.option("--proposer", type=click.Choice(["search"]), default="search", show_default=True, help="Who proposes candidates.")
@click.option("--budget", type=_Seconds(), default=60.0, show_default="60s", help="Time to aim at for the whole run.")
@click.option("--evaluations", type=click.IntRange(1), help="At most so many candidates.")
@click.option("--seed", type=int, default=0, show_default=True, help="A fixed seed gives the same proposals.")
@click.option(
    "--time-limit", type=_Seconds(), default=60.0, show_default="60s", help="For loading the reference and running it twice."
)
@click.option("--train", is_flag=True, help="Keep the module in training mode (default: eval).")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder (default: kernelwright-results/NAME).")
@click.option("--resume", is_flag=True, help="Go on where this task's last run stopped; what was evaluated costs nothing.")
@click.option("--all-baselines/--eager-only", default=True, help="Also time torch.compile and its max-autotune (default).")
@_threads
@_no_sandbox
@_json
@_quiet
@click.pass_context
def optimize(  # noqa: PLR0917 - click passes one argument an option
    ctx: click.Context,
    spec: str,
    inputs: tuple[str, ...],
    target: str,
    proposer: str,
    budget: float,
    evaluations: int | None,
    seed: int,
    time_limit: float,
    train: bool,
    out: Path | None,
    resume: bool,
    all_baselines: bool,
    threads: int | None,
    no_sandbox: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a faster operator for the reference in FILE.py.

    FILE.py holds a class Model with get_inputs and get_init_inputs (KernelBench style); or name a class or a function after a
    colon. The file is never edited.
    """
    from kernelwright.cli.display import Progress
    from kernelwright.cli.outcome import show_outcome
    from kernelwright.optimize import Request
    from kernelwright.optimize import optimize as run

    request = Request(
        spec=spec, inputs=inputs, target=target, budget_seconds=budget, evaluations=evaluations, seed=seed, training=train,
        out=out, resume=resume, all_baselines=all_baselines, threads=threads, allow_no_sandbox=no_sandbox,
        reference_seconds=time_limit, argv=tuple(sys.argv[1:]),
    )  # fmt: skip
    with Progress(f"kernelwright optimize {spec}", quiet or as_json) as progress:
        outcome = run(request, progress.show)
    show_outcome(outcome, as_json, quiet)
    ctx.exit(0 if outcome.better else 1)


@main.command()
@click.argument("suite", type=click.Path(path_type=Path))
@click.option("--budget", type=_Seconds(), default=60.0, show_default="60s", help="Time a task.")
@click.option("--only", multiple=True, metavar="FAMILY_OR_TASK", help="Only these; repeat.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder (default: kernelwright-results/SUITE).")
@click.option("--again", is_flag=True, help="Run tasks that have a row already, too.")
@click.option("--all-baselines/--eager-only", default=True, help="Also time torch.compile and its max-autotune (default).")
@_threads
@_json
@_quiet
def bench(  # noqa: PLR0917 - click passes one argument an option
    suite: Path,
    budget: float,
    only: tuple[str, ...],
    out: Path | None,
    again: bool,
    all_baselines: bool,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Optimise every task of SUITE, one after the other: success rate, fast_p, geomean. Goes on where it was stopped."""
    from kernelwright.bench.run import BenchSettings
    from kernelwright.bench.run import bench as run
    from kernelwright.bench.statistics import format_result
    from kernelwright.cli.display import Progress
    from kernelwright.records import to_json

    folder = out or Path("kernelwright-results") / suite.resolve().name
    settings = BenchSettings(folder, budget, threads=threads, all_baselines=all_baselines, only=only, again=again)
    with Progress(f"kernelwright bench {suite}", quiet or as_json) as progress:
        result = run(suite, settings, progress.show)
    click.echo(to_json(result) if as_json else format_result(result))


@main.command()
@click.option("--measure", is_flag=True, help="Measure this machine again.")
@_threads
@_json
def targets(measure: bool, threads: int | None, as_json: bool) -> None:
    """Show what this machine can truly compile, run and time, and its measured limits."""
    from kernelwright.cli.targets import show_targets

    show_targets(measure, threads, as_json)


@main.command()
@_json
def runs(as_json: bool) -> None:
    """List the runs in the archive, newest first."""
    from kernelwright.cli.archive import show_runs

    show_runs(as_json)


@main.command()
@click.argument("run")
@_json
def show(run: str, as_json: bool) -> None:
    """Show one RUN: what was tried, what was found."""
    from kernelwright.cli.archive import show_run

    show_run(run, as_json)


@main.command()
@click.argument("certificate", type=click.Path(path_type=Path))
@_no_sandbox
@_json
@_quiet
@click.pass_context
def replay(ctx: click.Context, certificate: Path, no_sandbox: bool, as_json: bool, quiet: bool) -> None:
    """Measure a CERTIFICATE's claim again in fresh processes: does it hold?"""
    from kernelwright.cli.outcome import show_replay

    ctx.exit(show_replay(certificate, no_sandbox, as_json, quiet))
