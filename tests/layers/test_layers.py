"""The rules of docs/architecture.md that the imports show: layers point down, and each effect has one place.

The order of the layers is read from that page, so that the page and the code can't drift apart.
"""

from __future__ import annotations

import ast
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "kernelwright"
MODULES = sorted(PACKAGE.rglob("*.py"))
PAGE = ROOT / "docs" / "architecture.md"

# Loaded where Kernelwright is absent: each reads the little that it needs for itself.
SELF_CONTAINED = {"runtime/runner.py", "result/dropin.py"}
STARTS_PROCESSES = {"sandbox", "targets", *SELF_CONTAINED}
READS_ENVIRONMENT = {"settings.py", *SELF_CONTAINED}
MAKES_CHILD_ENVIRONMENT = {"sandbox/zygote_main.py"}  # looks at what the sandbox set for it, none of the user's variables
PROGRAMS = {"targets/trial.py"}  # run as a process of its own, whose answer is its output
HEAVY = ("torch", "numpy", "rich", "msgspec", "sqlite3", "matplotlib", "jinja2")
HELP_CPU_SECONDS = 0.3


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def unit(path: Path) -> str:
    """The package or module directly below kernelwright."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def layers() -> list[list[str]]:
    """The groups of the page's sentence, lowest first."""
    sentence = re.search(r"^Layers, .*?\.$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert sentence is not None, f"{PAGE} has no sentence that begins with 'Layers, '"
    return [[name.strip() for name in group.split(",")] for group in re.findall(r"`([^`]+)`", sentence.group())]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of each import, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            if base == "kernelwright":
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, base


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_layers_point_down(path: Path) -> None:
    rank = {name: number for number, group in enumerate(layers()) for name in group}
    own = unit(path)
    if own in ("__init__", "__main__"):
        own = "cli" if own == "__main__" else "errors"
    assert own in rank, f"docs/architecture.md puts {own} in no layer"
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] != "kernelwright" or len(parts) < 2 or parts[1] == "__version__":
            continue
        assert rank[parts[1]] <= rank[own], f"{relative(path)}:{line}: {own} imports {name}, which is in a higher layer"


def test_layers_name_only_what_exists() -> None:
    there = {unit(path) for path in MODULES} - {"__init__", "__main__"}
    assert {name for group in layers() for name in group} == there


def test_units_of_one_layer_import_each_other_in_one_direction() -> None:
    pairs = {
        (unit(path), name.split(".")[1])
        for path in MODULES
        for _, name in imports(path)
        if name.startswith("kernelwright.") and name.split(".")[1] not in (unit(path), "__version__")
    }
    assert not [pair for pair in pairs if pair[::-1] in pairs]


@pytest.mark.parametrize(
    ("module", "places"), [("sqlite3", {"archive"}), ("subprocess", STARTS_PROCESSES), ("click", {"cli"}), ("rich", {"cli"})]
)
def test_an_import_has_its_place(module: str, places: set[str]) -> None:
    found = {
        relative(path)
        for path in MODULES
        for _, name in imports(path)
        if name.split(".")[0] == module and not {unit(path), relative(path)} & places
    }
    assert not found, f"{module} belongs into {', '.join(sorted(places))}"


def test_only_settings_reads_the_environment() -> None:
    allowed = READS_ENVIRONMENT | MAKES_CHILD_ENVIRONMENT
    found = [f"{p}:{n.lineno}" for p, n in uses({"environ", "environb", "getenv"}) if p not in allowed]
    assert not found, "only settings reads the environment"


def test_a_worker_reads_none_of_the_users_variables() -> None:
    for place in MAKES_CHILD_ENVIRONMENT:
        text = (PACKAGE / place).read_text()
        assert "KERNELWRIGHT_" not in text, place


def test_only_the_command_line_prints() -> None:
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in MODULES
        if unit(path) != "cli" and relative(path) not in PROGRAMS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    found += [f"{p}:{n.lineno}" for p, n in uses({"echo", "secho"}) if not p.startswith("cli/")]
    assert not found, "only cli prints"


def uses(attributes: set[str]) -> Iterator[tuple[str, ast.Attribute]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in attributes:
                yield relative(path), node


@pytest.mark.parametrize("module", ["kernelwright", "kernelwright.cli", "kernelwright.cli.main"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    loaded = loaded_by(f"import {module}")
    assert not loaded & set(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    assert not loaded_by("from kernelwright.cli import main; main(['--help'], standalone_mode=False)") & set(HEAVY)
    assert not loaded_by("from kernelwright.cli import main; main(['optimize', '--help'], standalone_mode=False)") & set(HEAVY)


def test_importing_the_optimizer_loads_no_torch() -> None:
    """torch lives in the workers: the parent process needs numpy alone."""
    assert "torch" not in loaded_by("import kernelwright.optimize, kernelwright.verify, kernelwright.lab.lab")


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nsys.stderr.write('\\n' + ' '.join(m for m in sys.modules if '.' not in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.rpartition("\n")[2].split())


def test_help_answers_at_once() -> None:
    """CPU seconds of the process, user and system: what it takes on an idle machine. The least of three."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-m", "kernelwright", "--help"], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert "optimize" in done.stdout
    assert min(seconds) < HELP_CPU_SECONDS


def test_starting_needs_no_home(tmp_path: Path) -> None:
    """--help must not touch the cache folder, nor need one."""
    environment = {k: v for k, v in os.environ.items() if k != "HOME"} | {"KERNELWRIGHT_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-m", "kernelwright", "--help"], env=environment, capture_output=True, check=True)
    assert not (tmp_path / "home").exists()
