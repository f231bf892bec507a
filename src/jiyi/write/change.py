"""Changing a memory that is there: update, archive, restore."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic import JsonValue

from .. import validation
from ..embed import Embedder
from ..errors import InvalidInput, NotFound, VersionConflict
from ..models import UNSET, MemoryItem, Revision, Status, Unset, layer_of, utc_now
from ..store.contract import EXTRACTED, Change
from ..text.summary import summarise
from .build import statement_hash
from .index import KeywordRules, embed_entries, index_entry

if TYPE_CHECKING:
    from ..store.store import Store

FOUND_BY = frozenset({"content", "summary", "tags"})  # a change of these changes what the memory is found by
TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at")
TRIES = 100
MAX_VERSION = 10**9


class Changes(TypedDict, total=False):
    """The fields that `update` changes, as callers pass them. None, or leaving it out, keeps a field."""

    content: str | None
    summary: str | None
    memory_type: str | None
    importance: float | None
    tags: Sequence[str] | None
    metadata: dict[str, JsonValue] | None
    occurred_at: datetime | None
    valid_to: datetime | Unset | None  # None removes it
    expires_at: datetime | Unset | None  # None removes it
    status: Status | None


def changed_fields(
    *,
    content: str | None = None,
    summary: str | None = None,
    memory_type: str | None = None,
    importance: float | None = None,
    tags: Sequence[str] | None = None,
    metadata: dict[str, JsonValue] | None = None,
    occurred_at: datetime | None = None,
    valid_to: datetime | Unset | None = UNSET,
    expires_at: datetime | Unset | None = UNSET,
    status: Status | None = None,
) -> dict[str, Any]:
    """Return the fields to change, validated."""
    given: dict[str, Any] = {}
    if content is not None:
        given["content"] = validation.text("content", content)
    if summary is not None:
        given["summary"] = validation.text("summary", summary)
    if memory_type is not None:
        given["memory_type"] = validation.memory_type("memory_type", memory_type)
    if importance is not None:
        given["importance"] = validation.share("importance", importance)
    if tags is not None:
        given["tags"] = list(validation.tags("tags", tags))
    if metadata is not None:
        given["metadata"] = validation.json_object("metadata", metadata)
    if occurred_at is not None:
        given["occurred_at"] = validation.time("occurred_at", occurred_at)
    if not isinstance(valid_to, Unset):
        given["valid_to"] = validation.optional_time("valid_to", valid_to)
    if not isinstance(expires_at, Unset):
        given["expires_at"] = validation.optional_time("expires_at", expires_at)
    if status is not None:
        given["status"] = validation.status("status", status)
    if not given:
        raise InvalidInput("update", "names nothing to change")
    return given


async def change(
    memory_id: str,
    given: dict[str, Any],
    *,
    user_id: str,
    version: int | None,
    action: str,
    actor: str,
    reason: str | None,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> MemoryItem:
    """Compare and set. Nothing is locked while the new text is embedded: if somebody else was faster, a caller who
    named a version is told, and one who did not gets the change applied to what is there now."""
    validation.name("memory_id", memory_id)
    validation.name("user_id", user_id)
    validation.name("actor", actor)
    if version is not None:
        validation.whole("version", version, highest=MAX_VERSION)
    if reason is not None:
        validation.text("reason", reason)
    for attempt in range(TRIES):
        memory = await existing(store, user_id, memory_id)
        prepared = await _prepare(memory, given, embedder, rules, action=action, actor=actor, reason=reason)
        # What it is found by was worked out from the text as it was; any other change fits whatever is there now.
        expected = memory.version if version is None and prepared.index is not None else version
        try:
            await store.edits.update(user_id, memory.id, prepared, version=expected)
            break
        except VersionConflict:
            if version is not None or attempt == TRIES - 1:
                raise
    return await existing(store, user_id, memory.id)


async def restore(
    memory_id: str,
    *,
    user_id: str,
    version: int | None,
    actor: str,
    reason: str | None,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> MemoryItem:
    """Change a memory back to an earlier version, by default the one before its last change."""
    changes = await store.history.get(validation.name("user_id", user_id), validation.name("memory_id", memory_id))
    wanted = None if version is None else validation.whole("version", version, highest=MAX_VERSION)
    number, given = earlier_state(changes, wanted)
    return await change(
        memory_id,
        given,
        user_id=user_id,
        version=changes[-1].version,
        action="restore",
        actor=actor,
        reason=reason or f"back to version {number}",
        store=store,
        embedder=embedder,
        rules=rules,
    )


def earlier_state(changes: Sequence[Revision], version: int | None) -> tuple[int, dict[str, Any]]:
    """The number of an earlier version, by default the one before the last change, and what the memory was then."""
    newest = changes[-1].version
    wanted = newest - 1 if version is None else version
    states = {revision.version: revision.after for revision in changes}
    if wanted not in states or wanted == newest:
        memory_id = changes[-1].memory_id
        raise InvalidInput("version", f"memory {memory_id} is at version {newest} and cannot go back to {wanted}")
    state: dict[str, Any] = dict(states[wanted])
    for name in TIMES:
        state[name] = state[name] and datetime.fromisoformat(state[name])
    return wanted, state


async def existing(store: Store, user_id: str, memory_id: str) -> MemoryItem:
    found = await store.memories.get(user_id, [memory_id])
    if not found:
        raise NotFound(f"user {user_id!r} has no memory {memory_id!r}")
    return found[0]


async def _prepare(
    memory: MemoryItem,
    given: dict[str, Any],
    embedder: Embedder,
    rules: KeywordRules,
    *,
    action: str,
    actor: str,
    reason: str | None,
) -> Change:
    change = await asyncio.to_thread(prepare, memory, given, rules, action=action, actor=actor, reason=reason)
    [change], _ = await embed_changes([change], [memory], embedder)
    return change


def prepare(
    memory: MemoryItem, given: dict[str, Any], rules: KeywordRules, *, action: str, actor: str, reason: str | None
) -> Change:
    """The change, worked out but for the vector."""
    values = dict(given)
    if "content" in values and "summary" not in values and memory.summary == summarise(memory.content):
        values["summary"] = summarise(values["content"])  # it was made from the content, and stays so
    if "content" in values and "data" not in values and "value" in memory.data:
        values["data"] = {
            name: value for name, value in memory.data.items() if name != "value"
        }  # it was the old text's
    if "memory_type" in values:
        values["layer"] = layer_of(values["memory_type"])
    after = memory.model_dump() | values
    entry = None
    if FOUND_BY & values.keys():
        entry = index_entry(after["content"], after["summary"], after["tags"], after["data"], rules)
    says_otherwise = memory.source in ("statement", EXTRACTED) and {"content", "memory_type"} & values.keys()
    own_key = memory.memory_key if memory.memory_key != memory.id else None
    said = statement_hash(
        after["content"], after["memory_type"], memory.agent_id, memory.group_id, own_key, memory.trust
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
    """The changes with their vectors, where they need one; and what went wrong. `memories`: what they change."""
    found = [(at, change.index) for at, change in enumerate(changes) if change.index is not None]
    texts = [str(changes[at].values.get("content", memories[at].content)) for at, _ in found]
    entries, problem = await embed_entries([entry for _, entry in found], texts, embedder)
    done = list(changes)
    for (at, _), entry in zip(found, entries, strict=True):
        done[at] = replace(done[at], index=entry)
    return done, problem
