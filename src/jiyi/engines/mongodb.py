"""MongoDB: one document per memory, in the collection of its type, with the messages it came from. Other services can
read it, and `jiyi import mongodb://…` reads it back."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ..errors import EngineError, MissingExtra
from ..store.upkeep.engine_memories import ProjectedMemory, ProjectedMessage
from .base import digest_of, document_key, identity_of, user_key

T = TypeVar("T")

COLLECTIONS = {
    "message": "memunits",
    "episode": "episodic_memories",
    "event": "event_logs",
    "behavior": "behavior_histories",
    "profile": "profiles",
    "group_profile": "group_profiles",
}
OTHERS = "semantic_memories"
KEY = "user_key_1"  # an index by it: a collection without one was not made by `create`
ALL = (*COLLECTIONS.values(), OTHERS)


class MongoDB:
    """Documents in MongoDB."""

    name = "mongodb"
    parts = frozenset(("keywords", "messages"))

    def __init__(self, url: str, prefix: str, timeout_s: float) -> None:
        try:
            import pymongo
        except ImportError as error:
            raise MissingExtra("mongodb", "pymongo") from error
        self._replace, self._failure = pymongo.ReplaceOne, pymongo.errors.PyMongoError
        limit = int(timeout_s * 1000)
        self._client: Any = pymongo.AsyncMongoClient(
            url, serverSelectionTimeoutMS=limit, socketTimeoutMS=limit, connectTimeoutMS=limit
        )
        self._database = self._client.get_default_database(prefix)
        self.identity = identity_of(url.rpartition("@")[2], prefix)

    async def _ask(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except self._failure as error:
            raise EngineError(f"mongodb: {error}") from error

    def use(self, generation: int) -> None:
        """Do nothing: there is one generation, in which documents are replaced."""

    async def open(self) -> str | None:
        there = set(await self._ask(self._database.list_collection_names()))
        if missing := [name for name in ALL if name not in there]:
            return f"collections are missing: {', '.join(missing)}"
        for name in ALL:
            indexes = await self._ask(self._database[name].index_information())
            if KEY not in indexes:
                return f"the collection {name} was made by another program"
        return None

    async def create(self) -> bool:
        there = set(await self._ask(self._database.list_collection_names())) & set(ALL)
        for name in ALL:
            await self._ask(self._database[name].create_index([("user_key", 1)], name=KEY))
        return not there

    async def write(self, user_id: str, memories: Sequence[ProjectedMemory], deleted: Sequence[str]) -> None:
        """Replace documents. The type of a changed memory may be another one, so it is removed elsewhere."""
        for name in ALL:
            elsewhere = [one.id for one in memories if one.version > 1 and collection_of(one) != name]
            keys = [document_key(user_id, one) for one in (*deleted, *elsewhere)]
            if keys:
                await self._ask(self._database[name].delete_many({"_id": {"$in": keys}}))
        await self.load(memories)

    async def load(self, memories: Sequence[ProjectedMemory]) -> None:
        by_collection: defaultdict[str, list[Any]] = defaultdict(list)
        for memory in memories:
            document = _document(memory)
            document |= {"digest": digest_of(document)}
            own = {"_id": document["_id"]}
            by_collection[collection_of(memory)].append(self._replace(own, document, upsert=True))
        for name, some in by_collection.items():
            await self._ask(self._database[name].bulk_write(some, ordered=False))

    async def refresh(self) -> None:
        """Do nothing: writes are visible at once."""

    async def delete_users(self, users: Sequence[str]) -> None:
        for name in ALL:
            await self._ask(self._database[name].delete_many({"user_key": {"$in": list(map(user_key, users))}}))

    async def digests(self, user_id: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name in ALL:
            for document in await self._all(name, {"user_key": user_key(user_id)}, ["event_id", "digest"]):
                twice = document["event_id"] in found
                found[document["event_id"]] = "in two collections" if twice else document["digest"]
        return found

    async def user_keys(self) -> set[str]:
        return {key for name in ALL for key in await self._ask(self._database[name].distinct("user_key"))}

    async def _all(self, name: str, where: Mapping[str, Any], fields: list[str]) -> list[dict[str, Any]]:
        return await self._ask(self._database[name].find(where, dict.fromkeys(fields, 1) or None).to_list())

    async def drop(self) -> None:
        for name in ALL:
            await self._ask(self._database[name].drop())

    async def loaded(self) -> None:
        """Do nothing: there are no vectors."""

    async def close(self) -> None:
        await self._client.close()

    def digest(self, memory: ProjectedMemory) -> str | None:
        return digest_of(_document(memory))


async def fetch(url: str, path: Path, timeout_s: float = 20.0) -> int:
    """Write the documents of all collections to a file, one JSON object per line; return their number."""
    source = MongoDB(url, "jiyi", timeout_s)
    number = 0
    try:
        with path.open("w", encoding="utf-8") as file:
            for name in ALL:
                for document in await source._all(name, {}, []):
                    line = {"collection": name, **document}
                    file.write(json.dumps(line, default=_readable, ensure_ascii=False) + "\n")
                    number += 1
    finally:
        await source.close()
    return number


def _readable(value: Any) -> str:
    if isinstance(value, datetime):  # MongoDB's own times are in UTC
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return str(value)


def collection_of(memory: ProjectedMemory) -> str:
    return COLLECTIONS.get(memory.memory_type, OTHERS)


def _document(memory: ProjectedMemory) -> dict[str, Any]:
    subject, participants = memory.data.get("subject"), memory.data.get("participants")
    return {
        "_id": document_key(memory.user_id, memory.id),
        "event_id": memory.id,
        "user_id": memory.user_id,
        "user_key": user_key(memory.user_id),
        "user_id_list": [memory.user_id],
        "group_id": memory.group_id,
        "agent_id": memory.agent_id,
        "session_id": memory.session_id,
        "memory_key": memory.memory_key,
        "memory_type": memory.memory_type,
        "layer": memory.layer,
        "status": memory.status,
        "narrative": memory.content,
        "summary": memory.summary,
        "subject": subject if isinstance(subject, str) else None,
        "participants": participants if isinstance(participants, list) else [],
        "keywords": [keyword for keyword, _, _ in memory.keywords],
        "tags": list(memory.tags),
        "data": _plain(memory.data),
        "metadata": _plain(memory.metadata),
        "importance_score": memory.importance,
        "confidence": memory.confidence,
        "trust": memory.trust,
        "timestamp": _time(memory.occurred_at),
        "valid_from": _time(memory.valid_from),
        "valid_to": _time(memory.valid_to),
        "expires_at": _time(memory.expires_at),
        "created_at": _time(memory.created_at),
        "superseded_by": memory.superseded_by,
        "source_type": memory.source,
        "version": memory.version,
        "memunit_id_list": [message.id for message in memory.messages],
        "original_data": [_message(message) for message in memory.messages],
    }


def _message(message: ProjectedMessage) -> dict[str, Any]:
    return {
        "id": message.id,
        "role": message.role,
        "speaker": message.speaker,
        "content": message.text,
        "timestamp": _time(message.sent_at),
    }


def _time(at: datetime | None) -> str | None:
    """Return a time as text: MongoDB's own times have no microseconds."""
    return None if at is None else at.isoformat()


def _plain(value: Any) -> Any:
    """Return JSON with integers that fit into 64 bits and without keys that MongoDB reads as operators."""
    match value:
        case dict():
            return {(f"\uff04{key[1:]}" if key.startswith("$") else key): _plain(one) for key, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case int() if abs(value) >= 2**63:
            return float(value)
    return value
