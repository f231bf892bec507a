"""The indexes in RAM, within a budget; the least recently searched user is dropped first."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeGuard

from .. import threads
from ..errors import StoreError
from ..scope import Lifetimes
from ..store.database import chunks
from ..store.store import Store
from ..store.write_set import SearchSnapshot
from . import packed
from .legs import Engines, ExternalVectors
from .query import Candidates, IndexQuery
from .user_index import UserIndex

TOO_FAR_BEHIND = 2000  # changes, from which on a small index is loaded anew, and a large packed one packed anew
A_FEW_CHANGES = 150  # that a packed index may always be behind
KEEP_UP = 500  # memories that wait for the next search at most
BY_WORDS = 1000  # memories that match by words, whose similarity is computed though their vectors stay elsewhere
SELDOM = 25  # if fewer than one in so many are in scope, comparing all of those is faster than walking an index
WORTH_A_THREAD = 15_000  # memories; scanning fewer is faster than a thread switch
MANY_TERMS = 200  # of a query; looking up fewer is, too

logger = logging.getLogger(__name__)


class SearchIndex:
    """The indexes of recently searched users, within a memory budget."""

    def __init__(
        self,
        store: Store,
        *,
        budget: int,
        external: ExternalVectors | None = None,
        engines: Engines | None = None,
    ) -> None:
        self._store = store
        self._budget = budget
        self._external = external
        self._engines = engines
        self._users: OrderedDict[str, UserIndex] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._expected: dict[str, int] = {}  # newest known change
        self._written: Counter[str] = Counter()  # memories that this process wrote since an index was read
        self._saving: set[asyncio.Task[None]] = set()  # packed indexes
        self._used = 0
        # One search at a time per user, because catching up changes the arrays that a scan in another thread reads.
        self._locks = [asyncio.Lock() for _ in range(64)]

    async def gather(self, query: IndexQuery) -> Candidates:
        if query.filter.metadata:
            query = replace(query, ids=await self._store.memories.ids(query.filter))
        failures: tuple[str, ...] = ()
        if self._engines is not None:
            found = await self._engines.gather(query)
            if isinstance(found, Candidates):
                return found
            failures = found
        return replace(await self._gather_in_ram(query), missing=failures)

    async def _gather_in_ram(self, query: IndexQuery) -> Candidates:
        user_id = query.filter.user_id
        async with self._locks[hash(user_id) % len(self._locks)]:
            dimension = 0 if query.vector is None else len(query.vector)
            index = self._users.get(user_id)
            # An index that has seen the changes in the snapshot needs no read.
            if query.seen is None or not _fits(index, query.model, dimension) or index.seen < query.seen:
                index = await self._current(user_id, query.model, dimension)
                index.seen = max(index.seen, query.seen or 0)
            self._keep(user_id, index)
            if self._external is not None and index.external:
                await _load_vectors(self._external, index, query)
            if len(index) < WORTH_A_THREAD and len(query.terms) < MANY_TERMS:
                return index.gather(query)
            return await asyncio.to_thread(index.gather, query)

    async def people(self, user_id: str, model: str) -> frozenset[str]:
        """Return the speakers in a user's memories; new ones may be missing until the next search."""
        if self._engines is not None and (people := await self._engines.people(user_id)) is not None:
            return people
        if self._is_behind(user_id):
            async with self._locks[hash(user_id) % len(self._locks)]:
                if self._is_behind(user_id):  # another search may have loaded it meanwhile
                    expected = self._expected.get(user_id, 0)
                    current = await self._current(user_id, model, 0)
                    current.seen = max(current.seen, expected)
                    self._keep(user_id, current)
        index = self._users.get(user_id)
        return frozenset() if index is None else index.people

    def _is_behind(self, user_id: str) -> bool:
        index = self._users.get(user_id)
        return index is None or index.seen < self._expected.get(user_id, 0)

    def expect(self, user_id: str, seq: int) -> None:
        """Note the newest change; an index that has seen less is behind."""
        if user_id in self._users:
            self._expected[user_id] = seq

    async def keep_up(self, user_id: str, written: int) -> None:
        """Apply what this process has written to an index in RAM once much has gathered: a search after a long import
        would have to do it all at once."""
        if user_id not in self._users:
            return
        self._written[user_id] += written
        if self._written[user_id] < KEEP_UP:
            return
        async with self._locks[hash(user_id) % len(self._locks)]:
            index = self._users.get(user_id)
            try:
                if index is not None:
                    self._keep(user_id, await self._current(user_id, index.model, index.dimension))
            except StoreError as error:  # it is written; the next search reads it, or says what is wrong
                logger.info("the index of a user does not keep up: %s", error)

    async def search_snapshot(self, user_id: str, words: Sequence[str]) -> SearchSnapshot:
        """Return the newest change of a user, and the synonyms of these words."""
        found = await self._store.changes.search_snapshot(user_id, words)
        self.expect(user_id, 0 if found.position is None else found.position.seq)
        return found

    def next_end(self, user_id: str, now: datetime, lifetimes: Lifetimes = ()) -> datetime | None:
        """Return the next time at which a memory of the user expires or ends; now if it is not known in RAM."""
        index = self._users.get(user_id)
        return now if index is None else index.next_end(now, lifetimes)

    def touch(self, user_id: str, accessed: Mapping[str, datetime]) -> None:
        index = self._users.get(user_id)
        if index is not None:
            index.touch(accessed)

    async def _current(self, user_id: str, model: str, dimension: int) -> UserIndex:
        """Return the user's index with every commit before this call applied."""
        index = self._users.get(user_id)
        if _fits(index, model, dimension) and await self._catch_up(user_id, index, _most(index)):
            return index
        indexed = None if self._external is None else await self._external.dimension(user_id, model)
        external = indexed is not None and dimension in (0, indexed)
        dimension = (indexed or 0) if external else dimension
        index = await packed.load(self._store, user_id, model, dimension, external=external)
        if index is not None and await self._catch_up(user_id, index, _most_packed(index)):
            return index
        index = await _load(self._store, user_id, model, dimension, external=external)
        if len(index) >= packed.LEAST:
            parts = await asyncio.to_thread(packed.pack, index)
            self._saving.add(task := asyncio.create_task(packed.save(self._store, user_id, index.seen, parts)))
            task.add_done_callback(self._saving.discard)
        return index

    async def _catch_up(self, user_id: str, index: UserIndex, most: int) -> bool:
        """Apply later changes to an index; return False if there are `most` of them or more."""
        self._written.pop(user_id, None)
        rows = self._store.index_rows
        changes = await rows.changes(user_id, index.seen, most)
        if not changes:
            return True
        if len(changes) == most or any(action == "erase" for _, _, action in changes):
            return False
        changed = list(dict.fromkeys(memory_id for _, memory_id, _ in changes))
        index.drop(changed)
        for some in chunks(changed):
            batch = await rows.changed(user_id, some, index.model, external=index.external)
            await threads.run(sum(row.length for row in batch.rows), index.put, batch.rows)
            index.words.learn(batch.keywords)
            index.link(batch.links)
        if any(action == "delete" for _, _, action in changes):
            index.words.unlearn(await rows.vocabulary(user_id))
        index.seen = changes[-1][0]
        return True

    async def close(self) -> None:
        """Wait until packed indexes are saved."""
        await asyncio.gather(*self._saving, return_exceptions=True)

    async def forget(self, user_id: str) -> None:
        """Drop the index of a deleted user."""
        if self._users.pop(user_id, None) is not None:
            self._used -= self._sizes.pop(user_id)
            self._expected.pop(user_id, None)
            self._written.pop(user_id, None)
        if self._external is not None:
            await self._external.drop(user_id)

    async def maintain(self, user_id: str) -> None:
        """Create or drop the database's own vector index of a user, by size."""
        if self._external is not None:
            await self._external.maintain(user_id)

    def _keep(self, user_id: str, index: UserIndex) -> None:
        self._users[user_id] = index
        self._users.move_to_end(user_id)
        size = index.nbytes
        self._used += size - self._sizes.get(user_id, 0)
        self._sizes[user_id] = size
        while self._used > self._budget and len(self._users) > 1:
            leaving, _ = self._users.popitem(last=False)
            self._used -= self._sizes.pop(leaving)
            self._expected.pop(leaving, None)
            self._written.pop(leaving, None)


