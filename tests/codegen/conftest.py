"""Options of the printer's tests: `pytest tests/codegen --update-golden` writes the golden files anew."""

from __future__ import annotations

import contextlib

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # a parent conftest may have added it
        parser.addoption("--update-golden", action="store_true", help="write tests/codegen/golden/*.cpp anew")
