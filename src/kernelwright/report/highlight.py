"""C++ source as escaped HTML lines with marked keywords, comments, numbers and strings.

What it does: a small tokenizer for what our printer and people write. What it does not do: parse. Called by render.
"""

from __future__ import annotations

import html
import re

_KEYWORDS = (
    "alignas asm auto bool break case char class const constexpr continue default do double else enum extern false float for "
    "if inline int long namespace new nullptr operator return short signed sizeof static struct switch template this true "
    "typedef typename union unsigned using void volatile while"
)
_TOKEN = re.compile(
    r"(?P<c>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<s>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<k>^[ \t]*#[ \t]*\w+|\b(?:" + _KEYWORDS.replace(" ", "|") + r")\b)"
    r"|(?P<n>\b(?:0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?|\d[\d.]*(?:[eE][+-]?\d+)?)[a-zA-Z]*)",
    re.DOTALL | re.MULTILINE,
)


def highlight(source: str) -> list[str]:
    """The lines of `source` as HTML. A token over several lines is closed and opened again at each line's end."""
    parts = []
    at = 0
    for match in _TOKEN.finditer(source):
        parts.append(html.escape(source[at : match.start()]))
        pieces = match.group().split("\n")
        parts.append("\n".join(f'<span class="{match.lastgroup}">{html.escape(piece)}</span>' for piece in pieces))
        at = match.end()
    parts.append(html.escape(source[at:]))
    return "".join(parts).rstrip("\n").split("\n")