def _most(index: UserIndex) -> int:
    """Return the number of changes from which on loading an index anew is cheaper than catching up."""
    return max(TOO_FAR_BEHIND, len(index) // 2)


def _most_packed(index: UserIndex) -> int:
    """Return the number of changes from which on an index is packed anew: each process that starts applies them."""
    return min(TOO_FAR_BEHIND, max(A_FEW_CHANGES, len(index) // 10))


def _fits(index: UserIndex | None, model: str, dimension: int) -> TypeGuard[UserIndex]:
    """Return True if an index can be used for vectors of this model and dimension."""
    if index is None or index.mostly_dead or index.model != model:
        return False
    return not dimension or not index.dimension or index.dimension == dimension


async def _load(store: Store, user_id: str, model: str, dimension: int, *, external: bool) -> UserIndex:
    rows = store.index_rows
    seen, count = await rows.size(user_id)
    index = UserIndex(model, dimension, seen=seen, external=external)
    index.reserve(count)
    last = ""
    while page := await rows.page(user_id, model, after=last, external=external):
        await asyncio.to_thread(index.put, page)
        last = page[-1].id
    await asyncio.to_thread(index.words.settle)
    index.words.learn(await rows.vocabulary(user_id))
    index.link(await rows.links(user_id))
    return index


async def _load_vectors(external: ExternalVectors, index: UserIndex, query: IndexQuery) -> None:
    """Load the nearest vectors, and those of memories that match by words, into the index."""
    wanted = [vector for vector in (query.vector, *query.turns) if vector is not None]
    ids: set[str] = set()
    if wanted:
        ids.update(index.by_words(query, BY_WORDS))
        often = index.in_scope(query) * SELDOM >= len(index)
        ids |= await external.nearest(query.filter, query.model, wanted, often=often)
        ids.update(index.derived_from(ids))  # they tell whether a statement has ended
    index.load_vectors(*await external.load(query.filter.user_id, query.model, sorted(ids), index.dimension))
