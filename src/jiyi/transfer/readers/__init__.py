"""Import formats. A new one is a file with a `FormatReader` and a line in `READERS`; applications may add theirs."""

from pathlib import Path
from typing import Any

from ...errors import InvalidInput
from ..records import FormatReader, Kind, Record
from ..sources import Source, find_sources, json_values, open_text
from . import chatgpt, claude, claude_memory, jiyi_export, markdown, mcp_graph, mem0, messages, mongodb

__all__ = ["READERS", "FormatReader", "Kind", "Record", "UnknownFormat", "find_reader", "is_of_chats", "kind_of"]

# In this order: the first that matches reads the file.
READERS: list[FormatReader] = [
    markdown.MarkdownReader(),
    jiyi_export.READER,
    mcp_graph.READER,
    mem0.READER,
    mongodb.READER,
    chatgpt.READER,
    claude.READER,
    claude_memory.READER,
    messages.CONVERSATIONS,
    messages.MESSAGES,
]


class UnknownFormat(InvalidInput):
    """No reader matches the file."""

    def __init__(self, name: str, problem: str | None = None) -> None:
        known = ", ".join(dict.fromkeys(reader.name for reader in READERS))
        super().__init__(name, problem or f"is in no known format ({known}; see docs/import.md)")


def find_reader(source: Source) -> FormatReader:
    first = None if source.is_note else _first_value(source)
    reader = next((reader for reader in READERS if reader.matches(source, first)), None)
    if reader is None:
        raise UnknownFormat(source.name, "is an empty list" if first is None else None)
    return reader


def _first_value(source: Source) -> Any:
    """Return the first value of a JSON file, or None if it is an empty list."""
    with open_text(source) as stream:
        found = next(json_values(stream, source.name), None)
    return None if found is None else found[1]


def kind_of(path: Path) -> Kind:
    """Return the kind of the records at a path; a folder with any notes counts as memories, and a chat export with what
    the assistant remembers as conversations."""
    sources = find_sources(path)
    if any(source.is_note for source in sources):
        return "memories"
    kind: Kind = "conversations"
    for source in sources:
        try:
            reader = find_reader(source)
        except UnknownFormat:
            continue
        if not is_of_chats(reader):
            return reader.kind
        kind = "memories"
    return kind


def is_of_chats(reader: FormatReader) -> bool:
    """Return True for memories that are part of an export of chats."""
    return reader is claude_memory.READER
