"""The prelude: vector types, memory access and maths in `prelude/*.cpp`, of which only what is used is pasted in.

What it does: reads the snippets and puts those that a text uses, with what they need, in order.
What it does not do: know any snippet by name, but `kw_base`, which every unit has. Called by `cpp`.

A snippet starts at a line `//@ name: other snippets it needs`. `name@bf16` is the part that only bf16 tensors need.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FILES = ("base.cpp", "arithmetic.cpp", "maths.cpp", "memory.cpp", "reduce.cpp")


@dataclass(frozen=True)
class Snippet:
    """A piece of C++ and the names of the snippets that it needs."""

    name: str
    needs: tuple[str, ...]
    text: str


@cache
def snippets() -> dict[str, Snippet]:
    """All snippets by name, in file order; contract*.cpp files come last."""
    folder = files("kernelwright.codegen") / "prelude"
    more = sorted(f.name for f in folder.iterdir() if f.name.startswith("contract") and f.name.endswith(".cpp"))
    found: dict[str, Snippet] = {}
    for name in (*FILES, *more):
        text = (folder / name).read_text()
        for head, needs, body in re.findall(r"^//@ ([\w@]+):(.*)\n((?:(?!//@ ).*\n?)*)", text, re.M):
            found[head] = Snippet(head, tuple(needs.split()), body.strip("\n"))
    return found


def paste(used: Iterable[str]) -> str:
    """The text of `kw_base` and the used snippets, each after what it needs."""
    known = snippets()
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in order:
            return
        for need in known[name].needs:
            visit(need)
        order[name] = None

    visit("kw_base")
    for name in known:  # file order, so that equal programs give equal text
        if name in set(used):
            visit(name)
    return "\n\n".join(known[name].text for name in order if known[name].text)
