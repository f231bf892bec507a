"""Permanent deletion. Each function runs inside a transaction and counts the rows that it removes."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from ...errors import NotFound
from ...ids import erased, new_id
from ...models import utc_now
from ..database import Repository, chunks, writes
from ..schema.columns import METADATA
from ..schema.tables import (
    SOURCES,
    ChangeRow,
    EmbeddingRow,
    KeywordRow,
    MemoryRow,
    MemorySourceRow,
    PackedIndexRow,
    RelationRow,
    RevisionRow,
    TermsRow,
    UnitRow,
)
from ..upkeep.engine_rows import request_erasure
from ..upkeep.held_rows import Held, from_messages, held_rows
from ..upkeep.message_words import MessageParts, divide_rows, echoed_words, quoted_words, redact, without_span
from ..write_set import COMPRESSED, REST_OF, Change, IndexEntry, Unembedded
from . import job_queue as jobs
from .change_feed import ERASE, tell
from .index_entries import insert_index
from .memories import known_by_hash, memory_rows
from .messages import MESSAGE, delete_messages, units_of
from .overview_rows import forget_recalls
from .revisions import bring_back, reopen, revision_values

GROWING = ("profile", "group_profile", "episode")  # made of others: their lines may repeat a deleted memory
ACTOR = "jiyi"
# Names in a receipt.
PARTS: dict[str, Any] = {
    "vectors": EmbeddingRow,
    "terms": TermsRow,
    "keywords": KeywordRow,
    "revisions": RevisionRow,
    "sources": MemorySourceRow,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The rest of a memory that lost a part."""

    content: str
    summary: str
    data: dict[str, Any]
    dedupe_hash: str
    index: IndexEntry


# From a memory made of others, the deleted memories and the deleted messages to the same memory, what is left of it, or
# None if it goes too.
Rewrite = Callable[[Held, Sequence[Held], frozenset[str]], Held | Rewritten | None]


@dataclass(slots=True, kw_only=True)
class Erasure:
    """Counts of removed rows, memories removed with them, and memories that were rewritten or restored."""

    removed: Counter[str] = field(default_factory=Counter)
    derived: list[str] = field(default_factory=list)
    rewritten: list[Unembedded] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    divided: list[Unembedded] = field(default_factory=list)  # statements that are left of messages
    redacted: int = 0  # messages that lost words and state more
    kept_messages: int = 0  # sources that stay because other memories came from them


# -- affected memories -----------------------------------------------------------------------------------------------


def _stating_more(session: Session, user_id: str, messages: frozenset[str], gone: Mapping[str, Held]) -> frozenset[str]:
    """Return the messages of memories that stay: others derived from them, and the same message of another agent."""
    derived = {(one.agent_id, one.group_id) for one in gone.values() if one.source != MESSAGE}
    staying = [
        one
        for one in from_messages(session, user_id, messages)
        if one.id not in gone and (one.source != MESSAGE or (one.agent_id, one.group_id) not in derived)
    ]
    return frozenset[str]().union(*(one.messages for one in staying))


def _made_of(session: Session, user_id: str, gone: dict[str, Held], messages: frozenset[str]) -> list[Held]:
    """Return memories that may contain a removed text: all profiles, and episodes of the same messages."""
    profiles = select(MemoryRow.id).where(MemoryRow.user_id == user_id, MemoryRow.memory_type.in_(GROWING[:2]))
    near = messages.union(*(one.messages for one in gone.values()))
    episodes = [one for one in from_messages(session, user_id, near) if one.memory_type == GROWING[2]]
    found = [*held_rows(session, user_id, session.scalars(profiles).all()), *episodes]
    return [one for one in found if one.id not in gone]


