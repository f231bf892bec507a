"""OpenSearch and Elasticsearch: one document per memory, routed by user, with Jiyi's own search terms as tokens."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar

from ..errors import EngineError, MissingExtra, SettingsError
from ..index.query import IndexQuery
from ..index.words import KEYWORD, weighted
from ..languages.terms import search_terms, tokens
from ..models import to_micros
from ..scope import Filter
from ..settings import EngineSettings
from ..store.upkeep.engine_memories import Projected, ProjectedMemory
from .addresses import several, without_login
from .base import (
    FOREVER,
    digest_of,
    document_key,
    identity_of,
    memories_in,
    micros,
    passage_length,
    speaker_of,
    user_key,
)
from .candidates import WordMatches, WordStatistics

T = TypeVar("T")

TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at", "created_at")
NAMES = ("user_id", "session_id", "agent_id", "group_id", "memory_type", "layer")
PAGE = 5000
ANSWERED = "items.*.status,items.*.error"  # the rest of an answer repeats the request
ONLY_IDS = {"stored_fields": "_none_", "docvalue_fields": ["event_id"]}  # no documents are read
STATISTICS_S = 30.0  # for which what `_about` returns is remembered
MOST_PEOPLE = 2000
SYNONYM, PREFIX = 0.7, 0.8

FORMAT = "2"  # of the documents: of another one everything is loaded anew


def index_body(given: EngineSettings) -> dict[str, dict[str, Any]]:
    """Return the settings and the mapping of an index."""
    return {
        "settings": {
            "number_of_shards": given.shards,
            "number_of_replicas": given.replicas,
            "refresh_interval": given.refresh_interval,
            "analysis": {
                "tokenizer": {"terms": {"type": "whitespace", "max_token_length": 1000}},
                "analyzer": {"terms": {"type": "custom", "tokenizer": "terms"}},
            },
        },
        "mappings": {
            "dynamic": "strict",
            "_routing": {"required": True},
            "properties": {
                **{name: {"type": "keyword"} for name in (*NAMES, "event_id", "user_key", "digest")},
                **{name: {"type": "keyword"} for name in ("keywords", "tags", "speaker", "subject")},
                "search_content": {"type": "text", "analyzer": "terms"},
                "content": {"type": "text", "analyzer": given.content_analyzer},  # for other programs
                "derived": {"type": "boolean"},
                "trust": {"type": "double"},
                "length": {"type": "integer"},
                **{name: {"type": "long"} for name in TIMES},
            },
        },
    }


def _credentials(given: EngineSettings) -> dict[str, Any]:
    """Return the client's options for keys and certificates."""
    if given.elasticsearch_api_key and given.elasticsearch_bearer:
        raise SettingsError("engines: elasticsearch_api_key and elasticsearch_bearer exclude each other")
    found: dict[str, Any] = {}
    for scheme, secret in (("ApiKey", given.elasticsearch_api_key), ("Bearer", given.elasticsearch_bearer)):
        if secret is not None:
            found["headers"] = {"Authorization": f"{scheme} {secret.get_secret_value()}"}
    files = {"ca_certs": given.ca_file, "client_cert": given.cert_file, "client_key": given.key_file}
    return found | {name: str(path) for name, path in files.items() if path is not None}


