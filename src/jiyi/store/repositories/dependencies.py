"""State that an `add` depends on: read before it is derived, and checked again in its transaction."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from ...ids import erased
from ..database import chunks, from_row
from ..schema.tables import EmbeddingRow, MemoryRow, MemorySourceRow, MessageRow, RelationRow, RevisionRow, UnitRow
from ..write_set import BY_A_PERSON, Addition, SlotEntry, Source
from .change_feed import EPOCH, NEVER
from .memories import IS_KNOWN
from .messages import in_scope, nulls_of, scope_values


@dataclass(slots=True)
class Dependencies:
    """The current state of everything that an addition depends on."""

    epoch: str = NEVER  # erasure epoch of the user
    last_message: str | None = None
    messages: set[str] = field(default_factory=set)  # cited ones that exist
    delivered: bool = False  # one of the new messages is stored already
    known: dict[str, str] = field(default_factory=dict)  # memory ids by dedupe hash
    embedded: set[str] = field(default_factory=set)  # known memories with a vector of the model
    expired: set[str] = field(default_factory=set)  # dedupe hashes
    taken_keys: set[str] = field(default_factory=set)
    slots: dict[str, dict[str, int]] = field(default_factory=dict)  # versions by memory id
    versions: dict[str, int] = field(default_factory=dict)  # of the memories that effects refer to
    sources: set[tuple[str, str]] = field(default_factory=set)
    relations: set[tuple[str, str, str]] = field(default_factory=set)
    units: dict[str, tuple[list[str], datetime, datetime]] = field(default_factory=dict)  # participants, start, end


# Built once: every `add` runs some of them, and building a statement takes longer than running it.
def _named(column: Any, *more: Any) -> sa.Select[Any]:
    """Select a column and others of the user's rows in which it has one of some values."""
    mine = column.table.c.user_id == sa.bindparam("user_id")
    return sa.select(column, *more).where(mine, column.in_(sa.bindparam("values", expanding=True)))


_message, _memory, _vector, _source, _relation, _unit = (
    row.__table__.c for row in (MessageRow, MemoryRow, EmbeddingRow, MemorySourceRow, RelationRow, UnitRow)
)
_MESSAGES, _DELIVERED = _named(_message.id), _named(_message.dedupe_hash)
_EXPIRED = sa.and_(_memory.status == "active", _memory.expires_at <= sa.bindparam("now"))
_OF_HASH = sa.and_(
    _memory.user_id == sa.bindparam("user_id"), _memory.dedupe_hash.in_(sa.bindparam("values", expanding=True))
)
_ANY = sa.select(sa.literal(1).label("one")).subquery()  # the epoch is returned whether there are memories or not
_EPOCH_AND_SAME = sa.select(EPOCH, _memory.dedupe_hash, _memory.id, IS_KNOWN, _EXPIRED).select_from(
    _ANY.outerjoin(MemoryRow.__table__, _OF_HASH)
)
_EMBEDDED = _named(_vector.memory_id).where(_vector.part == 0, _vector.model == sa.bindparam("model"))
_KEYS = _named(_memory.memory_key)
_SLOTS = _named(_memory.slot, _memory.id, _memory.version).where(_memory.status == "active")
_VERSIONS = _named(_memory.id, _memory.version)
_SOURCES = _named(_source.memory_id, _source.message_id)
_RELATIONS = _named(_relation.memory_id, _relation.target_id, _relation.relation_type)
_UNITS = _named(_unit.id, _unit.participants, _unit.started_at, _unit.ended_at)


@lru_cache(maxsize=8)
def _last_message(nulls: frozenset[str]) -> sa.Select[str]:
    """Select the last message of a scope in which some columns are NULL."""
    return sa.select(sa.func.max(_message.id)).where(_message.user_id == sa.bindparam("user_id"), *in_scope(nulls))


def same_texts(
    session: Session, user_id: str, hashes: Sequence[str], now: datetime
) -> tuple[str, list[tuple[str, str, bool, bool]]]:
    """Return the erasure epoch of a user, and the memories with some dedupe hashes: hash, id, whether it counts as
    known, and whether it has expired."""
    connection, values = session.connection(), {"user_id": user_id, "erased": erased(user_id), "now": now}
    epoch: str | None = None
    found: list[tuple[str, str, bool, bool]] = []
    for some in chunks(hashes) if hashes else [()]:
        for first, *memory in connection.execute(_EPOCH_AND_SAME, {**values, "values": some}):
            epoch = epoch or first
            found += [(memory[0], memory[1], memory[2], memory[3])] if memory[0] is not None else []
    return epoch or NEVER, found


