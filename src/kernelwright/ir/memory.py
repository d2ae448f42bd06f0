"""Memory planning: offsets in one area for pieces that live at different times.

What it does: first fit by size: the largest piece first, each at the lowest 64-byte aligned offset where no piece alive at
the same time lies.
What it does not do: decide what lives where. Called by `ir.places` for the workspace and for each nest's local area.
"""

from __future__ import annotations

from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True)
class Piece:
    """`bytes` that are alive from step `first` to step `last`, both included."""

    name: str
    bytes: int
    first: int
    last: int


def arrange(pieces: list[Piece]) -> tuple[dict[str, int], int]:
    """Offsets by name, and the bytes that the area needs."""
    placed: list[tuple[int, int, Piece]] = []
    offsets: dict[str, int] = {}
    for piece in sorted(pieces, key=lambda p: (-p.bytes, p.name)):
        size = -(-max(piece.bytes, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for start, end in sorted((s, e) for s, e, p in placed if p.first <= piece.last and piece.first <= p.last):
            if offset + size <= start:
                break
            offset = max(offset, end)
        placed.append((offset, offset + size, piece))
        offsets[piece.name] = offset
    return offsets, max((end for _, end, _ in placed), default=0)