def _stand_ins(session: Session, user_id: str, gone: dict[str, Held]) -> list[str]:
    """Add compressed memories that contain a removed one, and what was left of it; return the other members, to be
    restored."""
    again: dict[str, None] = {}
    new = list(gone)
    while new:
        found = select(RelationRow.memory_id).join(
            MemoryRow, and_(MemoryRow.user_id == RelationRow.user_id, MemoryRow.id == RelationRow.memory_id)
        )
        standing = [
            memory_id
            for some in chunks(new)
            for memory_id in session.scalars(
                found.where(
                    RelationRow.user_id == user_id,
                    RelationRow.target_id.in_(some),
                    RelationRow.relation_type == "refines",
                    or_(MemoryRow.source == COMPRESSED, MemoryRow.data[REST_OF].as_string().is_not(None)),
                ).distinct()
            ).all()
        ]
        new = [memory_id for memory_id in dict.fromkeys(standing) if memory_id not in gone]
        gone |= {one.id: one for one in held_rows(session, user_id, new)}
        for some in chunks(new):
            members = select(RelationRow.target_id).where(
                RelationRow.user_id == user_id, RelationRow.memory_id.in_(some), RelationRow.relation_type == "refines"
            )
            again |= dict.fromkeys(session.scalars(members).all())
    return list(again)


# -- changes ---------------------------------------------------------------------------------------------------------


def _rewrite(session: Session, user_id: str, held: Held, left: Rewritten) -> Unembedded:
    """Replace the text and start the history anew, because it contains what was deleted. The vector is made later."""
    now = utc_now()
    mine = and_(MemoryRow.user_id == user_id, MemoryRow.id == held.id)
    version = (session.scalar(select(MemoryRow.version).where(mine)) or 0) + 1
    values = {
        "content": left.content,
        "summary": left.summary,
        "data": left.data,
        "dedupe_hash": left.dedupe_hash,
        "near_hash": left.index.near_hash,
        "version": version,
        "updated_at": now,
    }
    session.execute(update(MemoryRow).where(mine).values(values))
    for table in (EmbeddingRow, TermsRow, KeywordRow, RevisionRow):
        session.execute(delete(table).where(table.user_id == user_id, table.memory_id == held.id))
    insert_index(session, user_id, {held.id: left.index})
    change = Change(values={}, action="update", actor=ACTOR, reason="a part of it was deleted", at=now)
    session.execute(insert(RevisionRow), [revision_values(user_id, held.id, version, change, None)])
    tell(session, user_id, [held.id], "update")
    texts = (left.content, *left.index.passages)
    return Unembedded(user_id=user_id, memory_id=held.id, version=version, texts=texts)


def _remove(
    session: Session,
    user_id: str,
    gone: dict[str, Held],
    messages: frozenset[str],
    redacted: Collection[str],
    done: Erasure,
) -> set[str]:
    """Remove the rows; return the messages that were removed with them."""
    ids, now = list(gone), utc_now()
    words = _only_here(session, user_id, ids)
    done.removed["job payloads"] += jobs.drop_payloads(session, user_id, ids)
    for some in chunks(ids):
        for name, table in PARTS.items():
            done.removed[name] += _count(session, table, and_(table.user_id == user_id, table.memory_id.in_(some)))
        either = or_(RelationRow.memory_id.in_(some), RelationRow.target_id.in_(some))
        related = and_(RelationRow.user_id == user_id, either)
        done.removed["relations"] += _count(session, RelationRow, related)
        session.execute(delete(RelationRow).where(related))
        session.execute(delete(MemoryRow).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some)))
        tell(session, user_id, some, "delete")
    session.execute(delete(PackedIndexRow).where(PackedIndexRow.user_id == user_id))
    done.removed["memories"] += len(ids)
    touched = messages.union(*(one.messages for one in gone.values()))
    needed = {name for one in from_messages(session, user_id, touched - messages) for name in one.messages}
    orphans = sorted(messages | (touched - needed - set(redacted)))
    before = _count(session, UnitRow, UnitRow.user_id == user_id)
    tell(session, user_id, units_of(session, user_id, sorted(touched | messages)), SOURCES)
    delete_messages(session, user_id, orphans)
    done.removed["units"] += before - _count(session, UnitRow, UnitRow.user_id == user_id)
    done.removed["messages"] += len(orphans)
    done.removed["recalls"] += forget_recalls(session, user_id, ids, words)
    done.removed["job payloads"] += jobs.forget_messages(session, user_id, orphans, now)
    return set(orphans)


