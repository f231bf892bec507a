"""Taking words out of stored messages. Each function runs inside a transaction."""

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import and_, select, update
from sqlalchemy.orm import Session

from ...models import utc_now
from ..database import Inserts, chunks
from ..repositories.change_feed import tell
from ..repositories.messages import MESSAGE, RepeatedMessage, rows_of_messages, spoken_after, units_of
from ..repositories.revisions import insert_memory, scope_of
from ..schema.tables import SOURCES, MemoryRow, MemorySourceRow, MessageRow, UnitRow
from ..write_set import Change, NewMemory, Source, StoredMemory, Unembedded
from .held_rows import Held, held_rows

ACTOR = "jiyi"
MOST_ECHOES = 200  # messages of assistants that are looked at
DELETED = "[deleted]"  # in the place of deleted words
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MessageParts:
    """Two questions that deletion asks of those who can read: which statements are left of a row of a message without
    some spans, and which spans of a text repeat one of some memories."""

    left: Callable[[RepeatedMessage, Sequence[Span]], Sequence[NewMemory]]
    echoes: Callable[[str, Sequence[str]], Sequence[Span]]


@dataclass(frozen=True, slots=True)
class Redaction:
    """The spans of a message that are deleted, in order and apart."""

    spans: tuple[Span, ...]

    def applied(self, text: str) -> str:
        """Return the text with the mark in the place of each span."""
        for start, end in reversed(self.spans):
            text = text[:start] + DELETED + text[end:]
        return text

    def moved(self, at: int) -> int:
        """Return where a position outside of the spans is after that."""
        moved = at
        for start, end in self.spans:
            if at >= end:
                moved += len(DELETED) - (end - start)
            elif at > start:
                moved -= at - start
        return moved

    def moved_sources(self, sources: Sequence[Source]) -> tuple[Source, ...]:
        """Return the sources with their spans as they are after that."""
        return tuple(
            one
            if one.start is None or one.end is None
            else replace(one, start=self.moved(one.start), end=self.moved(one.end))
            for one in sources
        )


