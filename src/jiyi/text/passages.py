"""Passages of compressed memories, each with its own vector, and one-line summaries."""

import re
from collections.abc import Iterator, Mapping

from ..languages.words import width

COMPRESSED = "compressed"  # key in the data of a memory that replaced others
LONGEST = 160  # letters of a line; a longer one is divided between sentences
MOST = 200

_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")


def passages(content: str, data: Mapping[str, object]) -> tuple[str, ...]:
    """Return the lines of a compressed memory, long ones in pieces; nothing for one line and for other memories.

    >>> passages("2026-01-02: Paid Anna.\\n2026-01-09: Sold the car.", {"compressed": 1})
    ('2026-01-02: Paid Anna.', '2026-01-09: Sold the car.')
    """
    if COMPRESSED not in data:
        return ()
    found = tuple(piece for line in content.splitlines() for piece in _pieces(line.strip()))
    return found[:MOST] if len(found) > 1 else ()


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


SUMMARY_LENGTH = 120


def summarise(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text[: SUMMARY_LENGTH * 4].split())
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1].rstrip() + "…"
