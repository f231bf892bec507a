"""Input and output of extractors: units of conversation, and drafts of memories."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.metadata import entry_points
from typing import Protocol

from pydantic import JsonValue

from ..memory_types import Layer, set_layer

logger = logging.getLogger(__name__)
COMPARED = 2_000  # characters at the beginning of a text that are compared with others
CHECKED_BY = "checked_by"  # key in the data of a memory: what judged if its messages support it


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message as extractors see it."""

    id: str
    role: str  # user, assistant, tool, or a person's role in a group
    speaker: str | None  # a person's name, where it is known
    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A stored memory that a unit may repeat, change or end."""

    id: str
    text: str
    at: datetime
    speaker: str | None = None  # who told it, unless it was the user


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A stretch of conversation about one thing (MemUnit). `history` is context: memories of it exist already."""

    id: str
    messages: tuple[Said, ...]
    history: tuple[Said, ...] = ()
    known: tuple[Known, ...] = ()  # given to language models only
    user_id: str  # owner; a person without a name, or with this one, is the user
    user_names: tuple[str, ...] = ()  # further names of the user
    session_id: str | None = None
    group_id: str | None = None
    instructions: str | None = None  # for language models: what to remember, and what never
    categories: tuple[str, ...] = ()  # tags that a language model may give, also "name: what belongs to it"
    epoch: str | None = None  # erasure epoch of the user when the work began


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A message, or a part of it, that supports a draft."""

    message_id: str
    start: int | None = None  # characters of the message's text
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A memory that an extractor proposes. `subject`, `attribute` and `value` make it comparable: ("Mei", "home",
    "Berlin"). Of two drafts with the same subject and attribute, the newer one supersedes the older one if `single` (a
    person has one home, but many hobbies) or `ended` says so."""

    memory_type: str
    content: str
    evidence: tuple[Evidence, ...]
    occurred_at: datetime
    summary: str | None = None  # by default the beginning of the content
    subject: str | None = None
    owner: str | None = None  # whose relative the subject is: in "my husband", the speaker
    attribute: str | None = None
    value: str | None = None
    single: bool = False  # a new value of this attribute ends the old one
    ended: bool = False  # the value no longer holds: "no longer", 不再, "stopped"
    replaces: str | None = None  # the value that has ended: "switched from Vim to Helix"
    ends: tuple[str, ...] = ()  # ids of `Unit.known` that no longer hold
    repeats: tuple[str, ...] = ()  # ids of those that say the same
    merges: tuple[str, ...] = ()  # ids of those that it says too, besides something new
    importance: float = 0.5
    confidence: float = 1.0
    trust: float = 1.0  # times the trust in the messages; lower for words that are not the speaker's own
    valid_from: datetime | None = None  # by default when it occurred
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    tags: tuple[str, ...] = ()
    data: dict[str, JsonValue] = field(default_factory=dict)  # e.g. extractor and version

    @property
    def is_checked(self) -> bool:
        """Return True if its confidence says how far its messages support it: it is stored however low that is."""
        return CHECKED_BY in self.data

    @property
    def source(self) -> Evidence:
        """The words that state it: the first evidence with a position, or else the first message."""
        return next((one for one in self.evidence if one.start is not None), self.evidence[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """Drafts, and problems for the receipt."""

    drafts: tuple[Draft, ...] = ()
    problems: tuple[str, ...] = ()


class Extractor(Protocol):
    """Finds memories in a unit of conversation. `layers`, which may be left out, are those of its own types."""

    id: str  # stored with its memories

    async def __call__(self, unit: Unit, /) -> Sequence[Draft] | Extracted: ...


ENTRY_POINTS = "jiyi.extractors"


@cache
def installed_extractors() -> tuple[Extractor, ...]:
    """Load the extractors of installed packages. One that cannot be loaded is logged and left out."""
    found: list[Extractor] = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            loaded = entry.load()
            found.append(loaded() if isinstance(loaded, type) else loaded)
        except Exception:
            logger.exception("the extractor %s (%s) cannot be loaded", entry.name, entry.value)
    return tuple(found)


def set_layers(extractors: Sequence[Extractor]) -> None:
    """Set the layers of the extractors' own types."""
    for extractor in extractors:
        layers: Mapping[str, Layer] = getattr(extractor, "layers", {})
        for memory_type, layer in layers.items():
            set_layer(memory_type, layer)
