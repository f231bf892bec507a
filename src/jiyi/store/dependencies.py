"""State that an `add` depends on: read before it is derived, and checked again in its transaction."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from ..ids import erased
from .contract import BY_A_PERSON, SCOPE, Addition, SlotEntry, Source
from .database import chunks, from_row
from .erasures import LAST_ERASURE, NEVER
from .memories import IS_KNOWN
from .session import Session
from .tables import ChangeRow, EmbeddingRow, MemoryRow, MemorySourceRow, MessageRow, RelationRow, RevisionRow, UnitRow
from .types import Instant

AT_ONCE = 500  # values in one IN list


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
    units: dict[str, tuple[list[str], int, int]] = field(default_factory=dict)  # participants, start, end


_USER: sa.BindParameter[str] = sa.bindparam("user_id")


def _in(name: str) -> sa.BindParameter[list[str]]:
    return sa.bindparam(name, expanding=True)


def _part(name: str, key: Any, value: Any, *, text: Any = None, number: Any = None, end: Any = None) -> sa.Select[Any]:
    return sa.select(
        sa.literal(name, literal_execute=True),
        key,
        value,
        sa.cast(sa.null() if text is None else text, sa.String),
        sa.cast(sa.null() if number is None else sa.type_coerce(number, sa.BigInteger), sa.BigInteger),
        sa.cast(sa.null() if end is None else sa.type_coerce(end, sa.BigInteger), sa.BigInteger),
    )


_memory, _message = MemoryRow, MessageRow
_HAS_VECTOR = sa.and_(EmbeddingRow.part == 0, EmbeddingRow.model == sa.bindparam("model"))
# Not a join: before PostgreSQL has statistics of a new user, it compares every memory with every vector.
_vector_of_memory = (
    sa.select(EmbeddingRow.part)
    .where(EmbeddingRow.user_id == _USER, EmbeddingRow.memory_id == _memory.id, _HAS_VECTOR)
    .correlate(MemoryRow)
    .scalar_subquery()
)
_ERASED = _part("epoch", sa.literal(""), ChangeRow.memory_id).where(LAST_ERASURE)
_PARTS: dict[str, sa.Select[Any]] = {
    "cited": _part("cited", _message.id, _message.id).where(_message.user_id == _USER, _message.id.in_(_in("cited"))),
    "delivered": _part("delivered", _message.id, _message.id).where(
        _message.user_id == _USER, _message.dedupe_hash.in_(_in("delivered"))
    ),
    "known": _part("known", _memory.dedupe_hash, _memory.id).where(
        _memory.user_id == _USER, _memory.dedupe_hash.in_(_in("known")), IS_KNOWN
    ),
    "met": _part("embedded", EmbeddingRow.memory_id, EmbeddingRow.memory_id).where(
        EmbeddingRow.user_id == _USER, EmbeddingRow.memory_id.in_(_in("met")), _HAS_VECTOR
    ),
    "said": _part("embedded", _memory.id, _memory.id).where(
        _memory.user_id == _USER, _memory.dedupe_hash.in_(_in("said")), _vector_of_memory == 0
    ),
    "expired": _part("expired", _memory.dedupe_hash, _memory.id).where(
        _memory.user_id == _USER,
        _memory.dedupe_hash.in_(_in("expired")),
        _memory.status == "active",
        _memory.expires_at <= sa.bindparam("now", type_=Instant()),
    ),
    "key": _part("key", _memory.memory_key, _memory.id).where(
        _memory.user_id == _USER, _memory.memory_key.in_(_in("key"))
    ),
    "slot": _part("slot", _memory.slot, _memory.id, number=_memory.version).where(
        _memory.user_id == _USER, _memory.slot.in_(_in("slot")), _memory.status == "active"
    ),
    "memory": _part("memory", _memory.id, _memory.id, number=_memory.version).where(
        _memory.user_id == _USER, _memory.id.in_(_in("memory"))
    ),
    "source": _part("source", MemorySourceRow.memory_id, MemorySourceRow.message_id).where(
        MemorySourceRow.user_id == _USER, MemorySourceRow.memory_id.in_(_in("source"))
    ),
    "relation": _part("relation", RelationRow.memory_id, RelationRow.target_id, text=RelationRow.relation_type).where(
        RelationRow.user_id == _USER, RelationRow.memory_id.in_(_in("relation"))
    ),
    "unit": _part(
        "unit", UnitRow.id, UnitRow.id, text=UnitRow.participants, number=UnitRow.started_at, end=UnitRow.ended_at
    ).where(UnitRow.user_id == _USER, UnitRow.id.in_(_in("unit"))),
}


@lru_cache(maxsize=256)
def _statement(parts: tuple[str, ...], nulls: tuple[str, ...] | None) -> Any:
    """Return the union of some parts; built once, because building costs as much as running it. `nulls`: the columns of
    the message's scope that are NULL; None if the last message of the scope is not needed."""
    selects = [_ERASED, *(_PARTS[name] for name in parts)]
    if nulls is not None:
        scope = [
            column.is_(None) if name in nulls else column == sa.bindparam(name)
            for name, column in ((name, getattr(_message, name)) for name in SCOPE)
        ]
        selects.append(_part("last", sa.literal(""), sa.func.max(_message.id)).where(_message.user_id == _USER, *scope))
    return sa.union_all(*selects)