def _reopen(session: Session, user_id: str, gone: Mapping[str, Held]) -> list[str]:
    """Let memories that were superseded by removed ones hold again, or be superseded by the successors of these."""
    rows = [
        row
        for some in chunks(list(gone))
        for row in session.execute(
            select(MemoryRow.__table__).where(MemoryRow.user_id == user_id, MemoryRow.superseded_by.in_(some))
        ).all()
        if row.id not in gone
    ]
    now, reopened = utc_now(), []
    for row in rows:
        successor = row.superseded_by
        while successor is not None and successor in gone:
            successor = gone[successor].superseded_by
        said = row.dedupe_hash or ""
        twin = (known_by_hash(session, user_id, [said], now)).get(said, row.id)
        if successor is None and (twin == row.id or twin in gone):
            reopen(session, row, ACTOR, "its successor was deleted", now)
            reopened.append(row.id)
        else:
            mine = and_(MemoryRow.user_id == user_id, MemoryRow.id == row.id)
            session.execute(update(MemoryRow).where(mine).values(superseded_by=successor))
    return reopened


def _rests(session: Session, user_id: str, reopened: Sequence[str]) -> dict[str, Held]:
    """Return what was left of statements that hold again as a whole, unless it was edited."""
    found: list[str] = []
    for some in chunks(list(reopened)):
        joined = and_(MemoryRow.user_id == RelationRow.user_id, MemoryRow.id == RelationRow.memory_id)
        found += session.scalars(
            select(MemoryRow.id)
            .join(RelationRow, joined)
            .where(
                RelationRow.user_id == user_id,
                RelationRow.target_id.in_(some),
                MemoryRow.data[REST_OF].as_string().is_not(None),
                MemoryRow.version == 1,
            )
        ).all()
    return {one.id: one for one in held_rows(session, user_id, found)}


def _only_here(session: Session, user_id: str, ids: Sequence[str]) -> list[str]:
    """Return keywords that no other memory of the user has: recalls that contain one are removed too."""
    mine: set[str] = set()
    for some in chunks(ids):
        own = and_(KeywordRow.user_id == user_id, KeywordRow.memory_id.in_(some))
        mine.update(session.scalars(select(KeywordRow.keyword).where(own)))
    going, shared = set(ids), set[str]()
    for some in chunks(sorted(mine)):
        holders = select(KeywordRow.keyword, KeywordRow.memory_id).where(
            KeywordRow.user_id == user_id, KeywordRow.keyword.in_(some)
        )
        shared.update(word for word, memory_id in session.execute(holders).all() if memory_id not in going)
    return sorted(mine - shared)


def _bring_back(session: Session, user_id: str, memory_id: str) -> bool:
    """Restore an archived memory whose compressed form was deleted, unless another one has the same text."""
    row = session.execute(
        select(MemoryRow.__table__).where(MemoryRow.user_id == user_id, MemoryRow.id == memory_id)
    ).first()
    if row is None or row.status != "archived":
        return False
    now = utc_now()
    known = known_by_hash(session, user_id, [row.dedupe_hash or ""], now)
    if row.valid_to is None and known.get(row.dedupe_hash or "", row.id) != row.id:
        return False
    bring_back(session, row, ACTOR, "the memory that replaced it was deleted", now)
    return True


def _count(session: Session, table: Any, where: Any) -> int:
    return session.scalar(select(func.count()).select_from(table).where(where)) or 0


