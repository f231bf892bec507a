"""The class `Memory`: each verb checks its arguments and runs its stages. Those of writing are imported when needed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack, cast, get_args

from pydantic import JsonValue

from . import threads, validation
from .areas import Areas
from .areas.background import BackgroundJobs
from .areas.bulk import Bulk
from .areas.recalls import Recalls
from .areas.sessions import Derive, TurnQueue
from .embed import Embedder
from .engine import Engine, Runtime
from .errors import InvalidInput
from .health import HealthCheck
from .llm import LLM
from .models import (
    Deletion,
    Health,
    MemoryItem,
    OnConflict,
    Receipt,
    ReceiptState,
    Revision,
    SearchMode,
    SearchResult,
    SourceMessage,
    Stats,
    Status,
)
from .read.query import interpret, with_llm_synonyms
from .reader import Reader
from .scope import Changes, Filters, explain_arguments
from .settings import Settings, load_settings

if TYPE_CHECKING:
    from .write.accept import What
    from .write.drafts import Extractor


@explain_arguments
class Memory(Areas, Bulk, Recalls):
    """A long-term memory.

    async with Memory.open() as memory:
        await memory.add("我吃素，对花生过敏", user_id="mei")
        found = await memory.search("what can she eat?", user_id="mei")

    Less common operations are in the areas `jobs`, `keys`, `synonyms`, `relations`, `workspace`, `maintenance`,
    `transfer`, `sessions` and `usage`.
    """

    def __init__(self, engine: Engine, where: str | None = None) -> None:
        self._runtime = Runtime(settings=engine.settings, where=where, meter=engine.meter, llm=engine.llm)
        self._engine = engine
        self._background = BackgroundJobs(engine)
        self._turns = TurnQueue(self._keep_turn, engine.epoch, engine.store.database.owner)
        self._health = HealthCheck(engine)

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        llm: LLM | None = None,
        extractor: Extractor | None = None,
        extractors: Sequence[Extractor] = (),
        reader: Reader | None = None,
        workspace: str | Path | None = None,
        workspace_user: str | None = None,
        key: str | None = None,
    ) -> Self:
        """Open a memory at a path or URL, by default a file in the user's data directory. An `http://` or `https://`
        URL names a server (`jiyi serve`); `key` is its API key. With a `workspace`, a folder, memories are also files:
        DIR/context/memory.md of the `workspace_user`, or DIR/<user>/context/memory.md of each user.

        `embedder`, `llm` and `reader` replace those of the settings. `extractors`, and those of installed
        packages, run beside the built-in one; a slow `extractor`, such as one that asks a model, runs in a job and
        replaces that.
        Use it as `async with Memory.open() as memory:`, or `memory = await Memory.open()` and `await memory.close()`.
        """
        settings = settings or load_settings()
        parts: dict[str, Any] = {"settings": settings, "embedder": embedder, "llm": llm}
        parts |= {"reader": reader, "extractor": extractor, "extractors": extractors}
        parts |= {"workspace": workspace, "workspace_user": workspace_user}
        if str(where or settings.url or "").lower().startswith(("http://", "https://")):
            from .client import Memory as Client

            return cast("Self", Client.open(where, **parts, key=key))  # it has the same verbs and areas
        if key is not None:
            raise InvalidInput("key", "is for a server: a file or a database has none")
        return cls(Engine.build(where, **parts), None if where is None else str(where))

    async def close(self) -> None:
        """Wait at most half a minute for observed turns, store pending writes, and close the database. Unfinished jobs
        stay in it; the next process continues them."""
        if not self._engine.store.database.owner.is_forked:  # its own process closes it
            await self._turns.close()
            await self._background.stop()
            await self._engine.close()

    async def __aenter__(self) -> Self:
        await self._engine.start()
        await self._background.resume()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

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
        trust: float = 1.0,
        user_names: Sequence[str] | None = None,
        own_only: bool = False,
        instructions: str | None = None,
        categories: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        epoch: str | None = None,
        on_conflict: OnConflict = "error",
        wait: bool = True,
        actor: str = "user",
    ) -> Receipt:
        """Add a statement, a message, a conversation, or ready candidates.

        When it returns, everything is durable. Adding the same again creates nothing new; with an `idempotency_key`
        a repeated call returns the first one's receipt. With a language model, memories are extracted after `add` has
        accepted the messages; `wait=False` does not wait for that, and `jobs.status` and `jobs.wait` follow it.

        If a candidate's `memory_key` is taken, `on_conflict` decides: `MemoryKeyTaken`, skip it, or update that memory,
        all in one transaction; `rows` of the receipt says what became of each.

        `trust` is how far the source is trusted, a web page less than the user. Less trusted memories never confirm,
        end or extend more trusted ones, and `min_trust` filters them out of a search. With an `epoch` (`jobs.epoch`),
        nothing is saved if the user was deleted since then.

        A message is the user's if it has no name, or the `user_id` or one of `user_names` (also a setting) as its name.
        With any other name it is another person's: it ends only what that person said. With `own_only`, memories are
        made only of what the user told, what is about the user, and the user's own episodes. `instructions` tell a
        language model what to remember and what never; `categories` ("diet: food and allergies") are the tags it gives.

            await memory.add("I moved to Berlin in May", user_id="mei")
            await memory.add([{"role": "user", "content": "下周三去上海出差"}], user_id="mei", session_id="s1")
        """
        from .write.accept import accept
        from .write.add import add
        from .write.build import Context

        whose: Any = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id, "group_id": group_id}
        about: Any = {"memory_type": memory_type, "importance": importance, "tags": tags, "metadata": metadata}
        about |= {"occurred_at": occurred_at, "expires_at": expires_at, "trust": trust, "epoch": epoch}
        about |= {"own_only": own_only, "instructions": instructions, "categories": categories or ()}
        context = Context.parse(**whose, **about, user_names=user_names or ())
        validation.choice("on_conflict", on_conflict, get_args(OnConflict))
        accepted = accept(what)
        key, actor = validation.optional_name("idempotency_key", idempotency_key), validation.name("actor", actor)
        with self._engine.meter.timing("add"):
            names, flow = self._engine.settings.user_names, self._engine.pipeline
            rest: Any = {"idempotency_key": key, "user_names": names, "on_conflict": on_conflict, "actor": actor}
            receipt = await add(accepted, context, **rest, flow=flow)
        self._engine.meter.count("memories_made_total", by=receipt.created)
        if receipt.state is ReceiptState.ACCEPTED or self._engine.slow_extractor is not None:
            self._background.wake()
        if wait and receipt.state is ReceiptState.ACCEPTED:
            receipt = await self.jobs.wait(receipt, user_id=user_id)
        return receipt

    async def observe(
        self,
        user_text: str,
        assistant_text: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        metadata: dict[str, JsonValue] | None = None,
    ) -> None:
        """Add a turn of a chat. It is stored when this returns, which takes three seconds at most and raises nothing.

        Making memories of it may take longer and continues in the background; `sessions.flush` and `close` wait for it.
        If the program ends before that, the next one that opens the store, or `jiyi worker`, continues. Failures are
        logged and counted (`usage.observed`).

            await memory.observe("我下周三去上海", "好的，需要订酒店吗？", user_id="mei", session_id="s1")
        """
        scope: Any = {"session_id": session_id, "agent_id": agent_id, "group_id": group_id, "metadata": metadata}
        await self._turns.put_texts(user_text, assistant_text, user_id=user_id, **scope)

    async def _keep_turn(
        self, messages: Sequence[Any], *, actor: str, user_names: Sequence[str] | None = None, **whose: Any
    ) -> Derive | None:
        """Store what was observed. Return the rest of the work, if any."""
        from .write.accept import accept
        from .write.build import Context

        accepted = accept(messages)
        if accepted.candidates:
            await self.add(messages, actor=actor, user_names=user_names, wait=False, **whose)
            return None
        context = Context.parse(**whose, user_names=user_names or ()).with_names(self._engine.settings.user_names)
        return await self._background.keep_turn(accepted, context, actor=actor)

    async def update(
        self,
        memory_id: str,
        *,
        user_id: str,
        expected_version: int | None = None,
        actor: str = "user",
        reason: str | None = None,
        **changes: Unpack[Changes],
    ) -> MemoryItem:
        """Change some fields of a memory; the previous state stays in its history.

        Fields: `content`, `summary`, `memory_type`, `importance`, `tags`, `metadata`, `occurred_at`, `valid_to`,
        `expires_at`, `status`. `VersionConflict` is raised if the memory is not at `expected_version`.

            await memory.update(memory_id, user_id="mei", content="likes coffee", expected_version=3)
        """
        from .write.change import changed_fields

        given = changed_fields(**changes)
        action = "archive" if given.get("status") == "archived" else "update"
        return await self._engine.change(
            memory_id, given, user_id=user_id, expected=expected_version, action=action, actor=actor, reason=reason
        )

    async def restore(
        self,
        memory_id: str,
        *,
        user_id: str,
        to_version: int | None = None,
        expected_version: int | None = None,
        actor: str = "user",
        reason: str | None = None,
    ) -> MemoryItem:
        """Restore an earlier version, by default the one before the last change. `VersionConflict` is raised if the
        memory is not at `expected_version`."""
        return await self._engine.restore(
            memory_id, user_id=user_id, to_version=to_version, expected=expected_version, actor=actor, reason=reason
        )

    async def delete(self, memory_id: str, *, user_id: str, with_sources: bool = False) -> Deletion:
        """Delete a memory with its history. This cannot be undone.

        So are its words in messages, and answers that repeat them; `with_sources` deletes also messages of which it
        quotes no part. What it superseded holds again. Profiles lose its lines; episodes that contain it go too.

            gone = await memory.delete(found.hits[0].id, user_id="mei")
        """
        from .keep.erase import erase

        memory, engine = await self.get(memory_id, user_id=user_id), self._engine
        lines = await engine.before_delete(user_id)
        done = await erase(engine.store, engine.embedder, engine.rules, user_id, [memory.id], with_sources=with_sources)
        return await engine.forget_traces(user_id, done, lines)

    async def delete_all(self, user_id: str) -> Deletion:
        """Delete everything of exactly this user. This cannot be undone. Work that began before it saves nothing."""
        from .keep.erase import erase_all

        engine, user_id = self._engine, validation.name("user_id", user_id)
        lines = await engine.before_delete(user_id)
        done = await erase_all(engine.store, engine.index, user_id)
        return await engine.forget_traces(user_id, done, lines, everything=True)

    async def search(
        self,
        query: str,
        *,
        user_id: str,
        search_mode: SearchMode | None = None,
        keywords: Sequence[str] | None = None,
        min_relevance_score: float = 0.0,
        radius: float | None = None,
        limit: int = 5,
        asked_at: datetime | None = None,
        explain: bool = False,
        **filters: Unpack[Filters],
    ) -> SearchResult:
        """Search memories: `hybrid` (the default), `keyword` or `semantic`.

        Filters: `session_id`, `agent_id`, `group_id`, `memory_types`, `layers`, `tags` (any), `time_range` or
        `time_range_days`, `as_of` (valid then), `min_trust`, `metadata` (by key a value, `{"in": [1, 2]}` or
        `{"gte": 1, "lt": 5}`), and `keywords`: memories that have one of these words as a keyword, by a synonym, or in
        their text. They apply in every mode and before the limit. `asked_at` replaces the current time.
        `radius` is the least similarity of hits that are found by their meaning, where 0.7 means related texts; it is
        mapped to the scale of the embedder.

            found = await memory.search("咖啡", user_id="mei", limit=3, explain=True)
        """
        return await self._search(
            query,
            user_id=user_id,
            search_mode=search_mode,
            keywords=keywords,
            min_relevance_score=min_relevance_score,
            radius=radius,
            limit=limit,
            asked_at=asked_at,
            explain=explain,
            **filters,
        )

    async def _search(
        self,
        query: str,
        *,
        user_id: str,
        search_mode: SearchMode | None = None,
        keywords: Sequence[str] | None = None,
        min_relevance_score: float = 0.0,
        radius: float | None = None,
        limit: int = 5,
        asked_at: datetime | None = None,
        explain: bool = False,
        also_read: Sequence[str] = (),
        with_messages: bool = True,
        reading_s: float | None = None,
        **filters: Unpack[Filters],
    ) -> SearchResult:
        """Search, and judge also the memories with the ids `also_read`, whether or not evidence finds them; without
        messages, only what is listed. After `reading_s` the rest is not read."""
        engine, settings = self._engine, self._engine.settings
        where = replace(engine.search_filter(user_id, asked_at, filters), with_messages=with_messages)
        parsed = await threads.run(
            len(validation.text("query", query, longest=validation.MAX_QUERY)),
            interpret,
            query,
            where,
            mode=settings.search.default_mode if search_mode is None else search_mode,
            keywords=keywords,
            min_score=min_relevance_score,
            radius=radius,
            limit=limit,
            explain=explain,
            with_synonyms=settings.extraction.enable_synonym_expansion,
            also_read=also_read,
            reading_s=reading_s,
        )
        unread = await engine.sync_files(where.user_id)
        # The last days are different ones at each moment, so that such a result cannot be cached.
        cacheable = filters.get("time_range_days") is None or asked_at is not None
        with engine.meter.timing("search", parsed.mode):
            parsed, problem = await with_llm_synonyms(parsed, engine.expander)
            found = await engine.searcher.search(parsed, asked_at=asked_at, cacheable=cacheable)
        if notes := tuple(note for note in (problem, unread) if note):
            found = found.model_copy(update={"degraded": (*found.degraded, *notes)})
        return engine.meter.count_search(found)

    async def get(self, memory_id: str, *, user_id: str) -> MemoryItem:
        """Return one memory by its id, a unique beginning of it (8 characters or more), or its `memory_key`."""
        from .write.change import named

        await self._engine.sync_files(validation.name("user_id", user_id))
        return await named(self._engine.store, user_id, validation.name("memory_id", memory_id))

    async def count(self, *, user_id: str, status: Status = "active", **filters: Unpack[Filters]) -> int:
        """Count memories; the filters are those of `list`."""
        where = self._engine.list_filter(user_id, status, filters)
        await self._engine.sync_files(where.user_id)
        return await self._engine.store.memories.count(where)

    async def history(self, memory_id: str, *, user_id: str) -> Sequence[Revision]:
        """List every change of a memory, oldest first: who, when, why, before, after."""
        return await self._engine.store.history.get(*validation.ids(user_id, memory_id))

    async def sources(self, memory_id: str, *, user_id: str) -> Sequence[SourceMessage]:
        """List the messages that a memory came from, verbatim. A statement has none: it is its own source."""
        return await self._engine.store.memories.sources(*validation.ids(user_id, memory_id))

    async def users(self) -> Sequence[str]:
        """List the ids of all users that have memories or messages."""
        return await self._engine.store.memories.users()

    async def stats(self, user_id: str | None = None) -> Stats:
        """Count what the store holds, of one user or of all."""
        engine, user_id = self._engine, validation.optional_name("user_id", user_id)
        held = await engine.store.statistics.stats(engine.embedder.id, user_id)
        return held.model_copy(update={"cache": engine.searcher.cache_use(), "reader": engine.searcher.reader_id})

    async def health(self) -> Health:
        """Check that the store answers, that jobs get done, and that texts can be embedded."""
        return await self._health()
