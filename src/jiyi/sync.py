"""`Memory` for synchronous callers.

    from jiyi.sync import Memory

    with Memory.open() as memory:
        memory.add("我吃素，对花生过敏", user_id="mei")

Each verb delegates to the asynchronous engine, which runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from . import memory as engine
from .areas import jobs, keys, maintenance, sessions, synonyms, transfer, usage, workspace
from .embed import Embedder
from .engine import Runtime
from .errors import StoreError
from .forks import FORKED, Owner
from .llm import LLM
from .reader import Reader
from .scope import explain_verbs
from .settings import Settings
from .store.write_set import CLOSED
from .write.drafts import Extractor

P = ParamSpec("P")
T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, Any]], Any]


def _verb(verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    @wraps(verb)
    def call(self: Memory | Area, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._run(getattr(self._memory, verb.__name__)(*args, **kwargs))
        return result

    return call


class Area:
    def __init__(self, area: Any, run: Run) -> None:
        self._memory = area
        self._run = run


class Jobs(Area):
    epoch = _verb(jobs.Jobs.epoch)
    status = _verb(jobs.Jobs.status)
    wait = _verb(jobs.Jobs.wait)
    list = _verb(jobs.Jobs.list)
    get = _verb(jobs.Jobs.get)
    retry = _verb(jobs.Jobs.retry)
    cancel = _verb(jobs.Jobs.cancel)
    counts = _verb(jobs.Jobs.counts)
    work = _verb(jobs.Jobs.work)


class Keys(Area):
    create = _verb(keys.Keys.create)
    list = _verb(keys.Keys.list)
    revoke = _verb(keys.Keys.revoke)
    check = _verb(keys.Keys.check)
    exist = _verb(keys.Keys.exist)
    audit = _verb(keys.Keys.audit)
    log = _verb(keys.Keys.log)


class Synonyms(Area):
    add = _verb(synonyms.Synonyms.add)
    list = _verb(synonyms.Synonyms.list)
    remove = _verb(synonyms.Synonyms.remove)
    expand = _verb(synonyms.Synonyms.expand)


class Workspace(Area):
    sync = _verb(workspace.Workspace.sync)
    status = _verb(workspace.Workspace.status)
    verify = _verb(workspace.Workspace.verify)
    rebuild = _verb(workspace.Workspace.rebuild)
    watch = _verb(workspace.Workspace.watch)


class Maintenance(Area):
    compress_plan = _verb(maintenance.Maintenance.compress_plan)
    compress = _verb(maintenance.Maintenance.compress)
    run = _verb(maintenance.Maintenance.run)
    undo_plan = _verb(maintenance.Maintenance.undo_plan)
    undo = _verb(maintenance.Maintenance.undo)
    reindex = _verb(maintenance.Maintenance.reindex)
    verify = _verb(maintenance.Maintenance.verify)
    verify_engines = _verb(maintenance.Maintenance.verify_engines)
    rebuild = _verb(maintenance.Maintenance.rebuild)
    vacuum = _verb(maintenance.Maintenance.vacuum)


class Transfer(Area):
    export = _verb(transfer.Transfer.export)
    backup = _verb(transfer.Transfer.backup)
    import_chats = _verb(transfer.Transfer.import_chats)
    import_memories = _verb(transfer.Transfer.import_memories)


class Relations(Area):
    list = _verb(synonyms.Relations.list)
    add = _verb(synonyms.Relations.add)
    remove = _verb(synonyms.Relations.remove)


class Sessions(Area):
    end = _verb(sessions.Sessions.end)
    add_summary = _verb(sessions.Sessions.add_summary)
    record_skill = _verb(sessions.Sessions.record_skill)
    observe = _verb(sessions.Sessions.observe)
    flush = _verb(sessions.Sessions.flush)


class Usage(Area):
    recalls = _verb(usage.Usage.recalls)
    most_used = _verb(usage.Usage.most_used)
    groups = _verb(usage.Usage.groups)
    observed = _verb(usage.Usage.observed)
    metrics = _verb(usage.Usage.metrics)
    prometheus = _verb(usage.Usage.prometheus)
    changes = _verb(usage.Usage.changes)
    profile = _verb(usage.Usage.profile)
    units = _verb(usage.Usage.units)
    subjects = _verb(usage.Usage.subjects)
    mentions = _verb(usage.Usage.mentions)
    review = _verb(usage.Usage.review)
    sizes = _verb(usage.Usage.sizes)


async def _cancel_tasks() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


@explain_verbs
class Memory:
    """A long-term memory; see `jiyi.Memory` for its verbs and areas."""

    def __init__(self, memory: engine.Memory) -> None:
        self._memory = memory
        self._owner = Owner()
        self._owner.take()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="jiyi", daemon=True)
        self._thread.start()
        self.jobs = Jobs(memory.jobs, self._run)
        self.keys = Keys(memory.keys, self._run)
        self.synonyms = Synonyms(memory.synonyms, self._run)
        self.relations = Relations(memory.relations, self._run)
        self.workspace = Workspace(memory.workspace, self._run)
        self.maintenance = Maintenance(memory.maintenance, self._run)
        self.transfer = Transfer(memory.transfer, self._run)
        self.sessions = Sessions(memory.sessions, self._run)
        self.usage = Usage(memory.usage, self._run)
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
        llm: LLM | None = None,
        extractor: Extractor | None = None,
        extractors: Sequence[Extractor] = (),
        reader: Reader | None = None,
        workspace: str | Path | None = None,
        workspace_user: str | None = None,
        key: str | None = None,
    ) -> Self:
        """Open a memory at a path or URL; use it in a `with` block, or close it."""
        memory = engine.Memory.open(
            where,
            settings=settings,
            embedder=embedder,
            llm=llm,
            extractor=extractor,
            extractors=extractors,
            reader=reader,
            workspace=workspace,
            workspace_user=workspace_user,
            key=key,
        )
        return cls(memory)

    @property
    def _runtime(self) -> Runtime:
        return self._memory._runtime

    add = _verb(engine.Memory.add)
    observe = _verb(engine.Memory.observe)
    update = _verb(engine.Memory.update)
    update_many = _verb(engine.Memory.update_many)
    restore = _verb(engine.Memory.restore)
    delete = _verb(engine.Memory.delete)
    delete_many = _verb(engine.Memory.delete_many)
    delete_all = _verb(engine.Memory.delete_all)
    search = _verb(engine.Memory.search)
    answer = _verb(engine.Memory.answer)
    context = _verb(engine.Memory.context)
    recall = _verb(engine.Memory.recall)
    get = _verb(engine.Memory.get)
    get_many = _verb(engine.Memory.get_many)
    list = _verb(engine.Memory.list)
    messages = _verb(engine.Memory.messages)
    count = _verb(engine.Memory.count)
    timeline = _verb(engine.Memory.timeline)
    history = _verb(engine.Memory.history)
    sources = _verb(engine.Memory.sources)
    users = _verb(engine.Memory.users)
    stats = _verb(engine.Memory.stats)
    health = _verb(engine.Memory.health)

    def close(self) -> None:
        """Close the database; closing twice does no harm."""
        if not self._loop.is_closed() and not self._owner.is_forked:
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
        """Start a coroutine in the engine's thread."""
        if self._loop.is_closed():
            work.close()
            raise StoreError(CLOSED)
        if self._owner.is_forked:
            work.close()
            raise StoreError(FORKED)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._begin(work).result()
        except CancelledError:  # another thread closed it meanwhile
            raise StoreError(CLOSED) from None

    def _stop(self) -> None:
        asyncio.run_coroutine_threadsafe(_cancel_tasks(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