def _delete(
    session: Session,
    user_id: str,
    memory_ids: Sequence[str],
    *,
    with_sources: bool,
    rewrite: Rewrite,
    parts: MessageParts,
) -> Erasure:
    """Remove memories and all that belongs to them, and their words from the messages that state more. Of memories that
    quote no words, the messages that state nothing else go; `with_sources` also removes messages that state more, and
    everything that came from these messages only. What a removed memory had superseded holds again."""
    done = Erasure()
    gone = {one.id: one for one in held_rows(session, user_id, memory_ids)}
    asked = set(gone)
    if not gone:
        return done
    own = frozenset[str]().union(*(one.messages for one in gone.values()))
    words = quoted_words(session, user_id, gone) if own else {}
    words |= {name: spans for name, spans in echoed_words(session, user_id, gone, parts).items() if name not in own}
    messages = without_span(session, user_id, asked) if own else own
    if not with_sources:
        messages -= _stating_more(session, user_id, messages, gone)
    left = divide_rows(
        session, user_id, gone, {name: spans for name, spans in words.items() if name not in messages}, parts
    )
    there = from_messages(session, user_id, frozenset(left))
    staying = [one.messages for one in there if one.id not in gone and one.memory_type not in GROWING]
    messages |= {name for name, some in left.items() if not some} - frozenset[str]().union(*staying)
    words = {name: words[name] for name in left if name not in messages}
    for one in from_messages(session, user_id, messages | frozenset(words)):
        joined = bool(one.data.get("joined"))  # it quotes all of its messages
        unsupported = joined or (one.messages <= messages and not one.messages.isdisjoint(messages))
        if one.id not in gone and one.memory_type not in GROWING and unsupported:
            gone[one.id] = one
    again = _stand_ins(session, user_id, gone)
    for held in _made_of(session, user_id, gone, messages):
        left_of_it = rewrite(
            held, list(gone.values()), messages | (words.keys() if held.memory_type == GROWING[2] else set())
        )
        if left_of_it is None:
            gone[held.id] = held
        elif isinstance(left_of_it, Rewritten):
            done.rewritten.append(_rewrite(session, user_id, held, left_of_it))
    done.restored = _reopen(session, user_id, gone)
    gone |= _rests(session, user_id, done.restored)
    done.derived = sorted(set(gone) - asked)
    done.divided = redact(session, user_id, words, {name: left[name] for name in words})
    done.redacted = len(words)
    orphans = _remove(session, user_id, gone, messages, words.keys(), done)
    done.kept_messages = len({name for one in asked for name in gone[one].messages} - orphans - words.keys())
    for memory_id in again:
        if memory_id not in gone and _bring_back(session, user_id, memory_id):
            done.restored.append(memory_id)
    return done


class Deletions(Repository):
    """Permanent deletion."""

    @writes
    def delete(
        self,
        session: Session,
        user_id: str,
        memory_ids: Sequence[str],
        *,
        with_sources: bool,
        rewrite: Rewrite,
        parts: MessageParts,
    ) -> Erasure:
        return _delete(session, user_id, memory_ids, with_sources=with_sources, rewrite=rewrite, parts=parts)

    async def delete_each(
        self,
        wanted: Mapping[str, Sequence[str]],
        *,
        with_sources: bool,
        rewrite: Rewrite,
        parts: MessageParts,
        all_or_none: bool,
    ) -> dict[str, Erasure]:
        """Remove memories of users in one transaction; with `all_or_none` nothing, and `NotFound`, if one does not
        exist."""

        def work(session: Session) -> dict[str, Erasure]:
            done = {}
            for user_id, ids in wanted.items():
                if all_or_none:
                    there = memory_rows(session, user_id, ids)
                    if missing := [memory_id for memory_id in ids if memory_id not in there]:
                        raise NotFound(f"user {user_id!r} has no memory {missing[0]!r}")
                done[user_id] = _delete(session, user_id, ids, with_sources=with_sources, rewrite=rewrite, parts=parts)
            return done

        return await self._database.write(list(wanted), work)

    @writes
    def delete_user(self, session: Session, user_id: str) -> Erasure:
        """Remove everything of exactly this user."""
        done = Erasure()
        names = {"embeddings": "vectors", "memory_sources": "sources"}
        for table in reversed(METADATA.sorted_tables):
            if "user_id" in table.columns:
                mine = table.columns["user_id"] == user_id
                if table.name == ChangeRow.__tablename__:  # the mark of another user may have this user's name
                    mine = and_(mine, table.columns["action"] != ERASE)
                done.removed[names.get(table.name, table.name)] += _count(session, table, mine)
                session.execute(delete(table).where(mine))
        request_erasure(session, user_id)
        tell(session, erased(user_id), [new_id()], ERASE)
        return done
