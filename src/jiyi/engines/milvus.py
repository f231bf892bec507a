"""Milvus: one collection per embedding model, one entity per vector, partitioned by user.

Values that filters compare are stored as hashes: they have a fixed length, and no name of a user or tag can be read as
part of a filter expression.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import EngineError, MissingExtra, SettingsError
from ..models import to_micros
from ..scope import Filter
from ..settings import EngineSettings
from ..store.upkeep.engine_memories import Projected, ProjectedMemory
from .addresses import token_and_address
from .base import FOREVER, digest_of, document_key, identity_of, memories_in, micros, user_key

T = TypeVar("T")

FORMAT = "2"  # of the entities: of another one everything is loaded anew
INDEX = {"index_type": "HNSW", "metric_type": "COSINE", "params": {"M": 16, "efConstruction": 100}}
# milvus-lite visits every entity in each search: an index takes three quarters of the loading and gains nothing.
LITE, EXACT = "milvus_lite", {"index_type": "FLAT", "metric_type": "COSINE"}
HASH = 32  # characters
AT_ONCE = 500  # memories
FLUSH_FROM = 1000  # entities: fewer are compared one by one until the server flushes by itself
PAGE = 2000
NAMES = ("memory_type", "layer", "session_id", "agent_id", "group_id")
TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at", "created_at")


class Milvus:
    """Vectors in Milvus, or in milvus-lite."""

    name = "milvus"
    parts = frozenset(("keywords", "vectors"))

    def __init__(self, given: EngineSettings, model: str) -> None:
        try:
            import grpc
            import pymilvus
        except ImportError as error:
            raise MissingExtra("milvus", "pymilvus") from error
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # failures are raised, and logged by Jiyi in one line
        self._pymilvus = pymilvus
        self._errors = (pymilvus.MilvusException, grpc.RpcError, OSError)  # the client lets some of the second through
        url = "" if given.milvus_url is None else given.milvus_url.get_secret_value()
        self._token, self._url = token_and_address(url)
        self._files = _certificates(given)
        self._replicas = max(given.replicas, 1)
        self.identity = identity_of(self._url, given.prefix, model, FORMAT)
        self._model = model
        self._prefix = f"{given.prefix}_v_"
        self._of_model = f"{self._prefix}{user_key(model)[:12]}_"  # then the generation
        self._generation = 0
        self.use(1)
        self._timeout_s = given.timeout_s
        self._connected: Any = None
        self._unflushed = 0  # entities
        self._connecting: asyncio.Task[Any] | None = None

    def use(self, generation: int) -> None:
        if generation == self._generation:
            return
        self._generation = generation
        self._collection = f"{self._of_model}{generation}"
        self._ready = False  # it exists and is loaded
        self._awaited = False  # nothing is loaded yet: the first vectors create the collection
        self._dimension: int | None = None

    async def _call(self, work: Callable[[Any], T]) -> T:
        """Run calls of the client in a thread; after a failure the next call connects anew."""
        try:
            client = self._connected
            if client is None:
                if self._connecting is None:
                    self._connecting = asyncio.create_task(asyncio.to_thread(self._connect))
                    self._connecting.add_done_callback(self._connection_made)
                client = await asyncio.shield(self._connecting)  # goes on if this call has no time left
            return await asyncio.to_thread(work, client)
        except self._errors as error:
            self._connected = None
            raise EngineError(f"milvus: {_short(error)}") from error

    def _connection_made(self, task: asyncio.Task[Any]) -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._connected = task.result()

    def _connect(self) -> Any:
        client = self._pymilvus.MilvusClient(uri=self._url, token=self._token, timeout=self._timeout_s, **self._files)
        self._ready = False
        return client

    def _collections(self, client: Any) -> list[str]:
        """Return the collections of all models and generations."""
        names = client.list_collections(timeout=self._timeout_s)
        return sorted(name for name in names if name.startswith(self._prefix))

    def _is_there(self, client: Any) -> bool:
        """Return True if the collection exists; load it, so that it can be searched."""
        if not self._ready and client.has_collection(self._collection, timeout=self._timeout_s):
            client.load_collection(self._collection, timeout=self._timeout_s, replica_number=self._replicas)
            self._ready = True
        return self._ready

    def _schema(self, client: Any, dimension: int) -> Any:
        kinds = self._pymilvus.DataType
        schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("pk", kinds.VARCHAR, is_primary=True, max_length=80)
        schema.add_field("user_key", kinds.VARCHAR, max_length=HASH, is_partition_key=True)
        schema.add_field("memory_id", kinds.VARCHAR, max_length=64)
        schema.add_field("digest", kinds.VARCHAR, max_length=HASH)
        for field in NAMES:
            schema.add_field(field, kinds.VARCHAR, max_length=HASH)
        schema.add_field("tags", kinds.ARRAY, element_type=kinds.VARCHAR, max_length=HASH, max_capacity=1024)
        schema.add_field("trust", kinds.DOUBLE)
        for field in TIMES:
            schema.add_field(field, kinds.INT64)
        schema.add_field("vector", kinds.FLOAT_VECTOR, dim=dimension)
        return schema

    async def open(self) -> str | None:
        def compare(client: Any) -> str | None:
            self._ready = False
            if not client.has_collection(self._collection, timeout=self._timeout_s):
                return None if self._awaited else f"the collection {self._collection} is missing"
            there = client.describe_collection(self._collection, timeout=self._timeout_s)
            kinds = {field["name"]: field["type"] for field in there["fields"]}
            wanted = {field.name: field.dtype for field in self._schema(client, 8).fields}
            if changed := sorted(name for name in wanted if kinds.get(name) != wanted[name]):
                return f"the fields of {self._collection} were changed: {', '.join(changed)}"
            (vector,) = [field for field in there["fields"] if field["name"] == "vector"]
            self._dimension = int(vector["params"]["dim"])
            self._is_there(client)
            return None

        return await self._call(compare)

    async def create(self) -> bool:
        """Have the first vectors create the collection: they have its dimension."""
        await self._call(lambda client: client.drop_collection(self._collection, timeout=self._timeout_s))
        self._ready, self._awaited, self._dimension = False, True, None
        return True

    def _make(self, client: Any, dimension: int) -> None:
        index = client.prepare_index_params()
        is_lite = client.get_server_version(timeout=self._timeout_s).startswith(LITE)
        index.add_index("vector", **(EXACT if is_lite else INDEX))
        client.create_collection(
            self._collection,
            schema=self._schema(client, dimension),
            index_params=index,
            consistency_level="Strong",
            timeout=self._timeout_s,
        )
        self._awaited, self._dimension = False, dimension
        self._is_there(client)

    async def write(self, user_id: str, documents: Sequence[Projected], deleted: Sequence[str]) -> None:
        """Replace the vectors of memories. A changed memory may have fewer vectors than before, so its old ones are
        deleted first."""
        memories = memories_in(documents)
        new = {memory.id for memory in memories if memory.version == 1 and self.digest(memory) is not None}
        gone = [*deleted, *(memory.id for memory in memories if memory.id not in new)]

        def delete(client: Any) -> None:
            for some in _chunks(gone):
                where = f'user_key == "{user_key(user_id)}" and memory_id in [{_quoted(some)}]'
                client.delete(self._collection, filter=where, timeout=self._timeout_s)

        if gone and not self._awaited:
            await self._call(delete)
        await self.load(memories)

    async def siblings(self, user_id: str, ids: Sequence[str]) -> Sequence[str]:
        """Return nothing: no texts of messages are stored."""
        return ()

    async def load(self, documents: Sequence[Projected]) -> None:
        embedded = [memory for memory in memories_in(documents) if memory.searchable and memory.vectors]

        def insert(client: Any) -> None:
            for part in _chunks(embedded):
                entities = [entity for memory in part for entity in self._entities(memory)]
                dimension = len(entities[0]["vector"])
                if self._awaited:
                    self._make(client, dimension)
                if self._dimension is not None and dimension != self._dimension:
                    raise EngineError(
                        f"milvus: {self._collection} has {self._dimension} dimensions, and the vectors of "
                        f"{self._model} have {dimension}: give the embedder another id, then run `jiyi reindex`"
                    )
                client.upsert(self._collection, entities, timeout=self._timeout_s)
                self._unflushed += len(entities)

        if embedded:
            await self._call(insert)

    async def refresh(self) -> None:
        """Do nothing: reads are strongly consistent."""

    async def delete_keys(self, keys: Sequence[str]) -> None:
        where = f"user_key in [{_quoted(keys)}]"

        def delete(client: Any) -> None:
            client.delete(self._collection, filter=where, timeout=self._timeout_s)

        if not self._awaited:
            await self._call(delete)

    async def digests(self, user_id: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for row in await self._rows(f'user_key == "{user_key(user_id)}"', ["memory_id", "digest"]):
            known = found.setdefault(row["memory_id"], row["digest"])
            if known != row["digest"]:
                found[row["memory_id"]] = "vectors of several versions"
        return found

    async def hashes(self, user_id: str, ids: Sequence[str] | None) -> Mapping[str, str]:
        """Hash the fields and the vectors of each memory."""
        where = f'user_key == "{user_key(user_id)}"'
        fields = ["pk", "memory_id", *NAMES, "tags", "trust", *TIMES, "vector"]
        parts: defaultdict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
        for some in [None] if ids is None else _chunks(ids):
            mine = where if some is None else f"{where} and memory_id in [{_quoted(some)}]"
            for row in await self._rows(mine, fields):
                parts[row["memory_id"]][int(row["pk"].rpartition("-")[2])] = row
        return {memory_id: _stored_digest([rows[part] for part in sorted(rows)]) for memory_id, rows in parts.items()}

    async def foreign(self) -> int:
        """Return 0: the schema has no room for other documents."""
        return 0

    async def user_keys(self) -> set[str]:
        return {row["user_key"] for row in await self._rows('user_key != ""', ["user_key"])}

    async def _rows(self, where: str, fields: list[str]) -> list[dict[str, Any]]:
        return [] if self._awaited else await self._call(lambda client: list(self._pages(client, where, fields)))

    def _pages(self, client: Any, where: str, fields: list[str]) -> Iterator[dict[str, Any]]:
        if not self._is_there(client):
            return
        pages = client.query_iterator(
            self._collection, batch_size=PAGE, filter=where, output_fields=fields, timeout=self._timeout_s
        )
        try:
            while page := pages.next():
                yield from page
        finally:
            pages.close()

    async def nearest(self, where: Filter, vectors: Sequence[NDArray[np.float32]], number: int) -> list[list[str]]:
        """Return for each vector the ids of the memories in scope that are most similar to it."""
        condition = expression(where)

        def search(client: Any) -> list[list[str]]:
            if not self._is_there(client):
                if self._awaited:
                    return [[] for _ in vectors]
                raise EngineError(f"milvus: the collection {self._collection} is missing")
            hits = client.search(
                self._collection,
                data=[vector.astype(np.float32).tolist() for vector in vectors],
                anns_field="vector",
                limit=number,
                filter=condition,
                output_fields=["pk"],
                search_params={"metric_type": "COSINE", "params": {"ef": max(2 * number, 64)}},
                timeout=self._timeout_s,
            )
            return [list(dict.fromkeys(_memory_id(hit["pk"]) for hit in found)) for found in hits]

        return await self._call(search)

    async def drop(self) -> None:
        """Drop the collections of all models."""

        def drop(client: Any) -> None:
            for name in self._collections(client):
                client.drop_collection(name, timeout=self._timeout_s)

        self._ready = False
        await self._call(drop)

    async def loaded(self) -> None:
        """Have the index built of what was loaded."""

        def finish(client: Any) -> None:
            client.flush(self._collection)  # without a limit: it may take minutes
            self._unflushed = 0

        if self._unflushed >= FLUSH_FROM:
            await self._call(finish)

    async def publish(self) -> None:
        """Do nothing: milvus-lite has no aliases."""

    async def tidy(self) -> None:
        def drop(client: Any) -> None:
            for name in self._collections(client):
                if not self._is_later(name):
                    client.drop_collection(name, timeout=self._timeout_s)

        await self._call(drop)

    def _is_later(self, name: str) -> bool:
        """Return True for the collection of this generation or of a later one, of this model."""
        number = name.removeprefix(self._of_model)
        return number.isdecimal() and int(number) >= self._generation

    async def close(self) -> None:
        if self._connecting is not None:
            await asyncio.wait([self._connecting])
        if self._connected is not None:
            await asyncio.to_thread(self._connected.close)
            self._connected = None

    def digest(self, document: Projected) -> str | None:
        if not isinstance(document, ProjectedMemory) or not document.searchable or not document.vectors:
            return None
        return digest_of(_values(document), document.vectors)

    def _entities(self, memory: ProjectedMemory) -> list[dict[str, Any]]:
        values = _values(memory)
        values |= {
            "digest": digest_of(values, memory.vectors),
            "user_key": user_key(memory.user_id),
            "memory_id": memory.id,
        }
        key = document_key(memory.user_id, memory.id)
        return [
            {**values, "pk": f"{key}-{part}", "vector": vector.tolist()} for part, vector in enumerate(memory.vectors)
        ]


def _certificates(given: EngineSettings) -> dict[str, str]:
    """Return the client's options for certificates: it reads its own one only together with the authorities."""
    if given.cert_file is None:
        return {} if given.ca_file is None else {"server_pem_path": str(given.ca_file)}
    if given.ca_file is None:
        raise SettingsError("engines.cert_file: a certificate for Milvus needs engines.ca_file too")
    key = given.key_file or given.cert_file
    return {"ca_pem_path": str(given.ca_file), "client_pem_path": str(given.cert_file), "client_key_path": str(key)}


