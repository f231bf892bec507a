"""The parts that verbs and areas share, built from settings, and `runtime`, which other packages read them with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from . import validation
from .cache import resolve as resolve_caches
from .embed import CachedQueries, Embedder, resolve
from .errors import JiyiError
from .index.search_index import SearchIndex
from .keep.retention import Retention
from .llm import LLM
from .llm import resolve as resolve_llm
from .metrics import Meter
from .models import Deletion, MemoryItem, Status
from .rate_limit import CircuitBreaker
from .read.accesses import Accesses, Period
from .read.presets import PRESETS, TYPE_PRIORITIES, Ranking
from .read.search import KEPT, Searcher
from .reader import Reader
from .reader import resolve as resolve_reader
from .scope import Filter, Filters, Lifetimes
from .settings import EngineSettings, Settings
from .store.repositories.memories import Places
from .store.store import Store
from .store.write_set import FeedPosition
from .text.fence import Fence
from .text_cache import clear_text_caches
from .transfer.spool import forget_uploads, spool_of

if TYPE_CHECKING:
    from .engines import Engines
    from .files.workspace_files import WorkspaceFiles
    from .llm.client import LLMClient
    from .llm.keywords import Expander
    from .write.add import Flow
    from .write.change import WantedChange
    from .write.drafts import Extractor
    from .write.index import KeywordRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Settings and services of an open memory that servers, agents and tools use too."""

    settings: Settings
    where: str | None  # as given to `open`; None: as in the settings
    meter: Meter
    llm: LLMClient | None = None  # None for a client: the server's is not accessible
    fence: Fence | None = None  # of a client; a store has its own secret
    is_remote: bool = False  # a client of a server
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker, compare=False)  # of recalls in turns


def runtime(memory: Any) -> Runtime:
    """Return the settings and services of a `Memory`, be it local, synchronous or a client."""
    found: Runtime = memory._runtime
    return found


async def fence_of(memory: Any) -> Fence:
    """Return the fence for blocks with memories of a `Memory`, be it local, synchronous or a client."""
    found = runtime(memory)
    return found.fence or await memory._engine.fence()


async def settle_turns(memory: Any, user_id: str) -> None:
    """Wait a moment for the observed turns of a user, so that a search sees them."""
    await memory._turns.settle(user_id, runtime(memory).settings.tools.recall_timeout_s / 2)


async def owner_of(memory: Any, memory_id: str) -> str | None:
    """Return the user of a memory, for protocols that name a memory without its user."""
    engine: Engine = memory._engine
    return await engine.store.memories.owner(memory_id)


async def ids_in(memory: Any, user_id: str, places: Places) -> list[str]:
    """Return the ids of all memories of agents, sessions or groups, also of those that no listing shows."""
    engine: Engine = memory._engine
    return await engine.store.memories.ids_in(user_id, places)


async def users_in(memory: Any, places: Places) -> list[str]:
    """Return the users who have memories of agents, sessions or groups."""
    engine: Engine = memory._engine
    return await engine.store.memories.users_in(places)


async def delete_many(
    memory: Any, wanted: Mapping[str, Sequence[str]], *, with_sources: bool, all_or_none: bool
) -> dict[str, Deletion]:
    """Delete memories of users in one transaction; with `all_or_none` nothing if one of them does not exist."""
    from .keep.erase import erase_each

    engine: Engine = memory._engine
    lines = {user_id: await engine.before_delete(user_id) for user_id in wanted}
    parts = (engine.store, engine.embedder, engine.rules)
    done = await erase_each(*parts, wanted, with_sources=with_sources, all_or_none=all_or_none)
    return {user_id: await engine.forget_traces(user_id, one, lines[user_id]) for user_id, one in done.items()}


async def update_many(memory: Any, wanted: Sequence[WantedChange], *, actor: str) -> list[MemoryItem]:
    """Change memories of users in one transaction, or none of them."""
    from .write.change import change_all

    engine: Engine = memory._engine
    return await change_all(wanted, actor=actor, store=engine.store, embedder=engine.embedder, rules=engine.rules)


def has_reader(memory: Any) -> bool:
    """Return True if hits are read."""
    engine: Engine = memory._engine
    return engine.searcher.reader is not None


async def feed_position(memory: Any, user_id: str) -> FeedPosition | None:
    """Return the user's position in the change feed, after edits in workspace files are applied."""
    engine: Engine = memory._engine
    await engine.sync_files(validation.name("user_id", user_id))
    return await engine.store.changes.position(user_id)


