"""A LangGraph store over Jiyi.

    from jiyi.agents.langgraph import JiyiStore

    with JiyiStore.open("memory.db") as store:
        graph = builder.compile(checkpointer=checkpointer, store=store)

An item is a memory: its value is stored in the metadata, its text is searchable, its namespace is the group.
Overwriting an item makes a new version of the memory, so its history stays.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from .. import sync, validation
from ..engine import runtime
from ..errors import InvalidInput, MissingExtra
from ..memory import Memory

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchOp,
        TTLConfig,
        validate_op_namespace,
    )
except ImportError as error:
    raise MissingExtra("langgraph", "langgraph") from error

from ..embed import Embedder
from ..settings import Settings
from .langgraph_items import Items, Namespace, matches
from .recall import await_in, engine_of

MAX_BATCH = 200  # operations that run together
MAX_RUNNERS = 4  # batches at a time: a few connections to the database


class JiyiStore(BaseStore):
    """A LangGraph store whose items are Jiyi memories. All items belong to one user, by default that of the settings.
    With `user_label=1` the second label of a namespace is the user, as in `("memories", "mei")`: items belong to that
    user then, and a search or list must name one."""

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | sync.Memory,
        *,
        user_id: str | None = None,
        user_label: int | None = None,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        if user_label is not None:
            validation.whole("user_label", user_label, lowest=0, highest=100)
            if user_id is not None:
                raise InvalidInput("user_id", "cannot be used together with user_label, which names the user")
        self._memory = memory
        self._user_id = validation.name("user_id", runtime(memory).settings.user if user_id is None else user_id)
        self._user_label = user_label
        self._items = Items(engine_of(memory), fields)
        self.ttl_config = ttl
        self._waiting: deque[tuple[Sequence[Op], asyncio.Future[list[Result]]]] = deque()
        self._runners: set[asyncio.Task[None]] = set()

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        user_id: str | None = None,
        user_label: int | None = None,
        fields: Sequence[str] | None = None,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """Open a store with its own memory, for synchronous and asynchronous graphs; use it in a `with` block."""
        memory = sync.Memory.open(where, settings=settings, embedder=embedder)
        try:
            return cls(memory, user_id=user_id, user_label=user_label, fields=fields, ttl=ttl)
        except BaseException:
            memory.close()
            raise

    def close(self) -> None:
        """Close the memory that `open` opened."""
        if isinstance(self._memory, sync.Memory):
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first the reads, then the last write for each key."""
        if not isinstance(self._memory, sync.Memory):
            raise InvalidInput(
                "memory",
                "is an asynchronous Memory: await the store's a-methods, or make the store with a jiyi.sync.Memory",
            )
        return self._memory._run(self._run(tuple(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations like `batch`. Those of concurrent calls are run together, a few batches at a time, however
        many calls there are."""
        waiting = tuple(ops)
        for op in waiting:
            _check(op)
        return await await_in(self._memory, self._join(waiting))

    async def _join(self, ops: Sequence[Op]) -> list[Result]:
        """Queue operations and wait for their results."""
        results: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
        self._waiting.append((ops, results))
        if len(self._runners) < MAX_RUNNERS:
            runner = asyncio.create_task(self._run_waiting(), name="jiyi-langgraph")
            self._runners.add(runner)
            runner.add_done_callback(self._runners.discard)
        return await results

    async def _run_waiting(self) -> None:
        while self._waiting:
            await asyncio.sleep(0)  # let concurrent calls join
            calls: list[tuple[Sequence[Op], asyncio.Future[list[Result]]]] = []
            while self._waiting and sum(len(ops) for ops, _ in calls) < MAX_BATCH:
                calls.append(self._waiting.popleft())
            await self._run_together([call for call in calls if not call[1].done()])

    async def _run_together(self, calls: Sequence[tuple[Sequence[Op], asyncio.Future[list[Result]]]]) -> None:
        try:
            results = iter(await self._run([op for ops, _ in calls for op in ops]))
        except Exception as error:  # noqa: BLE001 - each caller gets the error of its own operations
            if len(calls) > 1:
                for call in calls:
                    await self._run_together([call])
            elif not calls[0][1].done():
                calls[0][1].set_exception(error)
            return
        for ops, future in calls:
            own = [next(results) for _ in ops]
            if not future.done():
                future.set_result(own)

    async def _run(self, ops: Sequence[Op]) -> list[Result]:
        for op in ops:
            _check(op)
        results: list[Result] = [None] * len(ops)
        gets: defaultdict[str, list[int]] = defaultdict(list)
        puts: defaultdict[str, dict[tuple[Namespace, str], PutOp]] = defaultdict(dict)
        for at, op in enumerate(ops):
            if isinstance(op, GetOp):
                gets[self._user_of(op.namespace)].append(at)
            elif isinstance(op, SearchOp):
                results[at] = await self._items.search(self._user_of(op.namespace_prefix), op)
            elif isinstance(op, ListNamespacesOp):
                results[at] = await self._list_namespaces(op)
            elif isinstance(op, PutOp):
                puts[self._user_of(op.namespace)][op.namespace, op.key] = op
            else:
                raise InvalidInput("ops", f"{type(op).__name__} is not an operation of a store")
        for user_id, places in gets.items():
            found = await self._items.get(user_id, [ops[at] for at in places])  # type: ignore[misc]
            for at, item in zip(places, found, strict=True):
                results[at] = item
        for user_id, wanted in puts.items():
            await self._items.put(user_id, list(wanted.values()))
        return results

    def _user_of(self, namespace: Namespace) -> str:
        if self._user_label is None:
            return self._user_id
        if len(namespace) <= self._user_label:
            raise InvalidInput(
                "namespace", f"{namespace!r} names no user: label {self._user_label} of a namespace is the user's id"
            )
        return validation.name("namespace", namespace[self._user_label])

    async def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        user_id = self._user_id
        if self._user_label is not None:
            prefixes = [condition.path for condition in conditions if condition.match_type == "prefix"]
            named = [path for path in prefixes if len(path) > self._user_label and path[self._user_label] != "*"]
            user_id = self._user_of(named[0] if named else ())
        found = [name for name in await self._items.namespaces(user_id) if all(matches(c, name) for c in conditions)]
        if op.max_depth is not None:
            found = sorted({name[: op.max_depth] for name in found})
        return found[op.offset : op.offset + op.limit]


def _check(op: Op) -> None:
    """Check an operation that was given to `batch` directly."""
    validate_op_namespace(op)
    if isinstance(op, (GetOp, PutOp)) and not op.namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    if isinstance(op, (SearchOp, ListNamespacesOp)):
        validation.whole("limit", op.limit, lowest=0, highest=10**9)
        validation.whole("offset", op.offset, lowest=0, highest=10**9)
