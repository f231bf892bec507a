"""The same memory for synchronous callers.

    from jiyi.sync import Memory

    with Memory.open() as memory:
        memory.add("我吃素，对花生过敏", user_id="mei")

Each verb hands over to the asynchronous engine, which runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from . import memory as engine
from .errors import StoreError
from .store.contract import CLOSED

if TYPE_CHECKING:
    from .embed import Embedder
    from .settings import Settings
    from .write.drafts import Extractor

P = ParamSpec("P")
T = TypeVar("T")


def _verb(
    verb: Callable[Concatenate[engine.Memory, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Memory, P], T]:
    @wraps(verb)
    def call(self: Memory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self._memory, verb.__name__)(*args, **kwargs)  # a client has its own
        return self._run(work)

    return call


async def _cancel_the_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


class Memory:
    """A long-term memory; see `jiyi.Memory` for its verbs."""

    def __init__(self, memory: engine.Memory) -> None:
        self._memory = memory
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="jiyi", daemon=True)
        self._thread.start()
        try:
            self._run(memory.__aenter__())
        except BaseException:
            self._stop()
            raise

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        extractor: Extractor | None = None,
        workspace: str | Path | None = None,
        workspace_user: str | None = None,
        key: str | None = None,
    ) -> Self:
        """A memory at a path or URL, open at once; use it in a `with` block, or close it."""
        memory = engine.Memory.open(
            where,
            settings=settings,
            embedder=embedder,
            extractor=extractor,
            workspace=workspace,
            workspace_user=workspace_user,
            key=key,
        )
        return cls(memory)

    @property
    def settings(self) -> Settings:
        return self._memory.settings

    add = _verb(engine.Memory.add)
    update = _verb(engine.Memory.update)
    restore = _verb(engine.Memory.restore)
    delete = _verb(engine.Memory.delete)
    delete_all = _verb(engine.Memory.delete_all)
    vacuum = _verb(engine.Memory.vacuum)
    search = _verb(engine.Memory.search)
    context = _verb(engine.Memory.context)
    get = _verb(engine.Memory.get)
    get_many = _verb(engine.Memory.get_many)
    list = _verb(engine.Memory.list)
    count = _verb(engine.Memory.count)
    groups = _verb(engine.Memory.groups)
    users = _verb(engine.Memory.users)
    history = _verb(engine.Memory.history)
    recalls = _verb(engine.Memory.recalls)
    relations = _verb(engine.Memory.relations)
    sources = _verb(engine.Memory.sources)
    timeline = _verb(engine.Memory.timeline)
    stats = _verb(engine.Memory.stats)
    metrics = _verb(engine.Memory.metrics)
    exposition = _verb(engine.Memory.exposition)
    observe = _verb(engine.Memory.observe)
    observed = _verb(engine.Memory.observed)
    flush = _verb(engine.Memory.flush)
    end_session = _verb(engine.Memory.end_session)
    add_summary = _verb(engine.Memory.add_summary)
    record_skill = _verb(engine.Memory.record_skill)
    status = _verb(engine.Memory.status)
    wait = _verb(engine.Memory.wait)
    jobs = _verb(engine.Memory.jobs)
    job = _verb(engine.Memory.job)
    retry_job = _verb(engine.Memory.retry_job)
    cancel_job = _verb(engine.Memory.cancel_job)
    work = _verb(engine.Memory.work)
    import_chats = _verb(engine.Memory.import_chats)
    import_memories = _verb(engine.Memory.import_memories)
    export = _verb(engine.Memory.export)
    backup = _verb(engine.Memory.backup)
    compress_plan = _verb(engine.Memory.compress_plan)
    compress = _verb(engine.Memory.compress)
    upkeep = _verb(engine.Memory.upkeep)
    undo_plan = _verb(engine.Memory.undo_plan)
    undo = _verb(engine.Memory.undo)
    hot = _verb(engine.Memory.hot)
    reindex = _verb(engine.Memory.reindex)
    verify = _verb(engine.Memory.verify)
    health = _verb(engine.Memory.health)
    job_counts = _verb(engine.Memory.job_counts)
    add_synonyms = _verb(engine.Memory.add_synonyms)
    synonyms = _verb(engine.Memory.synonyms)
    remove_synonym = _verb(engine.Memory.remove_synonym)
    expand_keywords = _verb(engine.Memory.expand_keywords)
    create_key = _verb(engine.Memory.create_key)
    keys = _verb(engine.Memory.keys)
    revoke_key = _verb(engine.Memory.revoke_key)
    check_key = _verb(engine.Memory.check_key)
    has_keys = _verb(engine.Memory.has_keys)
    audit = _verb(engine.Memory.audit)
    note_audit = _verb(engine.Memory.note_audit)
    sync_workspace = _verb(engine.Memory.sync_workspace)
    workspace_status = _verb(engine.Memory.workspace_status)
    verify_workspace = _verb(engine.Memory.verify_workspace)
    rebuild_workspace = _verb(engine.Memory.rebuild_workspace)
    watch_workspace = _verb(engine.Memory.watch_workspace)

    def close(self) -> None:
        """Let go of the database; closing twice does no harm."""
        if not self._loop.is_closed():
            try:
                self._run(self._memory.close())
            finally:
                self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start something in the engine's thread; adapters that serve both kinds of callers wait for it their way."""
        if self._loop.is_closed():
            work.close()
            raise StoreError(CLOSED)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._begin(work).result()
        except CancelledError:  # another thread closed it meanwhile
            raise StoreError(CLOSED) from None

    def _stop(self) -> None:
        asyncio.run_coroutine_threadsafe(_cancel_the_rest(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
