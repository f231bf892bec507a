"""The `Reader` protocol, and the base of readers of JSON files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ...store.records import Line
from ..json_stream import Values, json_values
from ..records import Conversation, ImportedMemory
from ..sources import Source, open_text

Kind = Literal["conversations", "memories"]
Record = Conversation | ImportedMemory | Line  # `Line`: a row of an export of Jiyi, which is restored as it was


class Reader(Protocol):
    """One import format."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    def matches(self, source: Source, first: Any) -> bool:
        """Return True if the file is in this format; `first` is its first JSON value, None if it is not JSON."""
        ...

    def read(self, source: Source) -> Iterator[Record]:
        """Yield the records of a file in this format."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReader:
    """A reader of JSON lists and JSONL files."""

    name: str
    kind: Kind
    matches_object: Callable[[dict[str, Any]], bool]  # called with the first object of a file
    read_values: Callable[[Values, Source], Iterator[Record]]

    def matches(self, source: Source, first: Any) -> bool:
        return isinstance(first, dict) and self.matches_object(first)

    def read(self, source: Source) -> Iterator[Record]:
        with open_text(source) as stream:
            yield from self.read_values(json_values(stream, source.name), source)