async def changed_since(
    memory: Any, user_id: str, seen: FeedPosition | None, memory_types: Sequence[str]
) -> list[str] | None:
    """Return the ids of memories that changed after a position; None if all have to be read again."""
    engine: Engine = memory._engine
    return await engine.store.changes.changed_since(user_id, seen, memory_types)


@dataclass(frozen=True, kw_only=True)
class Engine:
    settings: Settings
    store: Store
    index: SearchIndex
    embedder: Embedder
    meter: Meter
    searcher: Searcher
    accesses: Accesses
    lifetimes: Lifetimes
    reader: Reader | None
    llm: LLMClient | None
    expander: Expander | None
    extractors: tuple[Extractor, ...]  # of the program, besides the built-in one
    slow_extractor: Extractor | None
    files: WorkspaceFiles | None
    spool: Path  # uploads that wait to be imported
    engines: Engines | None  # external ones

    @classmethod
    def build(
        cls,
        where: str | Path | None,
        *,
        settings: Settings,
        embedder: Embedder | None = None,
        llm: LLM | None = None,
        extractor: Extractor | None = None,
        extractors: Sequence[Extractor] = (),
        reader: Reader | None = None,
        workspace: str | Path | None = None,
        workspace_user: str | None = None,
    ) -> Self:
        """Resolve every part that the settings name. Nothing is opened yet."""
        from .index import open_index
        from .store import open_store

        store, meter = open_store(where or settings.url, settings), Meter()
        embedder = embedder or resolve(settings)
        engines = _engines(store, embedder, settings, meter)
        index = open_index(store, settings, None if engines is None else engines.search)
        if settings.cache.max_query_vectors:
            embedder = CachedQueries(embedder, settings.cache.max_query_vectors)
        expander = None
        reader = resolve_reader(settings, reader)
        client = resolve_llm(settings, store.llm_usage, meter, llm)
        if client is not None:
            # Imported late because its validators are slow to build.
            from .write.llm import LlmExtractor, SupportCheck, verifies

            verify = partial(verifies, settings.llm.verify, client.id, store.keys.passed_self_test)
            extractor = extractor or LlmExtractor(client, SupportCheck(reader=reader, verify=verify))
            if settings.search.expand_with_llm:
                from .llm.keywords import Expander

                expander = Expander(client)
        ranking = _ranking(settings)
        accesses = Accesses(store, index, on=settings.recalls.enabled, keep=settings.recalls.max_per_user)
        period = Period.of(settings.cache.ttl_s, ranking.weights.half_life_days)
        return cls(
            settings=settings,
            store=store,
            index=index,
            embedder=embedder,
            meter=meter,
            searcher=Searcher(
                store,
                index,
                embedder,
                ranking,
                accesses,
                resolve_caches(settings),
                period,
                meter,
                kept=min(KEPT, settings.cache.max_searches),
                reader=reader,
                reading_tokens=settings.search.reading_tokens,
            ),
            accesses=accesses,
            lifetimes=tuple(sorted(Retention(settings=settings.maintenance).lifetimes.items())),
            reader=reader,
            llm=client,
            expander=expander,
            extractors=tuple(extractors),
            slow_extractor=extractor,
            files=_files(settings, workspace, workspace_user),
            spool=spool_of(settings, where),
            engines=engines,
        )

    @cached_property
    def rules(self) -> KeywordRules:
        from .write.index import KeywordRules

        given = self.settings.extraction
        return KeywordRules(given.max_keywords_per_memory, given.min_keyword_weight)

    @cached_property
    def own_extractors(self) -> tuple[Extractor, ...]:
        """Extractors of the program and of installed packages, with the layers of their types."""
        from .write.drafts import installed_extractors, set_layers

        found = (*self.extractors, *installed_extractors())
        set_layers(found)
        return found

    @cached_property
    def pipeline(self) -> Flow:
        """The stages of `add`, loaded with the first one: programs that only search start faster."""
        from .write.add import Flow
        from .write.extract import BuiltinExtractor

        judging = None
        if self.llm is not None:
            from .write.llm import judge

            judging = partial(judge, llm=self.llm)
        return Flow(
            store=self.store,
            index=self.index,
            embedder=self.embedder,
            keyword_rules=self.rules,
            settings=self.settings.extraction,
            extractors=(BuiltinExtractor(),),
            own_extractors=self.own_extractors,
            slow_extractor=self.slow_extractor,
            judge=judging,
            reader=self.reader,
            meter=self.meter,
        )

    @cached_property
    def change(self) -> Callable[..., Awaitable[MemoryItem]]:
        from .write.change import change

        _ = self.own_extractors  # the layer follows the type
        return partial(change, store=self.store, embedder=self.embedder, rules=self.rules)

    @cached_property
    def restore(self) -> Callable[..., Awaitable[MemoryItem]]:
        from .write.change import restore

        return partial(restore, store=self.store, embedder=self.embedder, rules=self.rules)

    async def start(self) -> None:
        await self.store.start()
        if self.files is not None:
            _ = self.own_extractors  # the layer of a type decides about its file
            try:
                await self.files.start(self.store, self.embedder, self.rules)
            except BaseException:
                await self.store.close()
                raise

    async def close(self) -> None:
        """Write what is pending and close the database."""
        if self.llm is not None:
            await self.llm.close()
        if self.files is not None:
            await self.files.close()
        if self.engines is not None:
            await self.engines.close()
        await self.accesses.close()
        await self.searcher.close()
        await self.index.close()
        await self.store.close()

    async def epoch(self, user_id: str) -> str:
        """Return the erasure epoch of a user, which changes when all data of the user is deleted."""
        return await self.store.erasures.epoch(validation.name("user_id", user_id))

    async def fence(self) -> Fence:
        """Return the fence with the store's secret."""
        return Fence(await self.store.secrets.fence())

    def search_filter(self, user_id: str, asked_at: datetime | None, filters: Filters) -> Filter:
        where = Filter.parse(user_id=user_id, asked_at=asked_at, lifetimes=self.lifetimes, **filters)
        least = self.settings.search.min_trust
        return replace(where, min_trust=least) if filters.get("min_trust") is None else where

    def list_filter(self, user_id: str, status: Status, filters: Filters) -> Filter:
        return Filter.parse(user_id=user_id, status=status, lifetimes=self.lifetimes, with_messages=False, **filters)

    async def sync_files(self, user_id: str) -> str | None:
        """Apply edits that people made in workspace files before reading. Returns the problem, if any."""
        return None if self.files is None else await self.files.fresh(user_id)

    async def before_delete(self, user_id: str) -> int:
        """Read what a person has written into files and write pending recalls, so that they are deleted too; return the
        number of lines in workspace files."""
        await self.sync_files(user_id)
        await self.accesses.before_delete(user_id)
        return await self.store.files.count_lines(user_id)

    async def forget_traces(
        self, user_id: str, done: Deletion, lines: int = 0, *, everything: bool = False
    ) -> Deletion:
        """Remove copies of deleted data outside the database: caches, remembered queries, workspace files."""
        clear_text_caches()
        removed, notes = dict(done.removed), list(done.notes)
        if isinstance(self.embedder, CachedQueries):
            self.embedder.clear()
        if results := await self.searcher.forget(user_id):
            removed["cached results"] = results
        if self.engines is not None:
            notes += await self.engines.confirm(user_id)
        if everything:
            epoch = await self.epoch(user_id)
            if uploads := await asyncio.to_thread(forget_uploads, self.spool, user_id, epoch):
                removed["uploads"] = uploads
        if lines and (self.files is None or not self.files.workspace.covers(user_id)):
            notes.append(f"{lines:,} lines were written to files of a workspace: run `jiyi workspace sync` there")
        if self.files is not None and self.files.workspace.covers(user_id):
            try:
                notes += (await self.files.sync(user_id)).problems
            except (JiyiError, OSError) as error:
                notes.append(f"it may still be in the files: {error} — run `jiyi workspace sync`")
        return done.model_copy(update={"removed": removed, "notes": tuple(notes)})


def _ranking(settings: Settings) -> Ranking:
    preset = settings.search.preset
    half_lives = {name: policy.half_life_days for name, policy in settings.maintenance.types.items()}
    return Ranking(
        preset=preset,
        weights=PRESETS[preset].but(settings.search, preset),
        priorities=TYPE_PRIORITIES,
        half_lives={name: days for name, days in half_lives.items() if days is not None},
    )


def _engines(store: Store, embedder: Embedder, settings: Settings, meter: Meter) -> Engines | None:
    if settings.engines == EngineSettings():
        return None
    from .engines import open_engines

    return open_engines(store, embedder, settings, meter)


def _files(settings: Settings, workspace: str | Path | None, user: str | None) -> WorkspaceFiles | None:
    folder = settings.workspace.path if workspace is None else Path(workspace)
    if folder is None:
        return None
    from .files.workspace_files import WorkspaceFiles

    return WorkspaceFiles(folder, user or settings.workspace.user, settings)
