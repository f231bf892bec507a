"""MongoDB: one document per unit of conversation, and one per memory in the collection of its type, with its units and
the messages it came from. Other services can read it, and `jiyi import mongodb://…` reads it back."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr

from ..errors import EngineError, MissingExtra
from ..models import MemoryItem, SourceMessage
from ..settings import EngineSettings
from ..store.units import to_unit
from ..store.upkeep.engine_memories import UNITS, Projected, ProjectedMemory, ProjectedMessage, ProjectedUnit
from .addresses import without_login
from .base import digest_of, document_key, identity_of, memories_in, user_key

T = TypeVar("T")

OF_UNITS = "memunits"
COLLECTIONS = {
    "message": "messages",
    "episode": "episodic_memories",
    "event": "event_logs",
    "behavior": "behavior_histories",
    "profile": "profiles",
    "group_profile": "group_profiles",
}
OTHERS = "semantic_memories"
KEY = "user_key_1"  # an index by it: a collection without one was not made by `create`
ALL = (OF_UNITS, *COLLECTIONS.values(), OTHERS)
OURS = {"digest": {"$exists": True}}  # other programs may have documents in these collections


class MongoDB:
    """Documents in MongoDB."""

    name = "mongodb"
    parts = frozenset(("keywords", "messages", UNITS))

    def __init__(self, given: EngineSettings) -> None:
        try:
            import pymongo
        except ImportError as error:
            raise MissingExtra("mongodb", "pymongo") from error
        self._replace, self._failure = pymongo.ReplaceOne, pymongo.errors.PyMongoError
        url = "" if given.mongodb_url is None else given.mongodb_url.get_secret_value()
        limit = int(given.timeout_s * 1000)
        files = {"tlsCAFile": given.ca_file, "tlsCertificateKeyFile": given.cert_file}
        limits = ("serverSelectionTimeoutMS", "socketTimeoutMS", "connectTimeoutMS")
        options: dict[str, Any] = dict.fromkeys(limits, limit)
        options |= {name: str(path) for name, path in files.items() if path is not None and _is_encrypted(url)}
        self._client: Any = pymongo.AsyncMongoClient(url, **options)
        self._database = self._client.get_default_database(given.prefix)
        self.identity = identity_of(without_login(url), given.prefix)

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
            await self._ask(self._database[name].create_index([("user_key", 1), ("message_id_list", 1)]))
        return not there

    async def write(self, user_id: str, documents: Sequence[Projected], deleted: Sequence[str]) -> None:
        """Replace documents. The type of a changed memory may be another one, so it is removed elsewhere. Deletions
        come last: if this is repeated, `siblings` needs what was to be deleted."""
        await self.load(documents)
        memories = memories_in(documents)
        for name in ALL:
            elsewhere = [one.id for one in memories if one.version > 1 and collection_of(one) != name]
            keys = [document_key(user_id, one) for one in (*deleted, *elsewhere)]
            if keys:
                await self._ask(self._database[name].delete_many({"_id": {"$in": keys}}))

    async def siblings(self, user_id: str, ids: Sequence[str]) -> Sequence[str]:
        messages: set[str] = set()
        for name in ALL:
            own = {"_id": {"$in": [document_key(user_id, one) for one in ids]}}
            for document in await self._all(name, own, ["message_id_list"]):
                messages.update(document.get("message_id_list", ()))
        found: set[str] = set()
        for name in ALL if messages else ():
            same = {"user_key": user_key(user_id), "message_id_list": {"$in": sorted(messages)}}
            found.update(document["event_id"] for document in await self._all(name, same, ["event_id"]))
        return sorted(found.difference(ids))

    async def load(self, documents: Sequence[Projected]) -> None:
        by_collection: defaultdict[str, list[Any]] = defaultdict(list)
        for one in documents:
            document = _document(one)
            document |= {"digest": digest_of(document)}
            own = {"_id": document["_id"]}
            by_collection[collection_of(one)].append(self._replace(own, document, upsert=True))
        for name, some in by_collection.items():
            await self._ask(self._database[name].bulk_write(some, ordered=False))

    async def refresh(self) -> None:
        """Do nothing: writes are visible at once."""

    async def delete_keys(self, keys: Sequence[str]) -> None:
        for name in ALL:
            await self._ask(self._database[name].delete_many({"user_key": {"$in": list(keys)}}))

    async def digests(self, user_id: str) -> Mapping[str, str]:
        return await self._by_id(user_id, {}, ["digest"], _named_digest)

    async def hashes(self, user_id: str, ids: Sequence[str] | None) -> Mapping[str, str]:
        some = {} if ids is None else {"_id": {"$in": [document_key(user_id, one) for one in ids]}}
        return await self._by_id(user_id, some, [], _stored_digest)

    async def _by_id(
        self, user_id: str, where: Mapping[str, Any], fields: list[str], digest: Callable[[Mapping[str, Any]], str]
    ) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in ALL:
            for document in await self._all(name, {"user_key": user_key(user_id), **OURS, **where}, fields):
                own = str(document["_id"]).removeprefix(document_key(user_id, ""))
                found[own] = "in two collections" if own in found else digest(document)
        return found

    async def foreign(self) -> int:
        theirs = {"$or": [{field: {"$exists": False}} for field in ("user_key", "digest")]}
        return sum([await self._ask(self._database[name].count_documents(theirs)) for name in ALL])

    async def user_keys(self) -> set[str]:
        return {key for name in ALL for key in await self._ask(self._database[name].distinct("user_key")) if key}

    async def _all(self, name: str, where: Mapping[str, Any], fields: list[str]) -> list[dict[str, Any]]:
        return await self._ask(self._database[name].find(where, dict.fromkeys(fields, 1) or None).to_list())

    async def drop(self) -> None:
        for name in ALL:
            await self._ask(self._database[name].drop())

    async def loaded(self) -> None:
        """Do nothing: there are no vectors."""

    async def publish(self) -> None:
        """Do nothing: documents are replaced in place."""

    async def tidy(self) -> None:
        """Do nothing: documents are replaced in place."""

    async def close(self) -> None:
        await self._client.close()

    def digest(self, document: Projected) -> str | None:
        return digest_of(_document(document))


def _is_encrypted(url: str) -> bool:
    """Return True if the driver encrypts connections to an address: certificates are for these only."""
    return url.startswith("mongodb+srv:") or "tls=true" in url or "ssl=true" in url


def _named_digest(document: Mapping[str, Any]) -> str:
    return str(document.get("digest", ""))


def _stored_digest(document: Mapping[str, Any]) -> str:
    return digest_of({name: value for name, value in document.items() if name != "digest"})


async def fetch(url: str, path: Path, timeout_s: float = 20.0) -> int:
    """Write the documents of all collections to a file, one JSON object per line; return their number."""
    source = MongoDB(EngineSettings(mongodb_url=SecretStr(url), timeout_s=timeout_s))
    number = 0
    try:
        with path.open("w", encoding="utf-8") as file:
            for name in ALL:
                for document in await source._ask(source._database[name].find().sort("_id").to_list()):
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


def collection_of(document: Projected) -> str:
    return OF_UNITS if isinstance(document, ProjectedUnit) else COLLECTIONS.get(document.memory_type, OTHERS)


def _document(document: Projected) -> dict[str, Any]:
    return _of_unit(document) if isinstance(document, ProjectedUnit) else _of_memory(document)


def _of_unit(projected: ProjectedUnit) -> dict[str, Any]:
    unit = to_unit(projected.stored, {memory.id: memory for memory in projected.memories})
    events = [_derived(memory) for memory in projected.memories if memory.memory_type == "event"]
    told = ("event", "episode")  # episodes have the narrative
    return {
        "_id": document_key(projected.user_id, unit.unit_id),
        "unit_id": unit.unit_id,
        "user_id": projected.user_id,
        "user_key": user_key(projected.user_id),
        "user_id_list": [projected.user_id],
        "group_id": unit.group_id,
        "session_id": unit.session_id,
        "subject": unit.subject,
        "summary": unit.summary,
        "narrative": unit.narrative,
        "participants": list(unit.participants),
        "keywords": list(dict.fromkeys(word for memory in projected.memories for word in memory.keywords)),
        "semantic_memories": [_derived(memory) for memory in projected.memories if memory.memory_type not in told],
        "event_log": {"events": events} if events else None,
        "source_type": "conversation",
        "timestamp": _time(unit.started_at),
        "ended_at": _time(unit.ended_at),
        "original_data": [_message(message) for message in unit.messages],
    }


def _derived(memory: MemoryItem) -> dict[str, Any]:
    return {"event_id": memory.id, "memory_type": memory.memory_type, "content": memory.content}


def _of_memory(memory: ProjectedMemory) -> dict[str, Any]:
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
        "memunit_id_list": list(dict.fromkeys(one.unit_id for one in memory.messages if one.unit_id is not None)),
        "message_id_list": [message.id for message in memory.messages],
        "original_data": [_message(message) for message in memory.messages],
    }


def _message(message: ProjectedMessage | SourceMessage) -> dict[str, Any]:
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
