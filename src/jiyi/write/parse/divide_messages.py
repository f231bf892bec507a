"""The rows of messages that changes of memories divide."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ... import threads
from ...embed import Embedder
from ...models import MemoryItem
from ...scope import Scope
from ...store.repositories.messages import MESSAGE, Quotation, RepeatedMessage
from ...store.store import Store
from ...store.write_set import (
    EXTRACTED,
    NOT_INDEXED,
    SCOPE,
    Change,
    Division,
    Effects,
    NewMemory,
    NewMessage,
    NewRelation,
    StoredMemory,
    StoredMessage,
)
from ...text.fence import blank_context
from ..index import KeywordRules, embed_entries
from .divide import division, division_at_end
from .rests import rests_of


def takes_words(memory: MemoryItem, values: Mapping[str, Any]) -> bool:
    """Return True if a person's change of a memory takes words back: it has another text, or holds no longer."""
    if memory.memory_type == "message":
        return False
    return (
        values.get("content", memory.content) != memory.content
        or values.get("status", "active") != "active"
        or values.get("valid_to") is not None
    )


async def with_divisions(
    changes: Sequence[Change],
    memories: Sequence[MemoryItem],
    *,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> list[Change]:
    """Add to changes the divisions of the messages that say the same. The first change of a message has them."""
    done = list(changes)
    for user_id in dict.fromkeys(memory.user_id for memory in memories):
        own = {
            memory.id: at
            for at, memory in enumerate(memories)
            if memory.user_id == user_id and memory.source_ids and takes_words(memory, changes[at].values)
        }
        divisions = await divisions_of(list(own), user_id, store=store, embedder=embedder, rules=rules) if own else ()
        if divisions:
            first = min(own.values())
            done[first] = replace(done[first], divisions=tuple(divisions))
    return done


async def divisions_of(
    memory_ids: Sequence[str], user_id: str, *, store: Store, embedder: Embedder, rules: KeywordRules
) -> list[Division]:
    """Return the divisions of the messages of some memories, with index entries."""
    return await _indexed(await store.messages.repeated(user_id, memory_ids), division, embedder, rules)


async def _indexed(
    repeated: Sequence[RepeatedMessage],
    divide: Callable[[RepeatedMessage, KeywordRules], Division | None],
    embedder: Embedder,
    rules: KeywordRules,
) -> list[Division]:
    """Return the divisions of messages, with index entries."""
    size = sum(len(one.message.text) for one in repeated)
    found = await threads.run(size, lambda: [divide(one, rules) for one in repeated])
    divisions = [one for one in found if one is not None]
    rows = [row for one in divisions for row in one.left]
    entries, _ = await embed_entries([row.index for row in rows], [row.content for row in rows], embedder)
    indexed = dict(zip((row.id for row in rows), entries, strict=True))
    return [replace(one, left=tuple(replace(row, index=indexed[row.id]) for row in one.left)) for one in divisions]


async def with_ended_messages(
    memories: Sequence[NewMemory],
    effects: Effects,
    messages: Sequence[NewMessage],
    place: Scope,
    at: datetime,
    *,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> tuple[tuple[NewMemory, ...], Effects]:
    """Divide the messages of memories that an addition ends, stored or new, so that no message as a whole brings back
    what has ended, and keep what is left of the memories. `messages`: the new ones."""
    over = [one.id for one in effects.changes if one.change.values.get("valid_to") is not None]
    ended = [one for one in memories if one.source == EXTRACTED and one.valid_to is not None]
    if not over and not ended:
        return tuple(memories), effects
    named = {source.message_id for one in ended for source in one.sources}
    said = {one.id: one for one in (*messages, *await store.messages.get(place.user_id, sorted(named)))}
    quoted: list[tuple[Quotation, NewMessage]] = [*await store.messages.quoted(place.user_id, over)]
    quoted += [
        (Quotation(memory=one, by=by), said[by.message_id])
        for one in ended
        for by in one.sources
        if by.message_id in said
    ]
    rests = await _rests(quoted, place, at, store=store, embedder=embedder, rules=rules)
    derived = [*(one for one in memories if one.source == EXTRACTED), *(rest for rest, _ in rests)]
    verbatims = {one.id: one for one in memories if one.source == MESSAGE and one.index is not NOT_INDEXED}
    new_ids = {one.id for one in messages if not isinstance(one, StoredMessage)}
    repeated = await store.messages.repeated(place.user_id, over, sorted(named - new_ids))
    repeated += [
        RepeatedMessage(row=_stored(one, place, at), by=by, message=said[by.message_id], some=(), others=())
        for one in verbatims.values()
        for by in one.sources
        if by.message_id in named & said.keys()
    ]
    divisions = await _indexed([_quoted_by(one, derived) for one in repeated], division_at_end, embedder, rules)
    instead = {one.memory_id: one.left for one in divisions if one.memory_id in verbatims}
    stored = tuple(one for one in divisions if one.memory_id not in verbatims)
    divided: list[NewMemory] = []
    for one in memories:
        divided += [replace(one, status="archived"), *instead[one.id]] if one.id in instead else [one]
    versions = {**effects.versions, **{one.memory_id: one.version for one in stored}}
    relations = (
        NewRelation(memory_id=rest.id, target_id=old_id, relation_type="refines", strength=1.0)
        for rest, old_id in rests
    )
    more = replace(effects, versions=versions, divisions=stored, relations=(*effects.relations, *relations))
    return (*divided, *(rest for rest, _ in rests)), more


async def _rests(
    quoted: Sequence[tuple[Quotation, NewMessage]],
    place: Scope,
    at: datetime,
    *,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> list[tuple[NewMemory, str]]:
    """Return what is left of memories that have ended and is not stored yet, each with the id of that memory."""

    def work() -> list[tuple[NewMemory, str]]:
        found: dict[str, list[NewMemory]] = {}
        for one, message in quoted:
            if not found.get(one.memory.id):
                found[one.memory.id] = rests_of(one, blank_context(message.text), message.sent_at, place, rules)
        return [(rest, memory_id) for memory_id, some in found.items() for rest in some]

    rests = await threads.run(sum(len(message.text) for _, message in quoted), work)
    hashes = [rest.dedupe_hash for rest, _ in rests]
    known = await store.memories.known(place.user_id, hashes, at) if rests else ()
    new = [(rest, old_id) for rest, old_id in rests if rest.dedupe_hash not in known]
    entries, _ = await embed_entries([rest.index for rest, _ in new], [rest.content for rest, _ in new], embedder)
    return [(replace(rest, index=entry), old_id) for (rest, old_id), entry in zip(new, entries, strict=True)]


def _quoted_by(repeated: RepeatedMessage, derived: Sequence[NewMemory]) -> RepeatedMessage:
    """Add the new memories that came from a message to those that are stored."""
    quotations = [
        Quotation(memory=one, by=by) for one in derived for by in one.sources if by.message_id == repeated.message.id
    ]
    return replace(repeated, others=(*repeated.others, *quotations))


def _stored(memory: NewMemory, place: Scope, at: datetime) -> StoredMemory:
    """Return a new memory as it will be stored."""
    own = {name: getattr(memory, name) for name in StoredMemory.__dataclass_fields__ if hasattr(memory, name)}
    scope = {name: getattr(place, name) for name in ("user_id", *SCOPE)}
    counts = {"version": 1, "access_count": 0, "last_accessed_at": None, "near_hash": memory.index.near_hash}
    return StoredMemory(**{**own, **scope, **counts, "created_at": at, "updated_at": at})