class Elasticsearch:
    """Words in OpenSearch or Elasticsearch."""

    name = "elasticsearch"
    parts = frozenset(("keywords",))

    def __init__(self, given: EngineSettings) -> None:
        try:
            import opensearchpy
        except ImportError as error:
            raise MissingExtra("elasticsearch", "opensearch-py") from error
        logging.getLogger("opensearch").setLevel(logging.ERROR)  # failures are raised, and logged by Jiyi in one line
        self._errors = (opensearchpy.exceptions.OpenSearchException, OSError)
        url = "" if given.elasticsearch_url is None else given.elasticsearch_url.get_secret_value()
        hosts = several("engines.elasticsearch_url", url)
        self._client = opensearchpy.AsyncOpenSearch(
            hosts,
            timeout=given.timeout_s,
            max_retries=len(hosts) - 1,  # on another host
            retry_on_timeout=False,
            **_credentials(given),
        )
        self._body = index_body(given)
        self._alias = f"{given.prefix}-memories"  # that other programs read
        self._generation = 0
        self.use(1)
        self.identity = identity_of(*map(without_login, hosts), given.prefix, given.content_analyzer, FORMAT)

    def use(self, generation: int) -> None:
        if generation == self._generation:
            return
        self._generation = generation
        self._index = f"{self._alias}-{generation}"
        # Writes go through an alias: a write to the name of a removed index would create it, with any mapping.
        self._write_alias = f"{self._index}-write"
        self._known: dict[str, tuple[float, tuple[frozenset[str], WordStatistics]]] = {}

    async def _ask(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except self._errors as error:
            raise EngineError(f"elasticsearch: {error}") from error

    async def open(self) -> str | None:
        """Compare the index with what `create` makes; fields that somebody added to it do no harm."""
        answer = await self._ask(self._client.indices.get(index=self._index, ignore=404))
        if self._index not in answer:
            return f"the index {self._index} is missing"
        there = answer[self._index]
        if self._write_alias not in there["aliases"]:
            return f"the index {self._index} was made by another program"
        fields = there["mappings"].get("properties", {})
        wanted = self._body["mappings"]["properties"]
        changed = sorted(name for name in wanted if fields.get(name) != wanted[name])
        return f"the mapping of {self._index} was changed: {', '.join(changed)}" if changed else None

    async def create(self) -> bool:
        await self._ask(self._client.indices.delete(index=self._index, ignore=404))
        body = {**self._body, "aliases": {self._write_alias: {}}}
        await self._ask(self._client.indices.create(index=self._index, body=body))
        return True

    async def write(self, user_id: str, documents: Sequence[Projected], deleted: Sequence[str]) -> None:
        memories = memories_in(documents)
        gone = [*deleted, *(memory.id for memory in memories if not memory.searchable)]
        key = user_key(user_id)
        await self._bulk(
            [
                *_insertions(memories),
                *({"delete": {"_id": document_key(user_id, one), "routing": key}} for one in gone),
            ]
        )

    async def siblings(self, user_id: str, ids: Sequence[str]) -> Sequence[str]:
        """Return nothing: no texts of messages are stored."""
        return ()

    async def load(self, documents: Sequence[Projected]) -> None:
        await self._bulk(list(_insertions(memories_in(documents))))

    async def _bulk(self, actions: Sequence[Mapping[str, Any]]) -> None:
        if actions:
            only_there = {"filter_path": ANSWERED, "require_alias": "true"}
            done = await self._ask(self._client.bulk(index=self._write_alias, body=actions, params=only_there))
            problems = [one for item in done["items"] for one in item.values() if one["status"] not in (200, 201, 404)]
            if problems:
                raise EngineError(f"elasticsearch: {problems[0].get('error')}")

    async def refresh(self) -> None:
        await self._ask(self._client.indices.refresh(index=self._index))

    async def delete_keys(self, keys: Sequence[str]) -> None:
        await self.refresh()
        mine = {"query": {"terms": {"user_key": list(keys)}}}
        done = await self._ask(
            self._client.delete_by_query(index=self._index, body=mine, refresh=True, conflicts="proceed")
        )
        if done.get("failures") or done.get("version_conflicts"):
            raise EngineError("elasticsearch: some documents were not deleted")

    async def digests(self, user_id: str) -> Mapping[str, str]:
        found = await self._pages(_own(user_id), ["event_id", "digest"])
        return {source["event_id"]: source.get("digest", "") for source in found}

    async def hashes(self, user_id: str, ids: Sequence[str] | None) -> Mapping[str, str]:
        some = [] if ids is None else [{"terms": {"event_id": list(ids)}}]
        found = await self._pages({"bool": {"filter": [_own(user_id), *some]}}, ["*"])
        return {one["event_id"]: digest_of({name: one[name] for name in one if name != "digest"}) for one in found}

    async def foreign(self) -> int:
        ours = [{"exists": {"field": name}} for name in ("user_key", "event_id")]
        query = {"query": {"bool": {"must_not": [{"bool": {"filter": ours}}]}}}
        return int((await self._ask(self._client.count(index=self._index, body=query)))["count"])

    async def user_keys(self) -> set[str]:
        await self.refresh()
        found: set[str] = set()
        after: dict[str, Any] = {}
        while True:
            sources = [{"user": {"terms": {"field": "user_key"}}}]
            grouped = {"users": {"composite": {"size": 1000, "sources": sources, **after}}}
            answer = await self._ask(self._client.search(index=self._index, body={"size": 0, "aggs": grouped}))
            users = answer["aggregations"]["users"]
            found |= {bucket["key"]["user"] for bucket in users["buckets"]}
            if "after_key" not in users:
                return found
            after = {"after": users["after_key"]}

    async def _pages(self, query: Mapping[str, Any], fields: list[str]) -> list[dict[str, Any]]:
        await self.refresh()
        found: list[dict[str, Any]] = []
        beyond: dict[str, Any] = {}
        while True:
            body = {"size": PAGE, "query": query, "sort": ["event_id"], "_source": fields, **beyond}
            hits = (await self._ask(self._client.search(index=self._index, body=body)))["hits"]["hits"]
            found += [hit["_source"] for hit in hits]
            if len(hits) < PAGE:
                return found
            beyond = {"search_after": hits[-1]["sort"]}

    async def matches(self, query: IndexQuery, most: int) -> WordMatches:
        """Return the memories in scope that match by words, and in how many memories each word is."""
        key = user_key(query.filter.user_id)
        terms = list(dict.fromkeys((*query.terms, *(query.last_terms or ()), *query.words)))
        wanted: dict[str, dict[str, Any]] = {term: {"term": {"search_content": term}} for term in terms}
        wanted |= {KEYWORD + word: _keyword(word, query.synonyms.get(word, ())) for word in query.keywords}
        _, known = await self._about(query.filter.user_id)  # already known from `people`
        if not wanted:
            return WordMatches(ids=[], statistics=known)
        weights = dict(weighted(query.terms))
        scored = [
            {"constant_score": {"filter": one}} if name.startswith(KEYWORD) else _weighted(one, weights.get(name, 1.0))
            for name, one in wanted.items()
        ]
        mine: dict[str, Any] = {"term": {"user_key": key}}
        inside = [mine, *conditions(query.filter)]
        best = {
            "size": most,
            **ONLY_IDS,
            "track_total_hits": False,
            "query": {"bool": {"filter": inside, "should": scored, "minimum_should_match": 1}},
        }
        own = [mine, {"term": {"derived": False}}]
        counted = [_counted([one, *own]) for one in wanted.values()]
        found, *counts = await self._all_of([best, *counted], key)
        holders = {name: int(count["hits"]["total"]["value"]) for name, count in zip(wanted, counts, strict=True)}
        return WordMatches(
            ids=[hit["fields"]["event_id"][0] for hit in found["hits"]["hits"] if "fields" in hit],
            statistics=WordStatistics(population=known.population, length=known.length, holders=holders),
        )

    async def _all_of(self, searches: Sequence[Mapping[str, Any]], key: str) -> list[dict[str, Any]]:
        """Run searches in one request. Counting apart is faster than in the search for the best, which then need not
        look at every match."""
        lines = [line for body in searches for line in ({"index": self._index, "routing": key}, body)]
        answers: list[dict[str, Any]] = (await self._ask(self._client.msearch(body=lines)))["responses"]
        for answer in answers:
            if "error" in answer:
                raise EngineError(f"elasticsearch: {answer['error']}")
        return answers

    async def _about(self, user_id: str) -> tuple[frozenset[str], WordStatistics]:
        """Return the speakers in a user's memories, the number of those that are not derived, and their length."""
        key = user_key(user_id)
        at, known = self._known.get(key, (0.0, None))
        if known is None or monotonic() - at > STATISTICS_S:
            own = {"filter": {"term": {"derived": False}}, "aggs": {"length": {"sum": {"field": "length"}}}}
            grouped = {"people": {"terms": {"field": "speaker", "size": MOST_PEOPLE}}, "own": own}
            body = {"size": 0, "query": {"term": {"user_key": key}}, "aggs": grouped}
            answer = await self._ask(self._client.search(index=self._index, body=body, routing=key))
            people, own = answer["aggregations"]["people"], answer["aggregations"]["own"]
            number = int(own["doc_count"])
            statistics = WordStatistics(population=number, length=own["length"]["value"] / max(number, 1), holders={})
            known = frozenset(bucket["key"] for bucket in people["buckets"]), statistics
            self._known = dict(list(self._known.items())[-1000:]) | {key: (monotonic(), known)}
        return known

    async def bare(self, user_id: str, terms: Sequence[str], most: int) -> list[str]:
        """Return the best memories of a user by the engine's own BM25, which benchmarks compare with."""
        key = user_key(user_id)
        match = {"match": {"search_content": " ".join(terms)}}
        query = {"bool": {"filter": [{"term": {"user_key": key}}], "must": [match]}}
        body = {"size": most, "_source": ["event_id"], "query": query}
        answer = await self._ask(self._client.search(index=self._index, body=body, routing=key))
        return [hit["_source"]["event_id"] for hit in answer["hits"]["hits"]]

    async def people(self, user_id: str) -> frozenset[str]:
        """Return the speakers in a user's memories."""
        return (await self._about(user_id))[0]

    async def drop(self) -> None:
        for name in await self._names():
            await self._ask(self._client.indices.delete(index=name, ignore=404))

    async def _names(self) -> list[str]:
        """Return the indexes of all generations, and one with the name of the alias."""
        names = await self._ask(self._client.indices.get(index=f"{self._alias},{self._alias}-*", ignore=404))
        return sorted(name for name in names if _generation(name, self._alias) >= 0)

    async def loaded(self) -> None:
        """Do nothing: each load was refreshed."""

    async def publish(self) -> None:
        """Move the alias in one step; an index with its name is of an earlier format."""
        there = await self._names()
        moved: list[dict[str, Any]] = [
            {"remove_index": {"index": name}}
            if name == self._alias
            else {"remove": {"index": name, "alias": self._alias, "must_exist": False}}
            for name in there
            if name != self._index
        ]
        moved.append({"add": {"index": self._index, "alias": self._alias}})
        await self._ask(self._client.indices.update_aliases(body={"actions": moved}))

    async def tidy(self) -> None:
        for name in await self._names():
            if _generation(name, self._alias) < self._generation:
                await self._ask(self._client.indices.delete(index=name, ignore=404))

    async def close(self) -> None:
        pool = self._client.transport.connection_pool
        await self._client.close()
        for connection in getattr(pool, "orig_connections", ()):  # it leaves those to hosts that did not answer open
            await connection.close()

    def digest(self, document: Projected) -> str | None:
        if not isinstance(document, ProjectedMemory) or not document.searchable:
            return None
        return digest_of(_document(document))


def _generation(name: str, alias: str) -> int:
    """Return the generation of an index, 0 for one with the name of the alias, -1 for an index of somebody else."""
    number = name.removeprefix(f"{alias}-")
    return 0 if name == alias else int(number) if number.isdecimal() else -1


def _own(user_id: str) -> dict[str, Any]:
    """Select a user's documents."""
    return {"bool": {"filter": [{"term": {"user_key": user_key(user_id)}}, {"exists": {"field": "event_id"}}]}}


def _insertions(memories: Sequence[ProjectedMemory]) -> Iterator[dict[str, Any]]:
    """Yield the actions of a bulk request that insert memories or replace them."""
    for memory in memories:
        if memory.searchable:
            document = _document(memory)
            yield {"index": {"_id": document_key(memory.user_id, memory.id), "routing": document["user_key"]}}
            yield document | {"digest": digest_of(document)}


def _document(memory: ProjectedMemory) -> dict[str, Any]:
    subject = memory.data.get("subject")
    return {
        **{name: getattr(memory, name) for name in NAMES},
        **{name: micros(getattr(memory, name)) for name in TIMES},
        "event_id": memory.id,
        "user_key": user_key(memory.user_id),
        "search_content": " ".join(_terms(memory)),
        "content": memory.content,
        "keywords": sorted(keyword for keyword, _, _ in memory.keywords),
        "tags": sorted(memory.user_tags),
        "subject": subject if isinstance(subject, str) else None,
        "speaker": speaker_of(memory),
        "derived": "extractor" in memory.data,
        "trust": memory.trust,
        "length": passage_length(memory),
    }


def _terms(memory: ProjectedMemory) -> list[str]:
    return search_terms(tokens(memory.content), memory.content, memory.summary, memory.tags, memory.data)


def conditions(where: Filter) -> list[dict[str, Any]]:
    """Return a filter as conditions of a query; `index/query.py` has the same in numpy."""
    found: list[dict[str, Any]] = [
        {"range": {"expires_at": {"gt": to_micros(where.now)}}},
        {"range": {"valid_to": {"gt": to_micros(where.as_of or where.now)}}},
    ]
    for name, lifetime in where.lifetimes:
        ended = [
            {"term": {"memory_type": name}},
            {"term": {"expires_at": FOREVER}},
            {"range": {"created_at": {"lte": to_micros(where.now - lifetime)}}},
        ]
        found.append({"bool": {"must_not": [{"bool": {"filter": ended}}]}})
    for field, value in (
        ("session_id", where.session_id),
        ("agent_id", where.agent_id),
        ("group_id", where.group_id),
    ):
        if value is not None:
            found.append({"term": {field: value}})
    for field, wanted in (("memory_type", where.memory_types), ("layer", where.layers), ("tags", where.tags)):
        if wanted is not None:
            found.append({"terms": {field: list(wanted)}})
    if not where.with_messages:
        found.append({"bool": {"must_not": [{"term": {"memory_type": "message"}}]}})
    if where.min_trust:
        found.append({"range": {"trust": {"gte": where.min_trust}}})
    if where.occurred_from is not None:
        found.append({"range": {"occurred_at": {"gte": to_micros(where.occurred_from)}}})
    if where.occurred_to is not None:
        found.append({"range": {"occurred_at": {"lt": to_micros(where.occurred_to)}}})
    if where.as_of is not None:
        found.append({"range": {"valid_from": {"lte": to_micros(where.as_of)}}})
    return found


def _weighted(one: dict[str, Any], weight: float) -> dict[str, Any]:
    ((field, value),) = one["term"].items()
    return {"term": {field: {"value": value, "boost": weight}}}


def _keyword(word: str, synonyms: Sequence[str]) -> dict[str, Any]:
    """Select memories with a keyword, one that begins with it, or a synonym."""
    some: list[dict[str, Any]] = [{"terms": {"keywords": [word, *synonyms]}}]
    if len(word) >= 3 or not word.isascii():
        some.append({"prefix": {"keywords": word}})
    return {"bool": {"should": some, "minimum_should_match": 1}}


def _counted(conditions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a search that only counts."""
    return {"size": 0, "track_total_hits": True, "query": {"bool": {"filter": conditions}}}
