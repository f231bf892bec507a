"""The passages of a memory that tells of many things: each is found by its own meaning, not by that of them all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

COMPRESSED = "compressed"  # in the data of a memory that stands for others
LONGEST = 160  # letters; a longer line is taken apart between sentences
MOST = 200

_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")


def passages(content: str, data: Mapping[str, object]) -> tuple[str, ...]:
    """The lines of a compressed memory, long ones in pieces; none if it is but one, and of every other memory.

    >>> passages("2026-01-02: Paid Anna.\\n2026-01-09: Sold the car.", {"compressed": 1})
    ('2026-01-02: Paid Anna.', '2026-01-09: Sold the car.')
    """
    if COMPRESSED not in data:
        return ()
    found = tuple(piece for line in content.splitlines() for piece in _pieces(line.strip()))
    return found[:MOST] if len(found) > 1 else ()


def width(text: str) -> int:
    """How much a text says: a Chinese character about as much as three letters."""
    return len(text) + 2 * sum("\u3400" <= char <= "\u9fff" for char in text)


def _pieces(line: str) -> Iterator[str]:
    if width(line) <= LONGEST:
        if line:
            yield line
        return
    piece = ""
    for sentence in filter(None, map(str.strip, _END.split(line))):
        if piece and width(piece) + width(sentence) > LONGEST:
            yield piece
            piece = ""
        piece += (" " if piece and piece[-1].isascii() else "") + sentence
    if piece:
        yield piece