def merged(spans: Sequence[Span]) -> Redaction:
    """Return the redaction of spans that may overlap."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif end > start:
            found.append((start, end))
    return Redaction(tuple(found))


def _overwrite(session: Session, user_id: str, redactions: Mapping[str, Redaction]) -> None:
    """Overwrite spans of messages, move the spans of memories behind them, and forget what was made of the texts."""
    for message_id, redaction in redactions.items():
        mine = and_(MessageRow.user_id == user_id, MessageRow.id == message_id)
        text = session.scalar(select(MessageRow.text).where(mine)) or ""
        session.execute(update(MessageRow).where(mine).values(text=redaction.applied(text)))
        told = and_(MemorySourceRow.user_id == user_id, MemorySourceRow.message_id == message_id)
        spans = select(MemorySourceRow.memory_id, MemorySourceRow.span_start, MemorySourceRow.span_end).where(told)
        for memory_id, start, end in session.execute(spans).all():
            if start is not None and end is not None:
                values = {"span_start": redaction.moved(start), "span_end": redaction.moved(end)}
                session.execute(
                    update(MemorySourceRow).where(told, MemorySourceRow.memory_id == memory_id).values(values)
                )
    units = units_of(session, user_id, sorted(redactions))
    for some in chunks(units):
        empty = {"subject": None, "summary": "", "narrative": ""}
        session.execute(update(UnitRow).where(UnitRow.user_id == user_id, UnitRow.id.in_(some)).values(empty))
    tell(session, user_id, units, SOURCES)


def echoed_words(
    session: Session, user_id: str, gone: Mapping[str, Held], parts: MessageParts
) -> dict[str, list[Span]]:
    """Return the words of assistants that repeat deleted memories."""
    texts = [one.content for one in gone.values() if one.source != MESSAGE]
    names = sorted({name for one in gone.values() if one.source != MESSAGE for name in one.messages})
    found = {}
    for some in chunks(names):
        for message in spoken_after(session, user_id, some, MOST_ECHOES):
            if spans := parts.echoes(message.text, texts):
                found[message.id] = list(spans)
    return found


def divide_rows(
    session: Session, user_id: str, gone: dict[str, Held], words: Mapping[str, list[Span]], parts: MessageParts
) -> dict[str, list[tuple[RepeatedMessage, NewMemory]]]:
    """Add the rows of messages that contain deleted words; return what is left of them, by message."""
    left: dict[str, list[tuple[RepeatedMessage, NewMemory]]] = {name: [] for name in words}
    for one in rows_of_messages(session, user_id, sorted(words), list(gone)):
        spans = words[one.message.id]
        if one.row.id in gone or not any(in_span(one.by, span) for span in spans):
            continue
        gone |= {row.id: row for row in held_rows(session, user_id, [one.row.id])}
        if one.row.status == "active":
            left[one.message.id] += [(one, new) for new in parts.left(one, spans)]
    return left


def redact(
    session: Session,
    user_id: str,
    words: Mapping[str, list[Span]],
    left: Mapping[str, list[tuple[RepeatedMessage, NewMemory]]],
) -> list[Unembedded]:
    """Overwrite the words, and insert what is left of the rows of their messages. Vectors are made later."""
    redactions = {name: merged(spans) for name, spans in words.items()}
    _overwrite(session, user_id, redactions)
    inserts, inserted = Inserts(), []
    added = Change(values={}, action="add", actor=ACTOR, reason=None, at=utc_now())
    for name, some in left.items():
        for one, new in some:
            moved = replace(new, sources=redactions[name].moved_sources(new.sources))
            insert_memory(inserts, scope_of(one.row), moved, added)
            inserted.append(Unembedded(user_id=user_id, memory_id=new.id, version=1, texts=(new.content,)))
    inserts.run(session)
    return inserted


def quoted_words(session: Session, user_id: str, gone: Mapping[str, StoredMemory]) -> dict[str, list[Span]]:
    """Return the words of messages that deleted memories quote, by message, without those that others quote too. The
    same message of another agent quotes all of it."""
    spans: dict[str, list[Span]] = defaultdict(list)
    columns = (MemorySourceRow.message_id, MemorySourceRow.span_start, MemorySourceRow.span_end)
    for some in chunks(list(gone)):
        own = select(MemorySourceRow.memory_id, *columns).where(
            MemorySourceRow.user_id == user_id, MemorySourceRow.memory_id.in_(some)
        )
        for _, message_id, start, end in session.execute(own):
            if start is not None and end is not None:
                spans[message_id].append((start, end))
    places = {(one.agent_id, one.group_id) for one in gone.values()}
    joined = and_(MemoryRow.user_id == MemorySourceRow.user_id, MemoryRow.id == MemorySourceRow.memory_id)
    told = select(MemoryRow.id, MemoryRow.source, MemoryRow.agent_id, MemoryRow.group_id, *columns)
    for some in chunks(list(spans)):
        of_these = (MemoryRow.user_id == user_id, MemorySourceRow.message_id.in_(some))
        for row in session.execute(told.join(MemorySourceRow, joined).where(*of_these)):
            if row.id in gone or (row.source == MESSAGE and (row.agent_id, row.group_id) in places):
                continue
            if row.source == MESSAGE or row.span_start is not None:
                kept = row.span_start or 0, _end(row.span_end)
                spans[row.message_id] = [part for span in spans[row.message_id] for part in _without(span, kept)]
    return {message_id: some for message_id, some in spans.items() if some}


def without_span(session: Session, user_id: str, memory_ids: Collection[str]) -> frozenset[str]:
    """Return the messages that some memories came from without quoting words of them."""
    found: set[str] = set()
    for some in chunks(sorted(memory_ids)):
        told = select(MemorySourceRow.message_id).where(
            MemorySourceRow.user_id == user_id,
            MemorySourceRow.memory_id.in_(some),
            MemorySourceRow.span_start.is_(None),
        )
        found.update(session.scalars(told))
    return frozenset(found)


def in_span(by: Source, span: Span) -> bool:
    """Return True if a source has a character of a span; one without a position is the whole message."""
    return (by.start or 0) < span[1] and span[0] < _end(by.end)


def _end(end: int | None) -> int:
    return sys.maxsize if end is None else end


def _without(span: Span, kept: Span) -> list[Span]:
    """Return the parts of a span that are not in another one."""
    parts = (span[0], min(span[1], kept[0])), (max(span[0], kept[1]), span[1])
    return [part for part in parts if part[0] < part[1]]
