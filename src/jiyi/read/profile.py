"""Profiles: what is known of a user or a group now, each line once, as attributes with values where they are known."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from pydantic import Field

from .. import threads
from ..languages.words import normalise
from ..models import MemoryItem, Page, Value
from ..roles import USER_SUBJECTS, subject_text, teller_of
from .overview import says_end

TYPES = ("fact", "preference", "pattern")
_TOGETHER = re.compile(r"\W{0,4}(?:we|our|us|let['’]s|everyone|everybody)\b|我们|咱们?|大家", re.IGNORECASE)


class ProfileLine(Value):
    """A line of a profile: an attribute with its value, or a text."""

    memory_id: str
    subject: str = Field(description="the user_id, or the name of somebody else")
    attribute: str | None = Field(description="none: the text says it all")
    value: str | None
    text: str
    valid_from: datetime


class Profile(Page):
    """A page of a profile: its memories, newest first, and a line for each, by subject and attribute."""

    lines: tuple[ProfileLine, ...] = ()


def profile_lines(memories: Sequence[MemoryItem]) -> tuple[ProfileLine, ...]:
    """Return the lines of a profile: those of the user, then of others by name; attributes in the order of their names,
    then the rest."""
    lines = [_line(memory) for memory in memories]
    users = {memory.user_id for memory in memories}
    return tuple(
        sorted(
            lines,
            key=lambda line: (
                line.subject not in users,
                line.subject,
                line.attribute is None,
                line.attribute or "",
                line.value or "",
            ),
        )
    )


def _line(memory: MemoryItem) -> ProfileLine:
    attribute = memory.data.get("attribute") or memory.data.get("key")
    value = memory.data.get("value")
    known = isinstance(attribute, str) and isinstance(value, (str, int, float)) and not says_end(memory.data)
    return ProfileLine(
        memory_id=memory.id,
        subject=_subject(memory),
        attribute=str(attribute) if known else None,
        value=str(value) if known else None,
        text=memory.content,
        valid_from=memory.valid_from,
    )


def _subject(memory: MemoryItem) -> str:
    subject, teller = subject_text(memory.data), teller_of(memory.data, memory.user_id)
    if teller is not None:
        return subject or teller.name or teller.kind
    is_user = subject is None or normalise(subject) in USER_SUBJECTS or subject == memory.data.get("speaker")
    return memory.user_id if is_user or subject is None else subject.removeprefix("user:").strip()


def distinct_lines(memories: Iterable[MemoryItem]) -> Iterator[MemoryItem]:
    """Leave out what another line says already. What several people say of themselves is several lines; what they say
    of all of them (We meet on Tuesdays) is one."""
    seen: set[tuple[object, ...]] = set()
    for memory in memories:
        threads.check()
        data = memory.data
        teller = teller_of(data, memory.user_id)
        whose = None if _TOGETHER.match(memory.content) else (teller, subject_text(data) or data.get("speaker"))
        keys: set[tuple[object, ...]] = {(whose, normalise(memory.content).strip("。.!！ "))}
        if isinstance(value := data.get("value"), str) and data.get("attribute"):
            keys.add((whose, data["attribute"], normalise(value)))
        if not keys & seen:
            yield memory
        seen |= keys
