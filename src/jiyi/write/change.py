"""Change a stored memory: update, archive, restore."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Unpack

from .. import validation
from ..embed import Embedder
from ..errors import InvalidInput, NotFound, VersionConflict
from ..memory_types import layer_of
from ..models import MemoryItem, Revision, Unset, utc_now
from ..models.shown_dates import kept_times
from ..roles import told_by
from ..scope import Changes
from ..store.store import Store
from ..store.write_set import EXTRACTED, STATED, Change, ChangedMemory
from ..text.passages import summarise
from .build import statement_hash
from .index import KeywordRules, embed_entries, index_entry
from .parse.divide_messages import with_divisions

FOUND_BY = frozenset({"content", "summary", "tags", "memory_type"})  # a change of these changes the index entry
TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at")
TRIES = 100
MAX_VERSION = 10**9
SHORTEST_BEGINNING = 8  # of an id


_VALIDATORS: dict[str, Callable[[str, Any], Any]] = {
    "content": validation.text,
    "summary": validation.text,
    "memory_type": validation.memory_type,
    "importance": validation.share,
    "tags": lambda name, tags: list(validation.tags(name, tags)),
    "metadata": validation.json_object,
    "occurred_at": validation.time,
    "valid_to": validation.optional_time,
    "expires_at": validation.optional_time,
    "status": validation.status,
}
_REMOVABLE = frozenset({"valid_to", "expires_at"})  # None removes the value


def changed_fields(**changes: Unpack[Changes]) -> dict[str, Any]:
    """Return the fields to change, validated."""
    if unknown := changes.keys() - _VALIDATORS.keys():
        raise TypeError(f"update() got an unexpected keyword argument {min(unknown)!r}")
    given = {
        name: _VALIDATORS[name](name, value)
        for name, value in changes.items()
        if not isinstance(value, Unset) and (value is not None or name in _REMOVABLE)
    }
    if not given:
        raise InvalidInput("update", "names nothing to change")
    return given


async def change(
    memory_id: str,
    given: dict[str, Any],
    *,
    user_id: str,
    expected: int | None,
    action: str,
    actor: str,
    reason: str | None,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> MemoryItem:
    """Compare and set, without a lock while the new text is embedded. If another writer was faster, a caller who named
    a version gets `VersionConflict`; otherwise the change is applied to the new state."""
    validation.name("memory_id", memory_id)
    validation.name("user_id", user_id)
    validation.name("actor", actor)
    if expected is not None:
        validation.whole("expected_version", expected, highest=MAX_VERSION)
    if reason is not None:
        validation.text("reason", reason)
    for attempt in range(TRIES):
        memory = await named(store, user_id, memory_id)
        work = partial(prepare, memory, given, rules, action=action, actor=actor, reason=reason)
        changes, _ = await embed_changes([await asyncio.to_thread(work)], [memory], embedder)
        [prepared] = await with_divisions(changes, [memory], store=store, embedder=embedder, rules=rules)
        # An index entry is that of the text as read; any other change fits every version.
        version = memory.version if expected is None and prepared.index is not None else expected
        try:
            await store.edits.update(user_id, memory.id, prepared, version=version)
            break
        except VersionConflict:
            if expected is not None or attempt == TRIES - 1:
                raise
    return await existing(store, user_id, memory.id)


@dataclass(frozen=True, slots=True)
class WantedChange:
    """A change of a memory that depends on its present state."""

    user_id: str
    memory_id: str
    changes: Callable[[MemoryItem], Changes]


async def change_all(
    wanted: Sequence[WantedChange],
    *,
    actor: str,
    reason: str | None = None,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> list[MemoryItem]:
    """Change memories of any users in one transaction, or none of them. If another writer was faster, the changes are
    made to the new states."""
    for attempt in range(TRIES):
        memories = [await existing(store, one.user_id, one.memory_id) for one in wanted]
        given = [changed_fields(**one.changes(memory)) for one, memory in zip(wanted, memories, strict=True)]
        prepared = [
            await asyncio.to_thread(
                partial(prepare, memory, fields, rules, action="update", actor=actor, reason=reason)
            )
            for memory, fields in zip(memories, given, strict=True)
        ]
        changes, _ = await embed_changes(prepared, memories, embedder)
        changes = await with_divisions(changes, memories, store=store, embedder=embedder, rules=rules)
        pairs = zip(memories, changes, strict=True)
        try:
            await store.edits.update_all(
                [
                    (memory.user_id, ChangedMemory(id=memory.id, change=one, version=memory.version))
                    for memory, one in pairs
                ]
            )
            break
        except VersionConflict:
            if attempt == TRIES - 1:
                raise
    return [await existing(store, memory.user_id, memory.id) for memory in memories]


async def restore(
    memory_id: str,
    *,
    user_id: str,
    to_version: int | None,
    expected: int | None,
    actor: str,
    reason: str | None,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> MemoryItem:
    """Change a memory back to an earlier version, by default the one before its last change."""
    memory = await named(store, validation.name("user_id", user_id), validation.name("memory_id", memory_id))
    changes = await store.history.get(user_id, memory.id)
    wanted = None if to_version is None else validation.whole("to_version", to_version, highest=MAX_VERSION)
    if expected is not None and changes[-1].version != expected:
        raise VersionConflict(changes[-1].memory_id, expected=expected, actual=changes[-1].version)
    number, given = earlier_state(changes, wanted)
    return await change(
        memory_id,
        given,
        user_id=user_id,
        expected=changes[-1].version,
        action="restore",
        actor=actor,
        reason=reason or f"back to version {number}",
        store=store,
        embedder=embedder,
        rules=rules,
    )


def earlier_state(changes: Sequence[Revision], version: int | None) -> tuple[int, dict[str, Any]]:
    """Return the number of an earlier version, by default the one before the last change, and its fields."""
    newest = changes[-1].version
    wanted = newest - 1 if version is None else version
    states = {revision.version: revision.after for revision in changes}
    if wanted not in states or wanted == newest:
        memory_id = changes[-1].memory_id
        raise InvalidInput("to_version", f"memory {memory_id} is at version {newest} and cannot go back to {wanted}")
    state: dict[str, Any] = dict(states[wanted])
    for name in TIMES:
        state[name] = state[name] and datetime.fromisoformat(state[name])
    return wanted, state


async def existing(store: Store, user_id: str, memory_id: str) -> MemoryItem:
    """Return a memory by id or memory_key, or raise `NotFound`."""
    found = await store.memories.get(user_id, [memory_id])
    if not found:
        raise NotFound(f"user {user_id!r} has no memory {memory_id!r}")
    return found[0]


async def named(store: Store, user_id: str, name: str) -> MemoryItem:
    """Return a memory by id, memory_key or a unique beginning of its id, or raise `NotFound`."""
    try:
        return await existing(store, user_id, name)
    except NotFound:
        ids = await store.memories.starting(user_id, name, limit=2) if len(name) >= SHORTEST_BEGINNING else []
        if len(ids) > 1:
            raise NotFound(f"several memories of user {user_id!r} start with {name!r}: give more of the id") from None
        if not ids:
            raise
    return await existing(store, user_id, ids[0])


def prepare(
    memory: MemoryItem, given: dict[str, Any], rules: KeywordRules, *, action: str, actor: str, reason: str | None
) -> Change:
    """Return the change without the vector of its index entry."""
    values = dict(given)
    if "content" in values and "summary" not in values and memory.summary == summarise(memory.content):
        values["summary"] = summarise(values["content"])  # it was made from the content
    if "content" in values and "data" not in values:
        # The value belongs to the old text, and so do times that the new one does not name.
        data = {name: value for name, value in kept_times(values["content"], memory.data).items() if name != "value"}
        values |= {"data": data} if data != memory.data else {}
    if "memory_type" in values:
        values["layer"] = layer_of(values["memory_type"])
    after = memory.model_dump() | values
    entry = None
    if FOUND_BY & values.keys():
        texts = (after["content"], after["summary"], after["tags"])
        entry = index_entry(*texts, after["data"], after["memory_type"], rules)
    says_otherwise = memory.source in (STATED, EXTRACTED) and {"content", "memory_type"} & values.keys()
    own_key = memory.memory_key if memory.memory_key != memory.id else None
    by = told_by(after["data"], memory.user_id)
    said = statement_hash(
        after["content"], after["memory_type"], memory.agent_id, memory.group_id, own_key, memory.trust, by
    )
    return Change(
        values=values,
        dedupe_hash=said if says_otherwise else None,
        index=entry,
        action=action,
        actor=actor,
        reason=reason,
        at=utc_now(),
    )


async def embed_changes(
    changes: Sequence[Change], memories: Sequence[MemoryItem], embedder: Embedder
) -> tuple[list[Change], str | None]:
    """Return the changes with vectors for their index entries, and the problem, if any."""
    found = [(at, change.index) for at, change in enumerate(changes) if change.index is not None]
    texts = [str(changes[at].values.get("content", memories[at].content)) for at, _ in found]
    entries, problem = await embed_entries([entry for _, entry in found], texts, embedder)
    done = list(changes)
    for (at, _), entry in zip(found, entries, strict=True):
        done[at] = replace(done[at], index=entry)
    return done, problem
