"""Every file of tests/bad_inputs through the real command: a clear error and exit code 2, or all the way; never a traceback."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from command_runs import keep_given_machine, kernelwright

FOLDER = Path(__file__).parents[1] / "bad_inputs"
TABLES = (FOLDER / "README.md").read_text().partition("## Accepted")
ROW = re.compile(r"^\| (\w+\.py(?::\w+)?) \| (.+) \|$", re.MULTILINE)
REFUSED = dict(ROW.findall(TABLES[0]))
ACCEPTED = dict(ROW.findall(TABLES[2]))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    keep_given_machine(folder)
    return folder


def optimize(home: Path, spec: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The command, short, in `home`."""
    options = ("--budget", "8", "--eager-only", "--quiet", "--out", str(home / "out"))
    return kernelwright(home, "optimize", spec, *options, *more)


def test_every_file_stands_in_one_table() -> None:
    named = [name.partition(":")[0] for name in (*REFUSED, *ACCEPTED)]
    assert sorted(named) == sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(home: Path, name: str) -> None:
    more = ("--time-limit", "8") if name.startswith("hangs") else ()
    done = optimize(home, str(FOLDER / name), *more)
    lines = done.stderr.splitlines()
    assert done.returncode == 2, done.stderr
    assert lines[0].startswith("error: ")
    assert REFUSED[name] in done.stderr
    assert done.stderr.count("error:") == 1
    assert len(lines) <= 2  # what is wrong, what to do
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(home: Path, name: str) -> None:
    done = optimize(home, str(FOLDER / name))
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert "faster than" in done.stdout or "the baseline is kept" in done.stdout


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nowhere.py", "no such file: nowhere.py"),
        (".", "is a folder, not a Python file"),
        (f"{FOLDER / 'works_function.py'}:normalize", "did you mean"),
        (f"{FOLDER / 'works_function.py'}:not a name", "is not the name of a class or function"),
    ],
)
def test_refused_without_running(home: Path, spec: str, words: str) -> None:
    done = optimize(home, spec)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "options",
    [("--budget", "soon"), ("--budget", "0"), ("--evaluations", "0"), ("--threads", "0"), ("--proposer", "no"), ("--what",)],
)
def test_a_wrong_option_is_refused(home: Path, options: tuple[str, ...]) -> None:
    done = optimize(home, str(FOLDER / "works_function.py"), *options)
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_target_is_refused(home: Path) -> None:
    done = optimize(home, f"{FOLDER / 'works_function.py'}:normalise", "--target", "abacus")
    assert done.returncode == 2
    assert "there is no target called abacus" in done.stderr


def test_a_wrong_input_is_refused(home: Path) -> None:
    done = optimize(home, f"{FOLDER / 'works_function.py'}:normalise", "--input", "8x1024xf33")
    assert done.returncode == 2
    assert "has an unknown dtype" in done.stderr