def _short(error: Exception) -> str:
    """Return what went wrong, without the many lines of a gRPC error."""
    details = getattr(error, "details", None)
    return str(details()) if callable(details) else str(error)


def _memory_id(pk: str) -> str:
    """Return the memory of an entity: its key is the user's, the memory's id and the number of the vector."""
    return pk[HASH + 1 :].rpartition("-")[0]


def _values(memory: ProjectedMemory) -> dict[str, Any]:
    """Return the fields that filters compare."""
    return {
        **{name: _hash(getattr(memory, name)) for name in NAMES},
        "tags": sorted(map(_hash, memory.user_tags)),
        "trust": memory.trust,
        **{name: micros(getattr(memory, name)) for name in TIMES},
    }


def _stored_digest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Hash what is stored of a memory, as `digest_of` hashes what should be."""
    fields = [{name: row[name] for name in (*NAMES, "trust", *TIMES)} | {"tags": list(row["tags"])} for row in rows]
    vectors = [np.asarray(row["vector"], np.float32) for row in rows]
    return digest_of(fields[0], vectors) if all(one == fields[0] for one in fields) else "entities of several versions"


def expression(where: Filter) -> str:
    """Return a filter as an expression of Milvus; `index/query.py` has the same in numpy."""
    now = to_micros(where.now)
    found = [f'user_key == "{user_key(where.user_id)}"', f"expires_at > {now}"]
    for name, lifetime in where.lifetimes:
        since = to_micros(where.now - lifetime)
        found.append(f'(memory_type != "{_hash(name)}" or expires_at != {FOREVER} or created_at > {since})')
    for field, value in (
        ("session_id", where.session_id),
        ("agent_id", where.agent_id),
        ("group_id", where.group_id),
    ):
        if value is not None:
            found.append(f'{field} == "{_hash(value)}"')
    for field, wanted in (("memory_type", where.memory_types), ("layer", where.layers)):
        if wanted is not None:
            found.append(f"{field} in [{_list(wanted)}]")
    if not where.with_messages:
        found.append(f'memory_type != "{_hash("message")}"')
    if where.tags is not None:
        found.append(f"array_contains_any(tags, [{_list(where.tags)}])")
    if where.min_trust:
        found.append(f"trust >= {where.min_trust!r}")
    if where.occurred_from is not None:
        found.append(f"occurred_at >= {to_micros(where.occurred_from)}")
    if where.occurred_to is not None:
        found.append(f"occurred_at < {to_micros(where.occurred_to)}")
    if where.as_of is not None:
        found.append(f"valid_from <= {to_micros(where.as_of)}")
    found.append(f"valid_to > {to_micros(where.as_of or where.now)}")
    return " and ".join(found)


def _chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), AT_ONCE):
        yield values[start : start + AT_ONCE]


def _list(values: Sequence[str]) -> str:
    return ", ".join(f'"{_hash(value)}"' for value in values) or '""'  # an empty list matches nothing


def _hash(value: str | None) -> str:
    return "-" if value is None else user_key(value)


def _quoted(ids: Sequence[str]) -> str:
    """Return ids for an expression; refuse one that could end a string in it."""
    for one in ids:
        if '"' in one or "\\" in one:
            raise EngineError(f"milvus: the id {one!r} contains a quote")
    return ", ".join(f'"{one}"' for one in ids)
