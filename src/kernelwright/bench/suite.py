"""A suite of tasks: the index `suite.toml` of a folder and the task files that it names.

What it does: reads and checks the index. What it does not do: load a task (see `task.load`). Called by `bench.run`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from kernelwright.errors import UserError

LEVELS = ("op", "block", "net")


@dataclass(frozen=True)
class SuiteTask:
    """One task of a suite. `name` is its path below the suite's folder without .py."""

    name: str
    family: str
    level: str
    path: Path


@dataclass(frozen=True)
class Suite:
    """A named list of tasks."""

    name: str
    tasks: tuple[SuiteTask, ...]


def read_suite(folder: Path) -> Suite:
    """The suite in `folder`. Raises UserError where the index is missing, wrong, or names files that are not there."""
    index = folder / "suite.toml"
    try:
        data = tomllib.loads(index.read_text())
    except FileNotFoundError:
        raise UserError(f"{folder} is not a suite: it has no suite.toml", "give a folder such as suites/core") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{index}: {error}") from None
    tasks = []
    for entry in data.get("task", ()):
        missing = {"name", "family", "level"} - set(entry)
        if missing:
            raise UserError(f"{index}: a task lacks {', '.join(sorted(missing))}")
        path = folder / f"{entry['name']}.py"
        if not path.is_file():
            raise UserError(f"{index} names {path}, which is not there")
        if entry["level"] not in LEVELS:
            raise UserError(f"{index}: {entry['name']} has level {entry['level']}", f"levels: {', '.join(LEVELS)}")
        tasks.append(SuiteTask(entry["name"], entry["family"], entry["level"], path))
    if not tasks:
        raise UserError(f"{index} names no task")
    return Suite(str(data.get("name", folder.name)), tuple(tasks))
