"""Items of a LangGraph store as memories: names, text, filters, reading and writing."""

import json
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import datetime, timedelta
from hashlib import blake2b
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from langgraph.store.base import GetOp, Item, MatchCondition, PutOp, SearchItem, SearchOp, get_text_at_path
from pydantic import JsonValue

from .. import validation
from ..errors import InvalidInput, MemoryKeyTaken, NotFound, StoreUnavailable
from ..memory import Memory
from ..models import CandidateMemory, MemoryItem, utc_now

log = logging.getLogger(__name__)

Namespace = tuple[str, ...]

INDEXED, UNINDEXED = "item", "unindexed_item"  # memory types; a search with a query finds the first only
TYPES = (INDEXED, UNINDEXED)
GROUP = "langgraph:"  # prefix of the groups that are namespaces
METADATA = "langgraph"  # metadata key that holds the item
ACTOR = "langgraph"
MAX_GROUPS = 32  # namespaces searched one by one; more are searched at once
PAGE = 500
TRIES = 5
REFRESH_AFTER = 0.01  # share of the TTL that must pass before a read refreshes it again
TEXT_NAMES = frozenset({"text", "content", "memory", "data", "value", "fact"})


def group_of(namespace: Namespace) -> str:
    """Return the group of a namespace; labels hold no dots."""
    return validation.name("namespace", GROUP + ".".join(namespace))


def memory_key_of(namespace: Namespace, key: str) -> str:
    """Return the memory key of an item, a hash: keys of items may be empty, long, and hold any characters."""
    if not isinstance(key, str):
        raise InvalidInput("key", f"must be text, not {type(key).__name__}")
    return GROUP + blake2b(json.dumps([namespace, key]).encode(), digest_size=20).hexdigest()


def matches(condition: MatchCondition, namespace: Namespace) -> bool:
    """Return True if a namespace has the prefix or suffix; `*` matches any label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type == "prefix":
        part = namespace[: len(path)]
    elif condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    else:
        raise InvalidInput("match_type", f"must be prefix or suffix, not {condition.match_type!r}")
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def render(value: Mapping[str, Any], fields: Sequence[str] | None) -> str:
    """Return the searchable text of an item: that of the fields, or the whole value line by line."""
    if fields is None or list(fields) == ["$"]:
        lines = list(_lines(value, ""))
    else:
        lines = [text for field in fields for text in get_text_at_path(dict(value), field)]
    text = "\n".join(line for line in lines if line.strip()).replace("\0", "")
    return text[: validation.MAX_TEXT]


def _lines(value: Any, name: str) -> list[str]:
    if isinstance(value, Mapping):
        return [line for key, inner in value.items() for line in _lines(inner, str(key))]
    if isinstance(value, (list, tuple)):
        return [line for inner in value for line in _lines(inner, name)]
    if value is None or value == "":
        return []
    # A sentence is searchable as it is; other values need their name.
    return [str(value)] if name.lower() in TEXT_NAMES else [f"{name}: {value}"]


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Return True if a value matches a filter of LangGraph."""
    return all(_matches_filter(value.get(name), condition) for name, condition in (wanted or {}).items())


def _matches_filter(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compare(value, operator, operand) for operator, operand in wanted.items())
        return isinstance(value, Mapping) and all(
            _matches_filter(value.get(name), inner) for name, inner in wanted.items()
        )
    if isinstance(wanted, (list, tuple)):
        same_length = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return same_length and all(map(_matches_filter, value, wanted))
    return bool(value == wanted)


