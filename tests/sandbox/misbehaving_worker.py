"""Handlers that behave, and handlers that do what a hostile candidate would. Served inside workers by the sandbox's tests."""

from __future__ import annotations

import os
from typing import Any

from kernelwright.sandbox.handlers import Answer, Handler


def _evaluate(source: str, fds: tuple[int, ...]) -> object:
    """Run `source`; its variable `result` is the answer, `answer_fds` goes beside it. `fds` is what came."""
    names: dict[str, Any] = {"fds": fds, "result": None, "answer_fds": ()}
    exec(source, names)  # the tests' own text
    return Answer(names["result"], tuple(names["answer_fds"]))


def handlers() -> dict[str, Handler]:
    return {"run": Handler(str, _evaluate), "pid": Handler(None, lambda _request, _fds: os.getpid())}
