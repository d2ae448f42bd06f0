"""Text as lists of lines.

What it does: indents lines and wraps them in braces. What it does not do: know C++. Called by every module of the C++ printer.
"""

from __future__ import annotations

from collections.abc import Iterable


def indent(lines: Iterable[str]) -> list[str]:
    """The lines two spaces further in; preprocessor lines stay."""
    return [f"  {line}" if line and not line.startswith("#") else line for line in lines]


def braces(header: str, body: Iterable[str]) -> list[str]:
    """`header { body }`."""
    return [f"{header} {{" if header else "{", *indent(body), "}"]
