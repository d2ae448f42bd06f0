"""The table of lowering rules: ATen operator name -> a small function that writes IR operations.

What it does: holds `RULES` and the decorator by which the `rules_*` modules fill it. A rule gets a Site and the node's
arguments (tensors as `ir.graph.Tensor`, literals as they are, dtypes as DType) and gives back its result tensors.
What it does not do: hold rules, or decide what has none (see `capture.lower`). A rule that finds that it does not
cover its arguments raises UnsupportedError; the node then stays a library call with that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kernelwright.ir.graph import Tensor

Result = Tensor | tuple[Tensor | None, ...]
Rule = Callable[..., Result]

RULES: dict[str, Rule] = {}

_R = TypeVar("_R", bound=Callable[..., Any])


def rule(*names: str) -> Callable[[_R], _R]:
    """Register a rule for `aten.<name>` of each name given, as in @rule("relu.default")."""

    def register(function: _R) -> _R:
        for name in names:
            assert f"aten.{name}" not in RULES, f"two rules for {name}"
            RULES[f"aten.{name}"] = function
        return function

    return register