async def look_up(session: Session, addition: Addition) -> Dependencies:
    """Read everything that the addition depends on; one statement unless it is very large."""
    effects = addition.effects
    hashes = [new.dedupe_hash for new in addition.memories]
    lists: dict[str, list[str]] = {
        "cited": sorted(cited_messages(addition)),
        "delivered": [message.dedupe_hash for message in addition.messages if message.dedupe_hash is not None],
        "known": hashes,
        "met": list(addition.met),
        "said": hashes,
        "expired": hashes,
        "key": [new.memory_key for new in addition.memories if new.memory_key != new.id],
        "slot": list(effects.slots),
        "memory": sorted(_referred(addition)),
        "source": list(effects.evidence),
        "relation": sorted({one.memory_id for one in effects.relations}),
        "unit": [part.id for part in addition.units],
    }
    common = {
        "user_id": addition.user_id,
        "erased": erased(addition.user_id),
        "session_id": addition.session_id,
        "agent_id": addition.agent_id,
        "group_id": addition.group_id,
        "model": addition.model,
        "now": addition.at,
    }
    follows = addition.follows is not None
    found = Dependencies(slots={slot: {} for slot in effects.slots})
    start = 0
    while True:
        some = {name: values[start : start + AT_ONCE] for name, values in lists.items() if len(values) > start}
        nulls = tuple(name for name in SCOPE if common[name] is None) if follows and start == 0 else None
        if not some and nulls is None and start:
            return found
        [lines] = await session.select((_statement(tuple(some), nulls), {**common, **some}))
        for line in lines:
            if line[0] == "epoch":
                found.epoch = line[2]
            else:
                _note(found, *line)
        start += AT_ONCE


def _note(found: Dependencies, part: str, key: str, value: str, text: str | None, number: int, end: int) -> None:
    match part:
        case "last":
            found.last_message = value
        case "cited":
            found.messages.add(value)
        case "delivered":
            found.delivered = True
        case "known":
            found.known[key] = value
        case "embedded":
            found.embedded.add(value)
        case "expired":
            found.expired.add(key)
        case "key":
            found.taken_keys.add(key)
        case "slot":
            found.slots[key][value] = number
        case "memory":
            found.versions[key] = number
        case "source":
            found.sources.add((key, value))
        case "relation":
            found.relations.add((key, value, text or ""))
        case "unit":
            found.units[key] = (json.loads(text or "[]"), number, end)


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


_SLOT_ENTRY = [column for column in MemoryRow.__table__.columns if column.name in SlotEntry.__dataclass_fields__]
_TOLD = (MemorySourceRow.message_id, MemorySourceRow.span_start, MemorySourceRow.span_end)


async def slots(session: Session, user_id: str, wanted: Sequence[str]) -> list[SlotEntry]:
    """Return the active memories of these slots, also ended ones, with the messages that told them."""
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
            sa.select(*_SLOT_ENTRY, edited.label("edited_at"), *_TOLD, MessageRow.sent_at)
            .outerjoin(MemorySourceRow, source)
            .outerjoin(MessageRow, message)
            .where(MemoryRow.user_id == user_id, MemoryRow.slot.in_(some), MemoryRow.status == "active")
            .order_by(MemoryRow.valid_from, MemoryRow.id, MemorySourceRow.message_id)
        )
        for row in await session.rows(statement):
            if row.id not in found:
                found[row.id] = from_row(SlotEntry, row, told=())
            if row.sent_at is not None:
                by = Source(message_id=row.message_id, start=row.span_start, end=row.span_end)
                told[row.id].append((row.sent_at, by))
    entries = [replace(entry, told=tuple(told[entry.id])) for entry in found.values()]
    return sorted(entries, key=lambda entry: (entry.valid_from, entry.id))
