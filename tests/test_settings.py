"""Settings: defaults, overrides, and values that cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import UserError
from kernelwright.settings import available_cpus, load


def test_defaults() -> None:
    settings = load({})
    assert settings.home == Path.home() / ".cache" / "kernelwright"
    assert settings.archive == settings.home / "archive.sqlite"
    assert settings.threads == available_cpus() >= 1
    assert settings.compiler is None
    assert not settings.no_color


def test_overrides() -> None:
    env = {"KERNELWRIGHT_HOME": "/h", "KERNELWRIGHT_THREADS": "3", "CXX": "clang++", "NO_COLOR": "1", "OMP_NUM_THREADS": "8,2"}
    settings = load(env)
    assert (settings.home, settings.threads, settings.compiler, settings.no_color) == (Path("/h"), 3, "clang++", True)
    assert load({**env, "KERNELWRIGHT_CXX": "g++"}).compiler == "g++"
    assert load({"OMP_NUM_THREADS": "8,2"}).threads == 8
    assert load({"KERNELWRIGHT_ARCHIVE": "~/a.sqlite"}).archive == Path.home() / "a.sqlite"
    assert load({"XDG_CACHE_HOME": "/x"}).home == Path("/x/kernelwright")


@pytest.mark.parametrize("text", ["0", "-1", "many", "99999"])
def test_threads_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(UserError, match="KERNELWRIGHT_THREADS"):
        load({"KERNELWRIGHT_THREADS": text})
