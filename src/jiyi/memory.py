"""The engine. A verb checks its arguments and runs its stages, which are in `write` and `read`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, get_args

from pydantic import JsonValue

from . import checks
from .embed import Embedder, resolve
from .errors import InvalidInput
from .models import (
    UNSET,
    Deletion,
    Layer,
    MemoryItem,
    Page,
    Receipt,
    Revision,
    SearchMode,
    SearchResult,
    Stats,
    Status,
    Unset,
)
from .read.context import ContextLanguage, Style, log_degraded, render_context
from .read.expand import Expansion, expand, related_words
from .read.interpret import TimeRange, interpret, scope
from .read.score import Weights
from .read.search import search
from .synonyms import GivenPair, Synonym, checked
from .text.language import language as language_of
from .write.accept import What, accept
from .write.add import add
from .write.change import change, earlier_state, existing
from .write.extract import Context
from .write.index import KeywordRules
from .write.reindex import Progress, reindex_embeddings

if TYPE_CHECKING:
    from .settings import Settings
    from .store.base import Store


class Memory:
    """A long-term memory.

    async with Memory.open() as memory:
        await memory.add("我吃素，对花生过敏", user_id="mei")
        found = await memory.search("what can she eat?", user_id="mei")
    """

    def __init__(self, store: Store, embedder: Embedder, settings: Settings) -> None:
        self.settings = settings
        self._store = store
        self._embedder = embedder
        self._weights = Weights.of(settings.search)
        self._rules = KeywordRules(settings.extraction.max_keywords_per_memory, settings.extraction.min_keyword_weight)
        self._change = partial(change, store=store, embedder=embedder, rules=self._rules)

    @classmethod
    def open(
        cls, where: str | Path | None = None, *, settings: Settings | None = None, embedder: Embedder | None = None
    ) -> Self:
        """A memory at a path or URL, by default in a file in the user's data directory.

        Use it as `async with Memory.open() as memory:`, or as `memory = await Memory.open()` with a later
        `await memory.close()`.
        """
        from .settings import load_settings
        from .store import open_store

        settings = settings or load_settings()
        return cls(open_store(where or settings.url, settings), embedder or resolve(settings), settings)

    async def __aenter__(self) -> Self:
        await self._store.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def close(self) -> None:
        """Let go of the database."""
        await self._store.close()

    # -- writing ----------------------------------------------------------------------------------------------------

    async def add(
        self,
        what: What,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        memory_type: str | None = None,
        importance: float | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, JsonValue] | None = None,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        idempotency_key: str | None = None,
        wait: bool = True,
        actor: str = "user",
    ) -> Receipt:
        """Take in a statement, a message, a conversation, or ready candidates.

        When it returns, everything is durable. Adding the same again makes nothing new; with an `idempotency_key`
        a repeated call returns the first one's receipt. (`wait` is about extraction by a language model, which may
        go on after `add`; without one there is nothing to wait for.)

            await memory.add("I moved to Berlin in May", user_id="mei")
            await memory.add([{"role": "user", "content": "下周三去上海出差"}], user_id="mei", session_id="s1")
        """
        context = Context(
            user_id=checks.name("user_id", user_id),
            session_id=checks.optional_name("session_id", session_id),
            agent_id=checks.optional_name("agent_id", agent_id),
            group_id=checks.optional_name("group_id", group_id),
            memory_type=None if memory_type is None else checks.memory_type("memory_type", memory_type),
            importance=None if importance is None else checks.share("importance", importance),
            tags=() if tags is None else checks.tags("tags", tags),
            metadata={} if metadata is None else checks.json_object("metadata", metadata),
            occurred_at=checks.optional_time("occurred_at", occurred_at),
            expires_at=checks.optional_time("expires_at", expires_at),
        )
        accepted = accept(what)
        if accepted.messages and memory_type is not None:
            raise InvalidInput("memory_type", "is for statements; messages are kept verbatim, as type message")
        return await add(
            accepted,
            context,
            idempotency_key=checks.optional_name("idempotency_key", idempotency_key),
            actor=checks.name("actor", actor),
            store=self._store,
            embedder=self._embedder,
            rules=self._rules,
        )

    async def update(
        self,
        memory_id: str,
        *,
        user_id: str,
        version: int | None = None,
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
        actor: str = "user",
        reason: str | None = None,
    ) -> MemoryItem:
        """Change some fields of a memory; what it was stays in its history.

        With `version`, only that version of it is changed; if somebody was faster, `VersionConflict` is raised.
        """
        given: dict[str, Any] = {}
        if content is not None:
            given["content"] = checks.text("content", content)
        if summary is not None:
            given["summary"] = checks.text("summary", summary)
        if memory_type is not None:
            given["memory_type"] = checks.memory_type("memory_type", memory_type)
        if importance is not None:
            given["importance"] = checks.share("importance", importance)
        if tags is not None:
            given["tags"] = list(checks.tags("tags", tags))
        if metadata is not None:
            given["metadata"] = checks.json_object("metadata", metadata)
        if occurred_at is not None:
            given["occurred_at"] = checks.time("occurred_at", occurred_at)
        if not isinstance(valid_to, Unset):
            given["valid_to"] = checks.optional_time("valid_to", valid_to)
        if not isinstance(expires_at, Unset):
            given["expires_at"] = checks.optional_time("expires_at", expires_at)
        if status is not None:
            given["status"] = checks.status("status", status)
        if not given:
            raise InvalidInput("update", "names nothing to change")
        action = "archive" if status == "archived" else "update"
        return await self._change(
            memory_id, given, user_id=user_id, version=version, action=action, actor=actor, reason=reason
        )

    async def restore(
        self,
        memory_id: str,
        *,
        user_id: str,
        version: int | None = None,
        actor: str = "user",
        reason: str | None = None,
    ) -> MemoryItem:
        """Bring a memory back to an earlier version, by default to the one before its last change."""
        changes = await self.history(memory_id, user_id=user_id)
        wanted = None if version is None else checks.whole("version", version, highest=10**9)
        number, given = earlier_state(changes, wanted)
        return await self._change(
            memory_id,
            given,
            user_id=user_id,
            version=changes[-1].version,
            action="restore",
            actor=actor,
            reason=reason or f"back to version {number}",
        )

    async def delete(self, memory_id: str, *, user_id: str) -> Deletion:
        """Remove a memory and all that belongs to it, its history included. This cannot be undone."""
        memory = await self.get(memory_id, user_id=user_id)
        return await self._store.delete(memory.user_id, [memory.id])

    async def delete_all(self, user_id: str) -> Deletion:
        """Remove everything of exactly this user. This cannot be undone."""
        return await self._store.delete_all(checks.name("user_id", user_id))

    # -- reading ----------------------------------------------------------------------------------------------------

    async def search(
        self,
        query: str,
        *,
        user_id: str,
        search_mode: SearchMode | None = None,
        keywords: Sequence[str] | None = None,
        memory_types: Sequence[str] | None = None,
        layers: Sequence[Layer] | None = None,
        tags: Sequence[str] | None = None,
        time_range: TimeRange | None = None,
        time_range_days: int | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        min_relevance_score: float = 0.0,
        limit: int = 5,
        as_of: datetime | None = None,
        asked_at: datetime | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """Find memories: `hybrid` (the default), `keyword` (by words) or `semantic` (by meaning).

        All filters hold in every mode and before the limit. `tags` and `memory_types` mean any of those named,
        `time_range` is about when things happened, `as_of` asks what was valid then, `asked_at` is the moment from
        which "now" is counted.

            found = await memory.search("咖啡", user_id="mei", limit=3, explain=True)
        """
        where = scope(
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_types=memory_types,
            layers=layers,
            tags=tags,
            time_range=time_range,
            time_range_days=time_range_days,
            as_of=as_of,
            asked_at=asked_at,
        )
        inquiry = interpret(
            query,
            where,
            mode=self.settings.search.default_mode if search_mode is None else search_mode,
            keywords=keywords,
            at_least=min_relevance_score,
            limit=limit,
            explain=explain,
            with_synonyms=self.settings.extraction.enable_synonym_expansion,
        )
        return await search(inquiry, self._store, self._embedder, self._weights)

    async def context(
        self,
        query: str,
        *,
        user_id: str,
        max_tokens: int = 1500,
        style: Style = "sections",
        language: ContextLanguage | None = None,
        memory_types: Sequence[str] | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        as_of: datetime | None = None,
        asked_at: datetime | None = None,
        min_relevance_score: float = 0.0,
    ) -> str:
        """What a prompt should know for this query: the best memories as one block, fenced as data, never over budget.

        Its language is that of the query unless one is named. Nothing found, or no room: the empty string.

            prompt = await memory.context("晚饭吃什么？", user_id="mei", max_tokens=400)
        """
        checks.whole("max_tokens", max_tokens, highest=1_000_000)
        checks.choice("style", style, get_args(Style))
        if language is not None:
            checks.choice("language", language, get_args(ContextLanguage))
        found = await self.search(
            query,
            user_id=user_id,
            memory_types=memory_types,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            as_of=as_of,
            asked_at=asked_at,
            min_relevance_score=min_relevance_score,
            limit=min(max(max_tokens // 10, 10), checks.MAX_LIMIT),
        )
        log_degraded(found.degraded)
        memories = await self.get_many([hit.id for hit in found.hits], user_id=user_id)
        spoken: ContextLanguage = language or ("zh" if language_of(query) == "zh" else "en")
        return render_context(memories, max_tokens=max_tokens, style=style, language=spoken, as_of=as_of or asked_at)

    async def get(self, memory_id: str, *, user_id: str) -> MemoryItem:
        """One memory, by its id or `memory_key`."""
        return await existing(self._store, checks.name("user_id", user_id), checks.name("memory_id", memory_id))

    async def get_many(self, memory_ids: Sequence[str], *, user_id: str) -> Sequence[MemoryItem]:
        """Several memories, in the order asked for; ids that this user does not have are left out."""
        ids = checks.names("memory_ids", memory_ids, most=checks.MAX_LIMIT)
        return await self._store.get(checks.name("user_id", user_id), ids)

    async def list(
        self,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        memory_types: Sequence[str] | None = None,
        layers: Sequence[Layer] | None = None,
        tags: Sequence[str] | None = None,
        time_range: TimeRange | None = None,
        as_of: datetime | None = None,
        status: Status = "active",
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Memories, newest first. The next page is asked for with `cursor=page.next_cursor`; what is added meanwhile
        does not shift it."""
        where = scope(
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_types=memory_types,
            layers=layers,
            tags=tags,
            time_range=time_range,
            as_of=as_of,
            status=status,
        )
        return await self._store.page(
            where, cursor=checks.optional_name("cursor", cursor), limit=checks.whole("limit", limit)
        )

    async def count(
        self,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        memory_types: Sequence[str] | None = None,
        layers: Sequence[Layer] | None = None,
        tags: Sequence[str] | None = None,
        time_range: TimeRange | None = None,
        as_of: datetime | None = None,
        status: Status = "active",
    ) -> int:
        """How many memories there are; the filters are those of `list`."""
        where = scope(
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_types=memory_types,
            layers=layers,
            tags=tags,
            time_range=time_range,
            as_of=as_of,
            status=status,
        )
        return await self._store.count(where)

    async def users(self) -> Sequence[str]:
        """The ids of all users that have memories or messages."""
        return await self._store.users()

    async def history(self, memory_id: str, *, user_id: str) -> Sequence[Revision]:
        """Every change of a memory, oldest first: who, when, why, before, after."""
        return await self._store.history(checks.name("user_id", user_id), checks.name("memory_id", memory_id))

    async def stats(self, user_id: str | None = None) -> Stats:
        """What the store holds, of one user or of all."""
        return await self._store.stats(self._embedder.id, checks.optional_name("user_id", user_id))

    # -- upkeep -----------------------------------------------------------------------------------------------------

    async def reindex(self, *, progress: Progress | None = None) -> int:
        """Give every memory a vector of the present embedder that has none. It can be interrupted and started again."""
        return await reindex_embeddings(self._store, self._embedder, progress)

    # -- words ------------------------------------------------------------------------------------------------------

    async def add_synonyms(self, pairs: Iterable[GivenPair], *, user_id: str | None = None) -> int:
        """Teach it words that mean the same, for one user or, without `user_id`, for all. → how many are new or changed

        await memory.add_synonyms([("k8s", "kubernetes"), ("老王", "王总", 0.9)], user_id="mei")
        """
        return await self._store.add_synonyms(checks.optional_name("user_id", user_id), checked(pairs))

    async def synonyms(self, *, user_id: str | None = None) -> Sequence[Synonym]:
        """The pairs that were added: a user's own and the shared ones, or, without `user_id`, the shared ones."""
        return await self._store.synonyms(checks.optional_name("user_id", user_id))

    async def remove_synonym(self, keyword: str, synonym: str | None = None, *, user_id: str | None = None) -> int:
        """Remove one pair, or all pairs of a word: a user's own or, without `user_id`, shared ones. → how many"""
        return await self._store.remove_synonym(
            checks.optional_name("user_id", user_id),
            checks.name("keyword", keyword),
            checks.optional_name("synonym", synonym),
        )

    async def expand_keywords(self, keywords: Sequence[str], *, user_id: str) -> Expansion:
        """Other words for these: synonyms, and words that go together with them in this user's memories."""
        words = checks.names("keywords", keywords)
        where = scope(user_id=user_id)
        own = await self._store.synonyms_of(where.user_id, words)
        return expand(words, own, related_words(await self._store.company(where, words)))
