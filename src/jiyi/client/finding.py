"""The verbs that find and look."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from pydantic import BaseModel

from .. import validation
from ..errors import NotFound
from ..models import (
    Layer,
    MemoryItem,
    Page,
    Recall,
    Relation,
    Revision,
    SearchMode,
    SearchResult,
    SourceMessage,
    Stats,
    Status,
    utc_now,
)
from ..read.context import ContextLanguage, Style
from ..read.interpret import TimeRange
from .connection import Connection


class Counted(BaseModel):
    total: int


class Found(BaseModel):
    memories: tuple[MemoryItem, ...]


class Context(BaseModel):
    context: str


class Groups(BaseModel):
    groups: dict[str, int]


class Users(BaseModel):
    users: tuple[str, ...]


class Revisions(BaseModel):
    items: tuple[Revision, ...]


class Sources(BaseModel):
    items: tuple[SourceMessage, ...]


class Relations(BaseModel):
    items: tuple[Relation, ...]


class Recalls(BaseModel):
    items: tuple[Recall, ...]


OWN_ID = re.compile("[0-9a-z]{26}")


class Addressing:
    _server: Connection

    async def _address(self, memory_id: str, user_id: str) -> str:
        """Where a memory lies. A `memory_key` may have characters that mean something in an address, so its id is
        looked up."""
        if not OWN_ID.fullmatch(validation.name("memory_id", memory_id)):
            memory_id = (await self._fetch([memory_id], user_id))[0].id
        return f"/v1/memories/{quote(memory_id, safe='')}"

    async def _fetch(self, memory_ids: Sequence[str], user_id: str) -> Sequence[MemoryItem]:
        """Memories by id or key; none at all is an error."""
        whose, body = {"user_id": validation.name("user_id", user_id)}, {"memory_ids": memory_ids}
        found = await self._server.ask("POST", "/v1/fetch", Found, params=whose, body=body, repeatable=True)
        if not found.memories:
            raise NotFound(f"user {user_id!r} has no memory {memory_ids[0]!r}")
        return found.memories


class Finding(Addressing):
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
        min_trust: float | None = None,
        limit: int = 5,
        as_of: datetime | None = None,
        asked_at: datetime | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """Find memories; see `jiyi.Memory.search`."""
        body = {
            "query": query,
            "search_mode": search_mode,
            "keywords": keywords,
            "memory_types": memory_types,
            "layers": layers,
            "tags": tags,
            "time_range": time_range,
            "time_range_days": time_range_days,
            "session_id": session_id,
            "agent_id": agent_id,
            "group_id": group_id,
            "min_relevance_score": min_relevance_score,
            "min_trust": min_trust,
            "limit": limit,
            "as_of": as_of,
            "asked_at": asked_at,
            "explain": explain,
        }
        whose = {"user_id": validation.name("user_id", user_id)}
        return await self._server.ask("POST", "/v1/search", SearchResult, params=whose, body=body, repeatable=True)

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
        min_trust: float | None = None,
    ) -> str:
        """The best memories as one block for a prompt; see `jiyi.Memory.context`."""
        body = {
            "query": query,
            "max_tokens": max_tokens,
            "style": style,
            "language": language,
            "memory_types": memory_types,
            "session_id": session_id,
            "agent_id": agent_id,
            "group_id": group_id,
            "as_of": as_of,
            "asked_at": asked_at,
            "min_relevance_score": min_relevance_score,
            "min_trust": min_trust,
        }
        whose = {"user_id": validation.name("user_id", user_id)}
        return (
            await self._server.ask("POST", "/v1/context", Context, params=whose, body=body, repeatable=True)
        ).context

    async def get(self, memory_id: str, *, user_id: str) -> MemoryItem:
        """One memory, by its id or `memory_key`."""
        if not OWN_ID.fullmatch(validation.name("memory_id", memory_id)):
            return (await self._fetch([memory_id], user_id))[0]
        whose = validation.name("user_id", user_id)
        return await self._server.get(f"/v1/memories/{memory_id}", MemoryItem, user_id=whose)

    async def get_many(self, memory_ids: Sequence[str], *, user_id: str) -> Sequence[MemoryItem]:
        """Several memories, in the order asked for; ids that this user does not have are left out."""
        ids = validation.names("memory_ids", memory_ids, most=validation.MAX_LIMIT)
        whose = {"user_id": validation.name("user_id", user_id)}
        found = await self._server.ask(
            "POST", "/v1/fetch", Found, params=whose, body={"memory_ids": ids}, repeatable=True
        )
        return found.memories

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
        """Memories, newest first, page by page."""
        since, until = validation.time_span(time_range, None, utc_now())
        if _none_named(memory_types, layers, tags):
            return Page(items=(), next_cursor=None)
        return await self._server.get(
            "/v1/memories",
            Page,
            user_id=validation.name("user_id", user_id),
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_types=_names("memory_types", memory_types),
            layers=_names("layers", layers),
            tags=_names("tags", tags),
            since=since,
            until=until,
            as_of=as_of,
            status=status,
            min_trust=min_trust,
            limit=limit,
            cursor=cursor,
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
        min_trust: float | None = None,
    ) -> int:
        """How many memories there are; the filters are those of `list`."""
        since, until = validation.time_span(time_range, None, utc_now())
        if _none_named(memory_types, layers, tags):
            return 0
        counted = await self._server.get(
            "/v1/memories",
            Counted,
            user_id=validation.name("user_id", user_id),
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_types=_names("memory_types", memory_types),
            layers=_names("layers", layers),
            tags=_names("tags", tags),
            since=since,
            until=until,
            as_of=as_of,
            status=status,
            min_trust=min_trust,
            limit=1,
            include_total=True,
        )
        return counted.total

    async def timeline(
        self,
        *,
        user_id: str,
        time_range: TimeRange | None = None,
        memory_types: Sequence[str] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """What was valid at some time in `time_range`, the latest start first."""
        since, until = validation.time_span(time_range, None, utc_now())
        if _none_named(memory_types):
            return Page(items=(), next_cursor=None)
        return await self._server.get(
            "/v1/timeline",
            Page,
            user_id=validation.name("user_id", user_id),
            since=since,
            until=until,
            memory_types=_names("memory_types", memory_types),
            limit=limit,
            cursor=cursor,
        )

    async def groups(self, *, user_id: str, memory_types: Sequence[str] | None = None) -> dict[str, int]:
        """The groups that a user's memories belong to, with how many each has."""
        if _none_named(memory_types):
            return {}
        whose, types = validation.name("user_id", user_id), _names("memory_types", memory_types)
        return (await self._server.get("/v1/groups", Groups, user_id=whose, memory_types=types)).groups

    async def users(self) -> Sequence[str]:
        """The users that have memories and that the key is for."""
        return (await self._server.get("/v1/users", Users)).users

    async def history(self, memory_id: str, *, user_id: str) -> Sequence[Revision]:
        """Every change of a memory, oldest first."""
        address = await self._address(memory_id, user_id)
        return (
            await self._server.get(f"{address}/history", Revisions, user_id=validation.name("user_id", user_id))
        ).items

    async def sources(self, memory_id: str, *, user_id: str) -> Sequence[SourceMessage]:
        """The messages that a memory came from, word for word."""
        address = await self._address(memory_id, user_id)
        return (
            await self._server.get(f"{address}/sources", Sources, user_id=validation.name("user_id", user_id))
        ).items

    async def relations(self, memory_id: str, *, user_id: str) -> Sequence[Relation]:
        """What a memory does to others, and others to it."""
        address = await self._address(memory_id, user_id)
        whose = validation.name("user_id", user_id)
        return (await self._server.get(f"{address}/relations", Relations, user_id=whose)).items

    async def recalls(self, *, user_id: str, since: datetime | None = None, limit: int = 100) -> Sequence[Recall]:
        """What was asked lately and which memories came back, the newest first."""
        whose = validation.name("user_id", user_id)
        return (await self._server.get("/v1/recalls", Recalls, user_id=whose, since=since, limit=limit)).items

    async def stats(self, user_id: str | None = None) -> Stats:
        """What the store holds, of one user or of all. Of one user, where it lies and how large it is is not told."""
        whose = validation.optional_name("user_id", user_id)
        return await self._server.get("/v1/stats", Stats, user_id=whose, all_users=True if whose is None else None)


def _names(argument: str, values: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if values is None else validation.names(argument, values)


def _none_named(*filters: Sequence[str] | None) -> bool:
    """An empty list matches nothing; in an address it could not be told from none at all."""
    return any(names is not None and not isinstance(names, str) and len(names) == 0 for names in filters)
