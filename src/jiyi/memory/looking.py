"""The verbs that look at what is there, without a query."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .. import validation
from ..models import Layer, MemoryItem, Page, Recall, Relation, Revision, SourceMessage, Stats, Status
from ..read.earlier import as_they_were
from ..read.interpret import TimeRange, scope
from ..write.change import existing
from .parts import Parts


class Looking(Parts):
    async def get(self, memory_id: str, *, user_id: str) -> MemoryItem:
        """One memory, by its id or `memory_key`."""
        await self._fresh(validation.name("user_id", user_id))
        return await existing(self._store, user_id, validation.name("memory_id", memory_id))

    async def get_many(self, memory_ids: Sequence[str], *, user_id: str) -> Sequence[MemoryItem]:
        """Several memories, in the order asked for; ids that this user does not have are left out."""
        ids = validation.names("memory_ids", memory_ids, most=validation.MAX_LIMIT)
        await self._fresh(validation.name("user_id", user_id))
        return await self._store.get(user_id, ids)

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
        min_trust: float | None = None,
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
            min_trust=min_trust,
            lifetimes=self._lifetimes,
        )
        await self._fresh(where.user_id)
        page = await self._store.page(
            where, cursor=validation.optional_name("cursor", cursor), limit=validation.whole("limit", limit)
        )
        return page.model_copy(update={"items": tuple(as_they_were(page.items, where.as_of))})

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
        min_trust: float | None = None,
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
            min_trust=min_trust,
            lifetimes=self._lifetimes,
        )
        await self._fresh(where.user_id)
        return await self._store.count(where)

    async def groups(self, *, user_id: str, memory_types: Sequence[str] | None = None) -> dict[str, int]:
        """The groups that a user's memories belong to, by name, with how many of them each has."""
        return await self._store.groups(scope(user_id=user_id, memory_types=memory_types, lifetimes=self._lifetimes))

    async def hot(self, *, user_id: str, limit: int = 20) -> Sequence[MemoryItem]:
        """The memories that were recalled most often, the most used one first: what an agent may begin with."""
        where = scope(user_id=user_id)
        most = validation.whole("limit", limit)
        await self._fresh(where.user_id)
        await self._accesses.flush()
        return await self._answers.hot(where, most)

    async def users(self) -> Sequence[str]:
        """The ids of all users that have memories or messages."""
        return await self._store.users()

    async def history(self, memory_id: str, *, user_id: str) -> Sequence[Revision]:
        """Every change of a memory, oldest first: who, when, why, before, after."""
        return await self._store.history(validation.name("user_id", user_id), validation.name("memory_id", memory_id))

    async def sources(self, memory_id: str, *, user_id: str) -> Sequence[SourceMessage]:
        """The messages that a memory came from, word for word. A statement has none: it is its own source."""
        return await self._store.sources(validation.name("user_id", user_id), validation.name("memory_id", memory_id))

    async def timeline(
        self,
        *,
        user_id: str,
        time_range: TimeRange | None = None,
        memory_types: Sequence[str] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """What was valid at some time in `time_range`, also what is over or was superseded; the latest start first.

        Messages are left out unless `memory_types` names them. What was valid at one moment: `list(as_of=…)`.
        """
        where = scope(user_id=user_id, memory_types=memory_types, time_range=time_range)
        return await self._store.timeline(
            where, cursor=validation.optional_name("cursor", cursor), limit=validation.whole("limit", limit)
        )

    async def recalls(self, *, user_id: str, since: datetime | None = None, limit: int = 100) -> Sequence[Recall]:
        """What was asked lately and which memories came back, the newest first."""
        whose = validation.name("user_id", user_id)
        await self._accesses.flush()
        return await self._store.recalls(
            whose, since=validation.optional_time("since", since), limit=validation.whole("limit", limit)
        )

    async def relations(self, memory_id: str, *, user_id: str) -> Sequence[Relation]:
        """What a memory does to others, and others to it: supports, contradicts or refines."""
        return await self._store.relations(validation.name("user_id", user_id), validation.name("memory_id", memory_id))

    async def stats(self, user_id: str | None = None) -> Stats:
        """What the store holds, of one user or of all."""
        held = await self._store.stats(self._embedder.id, validation.optional_name("user_id", user_id))
        return held.model_copy(update={"cache": self._answers.use()})
