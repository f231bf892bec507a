"""The files of an import: those of one kind at a path, with their readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..errors import InvalidInput
from .readers import FormatReader, Kind, UnknownFormat, find_reader, is_of_chats
from .records import Record
from .sources import Source, find_sources

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Selected:
    """The files of one kind at a path, with their readers."""

    files: tuple[tuple[Source, FormatReader], ...]
    skipped: tuple[str, ...]

    @property
    def formats(self) -> str:
        return ", ".join(sorted({reader.name for _, reader in self.files}))

    def records(self, kind: type[R]) -> Iterator[R]:
        return (record for _, record in self.by_source() if isinstance(record, kind))

    def by_source(self) -> Iterator[tuple[Source, Record]]:
        for source, reader in self.files:
            yield from ((source, record) for record in reader.read(source))


# In the archives of ChatGPT and Claude beside the conversations: they hold no chats.
ACCOUNT_FILES = frozenset(
    f"{name}.json"
    for name in (
        "user",
        "users",
        "user_settings",
        "message_feedback",
        "model_comparisons",
        "shared_conversations",
        "group_chats",
        "shopping",
        "sora",
        "projects",
    )
)


def select(path: Path, kind: Kind) -> Selected:
    """Find the files with records of a kind. Among several files, those of another kind or format are skipped."""
    sources = find_sources(path)
    files = []
    skipped = []
    for source in sources:
        try:
            reader = find_reader(source)
            if reader.kind != kind and not is_of_chats(reader):
                raise UnknownFormat(source.name, f"contains {reader.kind} ({reader.name}), not {kind}")
            files.append((source, reader))
        except UnknownFormat as error:
            if len(sources) == 1:
                raise
            if Path(source.member or "").name not in ACCOUNT_FILES:
                skipped.append(f"skipped: {error.argument} {error.problem}")
    if not files:
        raise InvalidInput(str(path), f"contains no {kind} in a known format (docs/import.md)")
    return Selected(tuple(files), tuple(skipped))
