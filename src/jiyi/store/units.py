"""Units of conversation as they are read: a subject, a summary and a narrative, made of what is stored now."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from pydantic import Field

from ..languages.words import language
from ..models import MemoryItem, SourceMessage, Value
from ..roles import is_instruction
from ..text.fence import strip_context
from ..text.passages import summarise
from .repositories.messages import StoredUnit

SUBJECT_WORDS = 3
WHOLE = ("message", "episode", "profile", "group_profile")  # types of memories that are no statements


class MemUnit(Value):
    """A stretch of conversation about one thing, and what was derived from it."""

    unit_id: str
    session_id: str | None
    group_id: str | None
    subject: str | None = Field(description="title of its episode, or its main keywords")
    summary: str
    narrative: str = Field(description="its episodes, one per participant, or who stated what and when")
    participants: tuple[str, ...]
    messages: tuple[SourceMessage, ...]
    memory_ids: tuple[str, ...] = Field(description="active memories derived from it")
    started_at: datetime
    ended_at: datetime


class MemUnitPage(Value):
    """A page of units; pass `next_cursor` to get the next one."""

    items: tuple[MemUnit, ...]
    next_cursor: str | None

    def __iter__(self) -> Iterator[MemUnit]:  # type: ignore[override]
        return iter(self.items)


def to_unit(stored: StoredUnit, memories: Mapping[str, MemoryItem]) -> MemUnit:
    derived = [memories[one] for one in stored.memory_ids if one in memories]
    said = [(one, strip_context(one.text).strip()) for one in stored.messages if not is_instruction(one.role)]
    told = [one for one in derived if one.memory_type == "episode"]
    lines = [one.content for one in told] or _statements(derived, stored.messages)
    lines = lines or [f"{one.speaker or one.role}: {text}" for one, text in said if text]
    title = told[0].data.get("title") if told else None
    return MemUnit(
        unit_id=stored.id,
        session_id=stored.session_id,
        group_id=stored.group_id,
        subject=title if isinstance(title, str) else _keywords(derived),
        summary=told[0].summary if told else summarise(" / ".join(text for _, text in said if text)),
        narrative="\n".join(lines),
        participants=tuple(dict.fromkeys(one.speaker or one.role for one, _ in said)),
        messages=stored.messages,
        memory_ids=stored.memory_ids,
        started_at=min(one.sent_at for one in stored.messages),
        ended_at=max(one.sent_at for one in stored.messages),
    )


def _statements(derived: Sequence[MemoryItem], messages: Sequence[SourceMessage]) -> list[str]:
    """Return the statements of a unit in the order in which they were made, with who made them and when."""
    order = {name: at for at, one in reversed([*enumerate(messages)]) for name in (one.id, one.external_id)}
    made: list[tuple[int, int, str]] = []
    for memory in derived:
        places = [order[source] for source in memory.source_ids if source in order]
        if memory.memory_type in WHOLE or not places:
            continue
        message = messages[min(places)]
        line = f"{message.sent_at:%Y-%m-%d %H:%M} {message.speaker or message.role}: {memory.dated_text}"
        made.append((min(places), message.text.find(memory.content), line))
    return [line for _, _, line in sorted(made)]


def _keywords(derived: Sequence[MemoryItem]) -> str | None:
    """Return the most frequent keywords of some memories, the heaviest among equals."""
    counted = Counter(word for one in derived for word in one.keywords)
    best = [word for word, _ in counted.most_common(SUBJECT_WORDS)]
    return ("、" if language(" ".join(best)) == "zh" else ", ").join(best) or None
