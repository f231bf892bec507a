"""What lies at a path: memories of which system, or chats."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from ...errors import InvalidInput
from ..chats.files import Source, failures, find_sources, opened
from ..chats.values import json_values
from . import graph, markdown, mem0
from .found import Found

Shape = Literal["jiyi", "mem0", "mcp", "markdown", "chats"]
EXPORT = "jiyi-export"  # in the first line of an export of Jiyi
KNOWN = (
    "holds no memories of a known shape: an export of Jiyi, mem0's get_all as JSON, the memory.jsonl of MCP's"
    " reference server, or Markdown notes (docs/import.md)"
)


def shape_of(path: Path) -> Shape:
    """By the content, not by the name; Markdown is known by its names."""
    if not path.exists():
        raise InvalidInput(str(path), "is not there")
    if path.is_dir():
        return "markdown" if markdown.notes_in(path) else "chats"
    if markdown.notes_in(path):
        return "markdown"
    first = _first(path)
    if isinstance(first, dict):
        if first.get("kind") == EXPORT:
            return "jiyi"
        if first.get("type") in ("entity", "relation"):
            return "mcp"
        if mem0.is_mem0(first):
            return "mem0"
    return "chats"


def _first(path: Path) -> Any:
    """The first value of a JSON file; of a zip file, nothing."""
    sources = find_sources(path)
    if sources[0].member is not None:
        return None
    with failures(str(path)), opened(sources[0]) as stream:
        found = next(json_values(stream, str(path)), None)
    return None if found is None else found[1]


def read_found(path: Path, shape: Shape) -> Iterator[Found]:
    """The memories of another system, one after the other."""
    if shape == "markdown":
        folder = path if path.is_dir() else path.parent
        for note in markdown.notes_in(path):
            yield from markdown.read_note(note, note.relative_to(folder).as_posix())
        return
    if shape not in ("mcp", "mem0"):
        raise InvalidInput(str(path), KNOWN)
    with failures(str(path)), opened(Source(path=path)) as stream:
        values = json_values(stream, str(path))
        if shape == "mem0":
            yield from mem0.read_mem0(values)
        else:
            yield from chain.from_iterable(graph.found_in(value, place) for place, value in values)