OPERATORS = {"$eq": eq, "$ne": ne, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


def _compare(value: Any, operator: str, operand: Any) -> bool:
    if operator not in OPERATORS:
        raise InvalidInput("filter", f"{operator!r} is not one of {', '.join(OPERATORS)}")
    if operator not in ("$eq", "$ne"):
        try:
            value, operand = float(value), float(operand)
        except (TypeError, ValueError):
            return False  # not a number
    return bool(OPERATORS[operator](value, operand))


def _candidate(op: PutOp, fields: Sequence[str] | None, now: datetime) -> CandidateMemory:
    value = validation.json_object("value", _plain(op.value))
    minutes = _minutes(op.ttl)
    text = "" if op.index is False else render(value, fields if op.index is None else op.index)
    stored: dict[str, JsonValue] = {
        "namespace": list(op.namespace),
        "key": op.key,
        "value": value,
        "ttl_minutes": minutes,
    }
    name = "/".join((*op.namespace, op.key)).replace("\0", "")
    return CandidateMemory(
        content=text if text.strip() else name[: validation.MAX_TEXT],
        memory_type=INDEXED if text.strip() else UNINDEXED,
        memory_key=memory_key_of(op.namespace, op.key),
        metadata={METADATA: stored},
        expires_at=None if minutes is None else now + timedelta(minutes=minutes),
    )


def _plain(value: Any) -> Any:
    """Replace tuples by lists."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def _minutes(ttl: float | None) -> float | None:
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl < 10**8:
        raise InvalidInput("ttl", f"must be a number of minutes above 0, not {ttl!r}")
    return float(ttl)


def _stored(memory: MemoryItem) -> dict[str, Any] | None:
    """Return the item in a memory, or None if it is not an active item."""
    stored = memory.metadata.get(METADATA)
    now = utc_now()
    expired = any(end is not None and end <= now for end in (memory.expires_at, memory.valid_to))
    return None if expired or memory.status != "active" or not isinstance(stored, dict) else stored


def _search_item(memory: MemoryItem, stored: Mapping[str, Any], score: float | None) -> SearchItem:
    return SearchItem(
        namespace=tuple(stored["namespace"]),
        key=stored["key"],
        value=deepcopy(stored["value"]),
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        score=score,
    )


class Items:
    """Reads and writes the items of a store; every call names the user."""

    def __init__(self, memory: Memory, fields: Sequence[str] | None) -> None:
        self._memory = memory
        self._fields = None if fields is None else validation.names("fields", fields)

    async def namespaces(self, user_id: str) -> list[Namespace]:
        groups = await self._memory.usage.groups(user_id=user_id, memory_types=TYPES)
        return sorted(tuple(group.removeprefix(GROUP).split(".")) for group in groups if group.startswith(GROUP))

    async def get(self, user_id: str, ops: Sequence[GetOp]) -> list[Item | None]:
        there = await self._by_key(user_id, [memory_key_of(op.namespace, op.key) for op in ops])
        found: list[Item | None] = []
        for op in ops:
            memory = there.get(memory_key_of(op.namespace, op.key))
            stored = None if memory is None else _stored(memory)
            if memory is None or stored is None:
                found.append(None)
                continue
            if op.refresh_ttl:
                await self._refresh(memory, stored)
            times = {"created_at": memory.created_at, "updated_at": memory.updated_at}
            found.append(Item(value=deepcopy(stored["value"]), key=op.key, namespace=op.namespace, **times))
        return found

    async def search(self, user_id: str, op: SearchOp) -> list[SearchItem]:
        """Find items under a prefix that match the filter, best first; items without a score come last."""
        prefix = tuple(op.namespace_prefix)
        under = [name for name in await self.namespaces(user_id) if name[: len(prefix)] == prefix]
        groups: list[str | None] = [group_of(name) for name in under] if len(under) <= MAX_GROUPS else [None]
        seen: set[str] = set()
        window: list[tuple[MemoryItem, dict[str, Any], float | None]] = []
        end = op.offset + op.limit
        async for memory, score in self._ranked(user_id, op, groups):
            if len(window) >= end:
                break
            stored = _stored(memory)
            if memory.id in seen or stored is None or tuple(stored["namespace"][: len(prefix)]) != prefix:
                continue
            seen.add(memory.id)
            if passes(stored["value"], op.filter):
                window.append((memory, stored, score))
        chosen = window[op.offset : end]
        if op.refresh_ttl:
            for memory, stored, _ in chosen:
                await self._refresh(memory, stored)
        return [_search_item(memory, stored, score) for memory, stored, score in chosen]

    async def put(self, user_id: str, ops: Sequence[PutOp]) -> None:
        """Write items. If others write the same keys at the same time, update what they created, and create again what
        they deleted."""
        now = utc_now()
        left = {memory_key_of(op.namespace, op.key): op for op in ops}
        new = {key: _candidate(op, self._fields, now) for key, op in left.items() if op.value is not None}
        for namespace in {left[key].namespace for key in new}:
            group_of(namespace)  # raises for a name that is too long, before anything is written
        for attempt in range(TRIES):
            there = await self._by_key(user_id, list(left))
            try:
                await self._add(user_id, {key: new[key] for key in left if key in new and key not in there}, left)
                done = {key for key in left if key not in there}
            except MemoryKeyTaken:
                if attempt == TRIES - 1:
                    raise
                done = set()
            for key, memory in there.items():
                if await self._change(memory, new.get(key)):
                    done.add(key)
            left = {key: op for key, op in left.items() if key not in done}
            if not left:
                return
        raise StoreUnavailable(f"{len(left)} items were changed by others {TRIES} times: put them again")

    async def _add(self, user_id: str, new: Mapping[str, CandidateMemory], wanted: Mapping[str, PutOp]) -> None:
        by_namespace: defaultdict[Namespace, list[CandidateMemory]] = defaultdict(list)
        for key, candidate in new.items():
            by_namespace[wanted[key].namespace].append(candidate)
        for namespace, candidates in by_namespace.items():
            receipt = await self._memory.add(candidates, user_id=user_id, group_id=group_of(namespace), actor=ACTOR)
            for problem in receipt.problems:
                log.warning("%s", problem)

    async def _change(self, memory: MemoryItem, new: CandidateMemory | None) -> bool:
        """Overwrite or delete a memory. Return False if it is gone and must be created again."""
        try:
            if new is None:
                await self._memory.delete(memory.id, user_id=memory.user_id)
            else:
                await self._memory.update(
                    memory.id,
                    user_id=memory.user_id,
                    content=new.content,
                    memory_type=new.memory_type,
                    metadata=new.metadata,
                    expires_at=new.expires_at,
                    valid_to=None,
                    status="active",
                    actor=ACTOR,
                )
        except NotFound:
            return new is None
        return True

    async def _by_key(self, user_id: str, keys: Sequence[str]) -> dict[str, MemoryItem]:
        found: dict[str, MemoryItem] = {}
        for start in range(0, len(keys), PAGE):
            some = await self._memory.get_many(keys[start : start + PAGE], user_id=user_id)
            found |= {memory.memory_key: memory for memory in some}
        return found

    async def _refresh(self, memory: MemoryItem, stored: Mapping[str, Any]) -> None:
        """Restart the time to live after a read."""
        if stored["ttl_minutes"] is None:
            return
        life = timedelta(minutes=stored["ttl_minutes"])
        expires_at = utc_now() + life
        if memory.expires_at is not None and expires_at - memory.expires_at >= life * REFRESH_AFTER:
            with suppress(NotFound):
                await self._memory.update(
                    memory.id, user_id=memory.user_id, expires_at=expires_at, actor=ACTOR, reason="read: TTL refreshed"
                )

    async def _ranked(
        self, user_id: str, op: SearchOp, groups: Sequence[str | None]
    ) -> AsyncIterator[tuple[MemoryItem, float | None]]:
        """Yield the hits of all groups by score, then all items, hits included again."""
        if op.query and op.query.strip():
            limit = validation.MAX_LIMIT if op.filter or groups == [None] else op.offset + op.limit
            scores: dict[str, float] = {}
            for group_id in groups:
                scores |= await self._scores(user_id, op.query, group_id, min(max(limit, 1), validation.MAX_LIMIT))
            ids = sorted(scores, key=lambda memory_id: -scores[memory_id])
            for start in range(0, len(ids), PAGE):
                for memory in await self._memory.get_many(ids[start : start + PAGE], user_id=user_id):
                    yield memory, scores[memory.id]
        for group_id in groups:
            cursor = None
            while True:
                page = await self._memory.list(
                    user_id=user_id, group_id=group_id, memory_types=TYPES, limit=PAGE, cursor=cursor
                )
                for memory in page.items:
                    yield memory, None
                cursor = page.next_cursor
                if cursor is None:
                    break

    async def _scores(self, user_id: str, query: str, group_id: str | None, limit: int) -> dict[str, float]:
        found = await self._memory.search(
            query, user_id=user_id, group_id=group_id, memory_types=[INDEXED], limit=limit
        )
        for reason in found.degraded:
            log.warning("search: %s", reason)
        return {hit.id: hit.relevance_score for hit in found.hits}