def look_up(session: Session, addition: Addition) -> Dependencies:
    """Read everything that the addition depends on."""
    effects = addition.effects
    epoch, same = same_texts(session, addition.user_id, [new.dedupe_hash for new in addition.memories], addition.at)
    connection = session.connection()  # the session adds a fifth to the time of each statement
    found = Dependencies(epoch=epoch, slots={slot: {} for slot in effects.slots})

    def rows(statement: sa.Select[Any], values: Iterable[str], **more: Any) -> Iterator[Any]:
        for some in chunks(list(values)):
            yield from connection.execute(statement, {"user_id": addition.user_id, "values": some, **more})

    if addition.follows is not None:
        found.last_message = session.scalar(_last_message(nulls_of(addition)), scope_values(addition))
    found.messages = {name for (name,) in rows(_MESSAGES, sorted(cited_messages(addition)))}
    said = (message.dedupe_hash for message in addition.messages if message.dedupe_hash is not None)
    found.delivered = any(True for _ in rows(_DELIVERED, said))
    ids = list(addition.met)
    for text_hash, memory_id, known, over in same:
        ids.append(memory_id)
        if known:
            found.known[text_hash] = memory_id
        if over:
            found.expired.add(text_hash)
    found.embedded = {memory_id for (memory_id,) in rows(_EMBEDDED, ids, model=addition.model)}
    keys = (new.memory_key for new in addition.memories if new.memory_key != new.id)
    found.taken_keys = {key for (key,) in rows(_KEYS, keys)}
    for slot, memory_id, version in rows(_SLOTS, effects.slots):
        found.slots[slot][memory_id] = version
    found.versions = dict(tuple(row) for row in rows(_VERSIONS, sorted(_referred(addition))))
    found.sources = {tuple(row) for row in rows(_SOURCES, effects.evidence)}
    related = sorted({one.memory_id for one in effects.relations})
    found.relations = {tuple(row) for row in rows(_RELATIONS, related)}
    units = rows(_UNITS, [part.id for part in addition.units])
    found.units = {unit_id: (people, start, end) for unit_id, people, start, end in units}
    return found


def cited_messages(addition: Addition) -> set[str]:
    """Return the ids of earlier messages that the addition refers to."""
    sources = [source for memory in addition.memories for source in memory.sources]
    sources += [source for some in addition.effects.evidence.values() for source in some]
    cited = {*(source.message_id for source in sources), *(one for part in addition.units for one in part.message_ids)}
    return cited - {message.id for message in addition.messages}


def _referred(addition: Addition) -> set[str]:
    """Return the ids of memories that the addition refers to."""
    effects = addition.effects
    return {
        *(memory.superseded_by or "" for memory in addition.memories),
        *effects.versions,
        *effects.evidence,
        *(one.id for one in effects.changes),
        *(one.change.values.get("superseded_by") or "" for one in effects.changes),
        *(name for one in effects.relations for name in (one.memory_id, one.target_id)),
    } - {""}


_TOLD = (MemorySourceRow.message_id, MemorySourceRow.span_start, MemorySourceRow.span_end)


def slots(session: Session, user_id: str, wanted: Sequence[str]) -> list[SlotEntry]:
    """Return the active memories of these slots, also ended ones, with the messages that told them."""
    if not wanted:
        return []
    edited = (
        sa.select(sa.func.max(RevisionRow.changed_at))
        .where(
            RevisionRow.user_id == MemoryRow.user_id,
            RevisionRow.memory_id == MemoryRow.id,
            RevisionRow.action.in_(BY_A_PERSON),
        )
        .scalar_subquery()
    )
    source = sa.and_(MemorySourceRow.user_id == MemoryRow.user_id, MemorySourceRow.memory_id == MemoryRow.id)
    message = sa.and_(MessageRow.user_id == MemorySourceRow.user_id, MessageRow.id == MemorySourceRow.message_id)
    found: dict[str, SlotEntry] = {}
    told: defaultdict[str, list[tuple[datetime, Source]]] = defaultdict(list)
    for some in chunks(wanted):
        statement = (
            sa.select(MemoryRow.__table__, edited.label("edited_at"), *_TOLD, MessageRow.sent_at)
            .outerjoin(MemorySourceRow, source)
            .outerjoin(MessageRow, message)
            .where(MemoryRow.user_id == user_id, MemoryRow.slot.in_(some), MemoryRow.status == "active")
            .order_by(MemoryRow.valid_from, MemoryRow.id, MemorySourceRow.message_id)
        )
        for row in session.execute(statement):
            if row.id not in found:
                found[row.id] = from_row(SlotEntry, row, told=())
            if row.sent_at is not None:
                by = Source(message_id=row.message_id, start=row.span_start, end=row.span_end)
                told[row.id].append((row.sent_at, by))
    entries = [replace(entry, told=tuple(told[entry.id])) for entry in found.values()]
    return sorted(entries, key=lambda entry: (entry.valid_from, entry.id))
