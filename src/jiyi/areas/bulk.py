"""Several memories at once: pages of them, and changes of all or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from .. import validation
from ..errors import InvalidInput, VersionConflict
from ..models import Deletion, MemoryItem, MessagePage, Page, Status, with_new_name
from ..read.hits import as_they_were
from ..scope import Filter, Filters, TimeRange

if TYPE_CHECKING:
    from ..engine import Engine
    from ..scope import Changes


class Bulk:
    _engine: Engine

    async def get_many(self, memory_ids: Sequence[str], *, user_id: str) -> Sequence[MemoryItem]:
        """Return several memories in the given order; ids that this user does not have are left out."""
        ids = validation.names("memory_ids", memory_ids, most=validation.MAX_LIMIT)
        await self._engine.sync_files(validation.name("user_id", user_id))
        return await self._engine.store.memories.get(user_id, ids)

    async def list(
        self,
        *,
        user_id: str,
        status: Status = "active",
        limit: int = 100,
        cursor: str | None = None,
        **filters: Unpack[Filters],
    ) -> Page:
        """List memories, newest first, with the filters of `search`. The next page is `cursor=page.next_cursor`.
        Messages are left out unless `memory_types` names them."""
        where = self._engine.list_filter(user_id, status, filters)
        cursor, limit = validation.optional_name("cursor", cursor), validation.whole("limit", limit)
        await self._engine.sync_files(where.user_id)
        page = await self._engine.store.memories.page(where, cursor=cursor, limit=limit)
        return page.model_copy(update={"items": tuple(as_they_were(page.items, where.as_of))})

    async def messages(
        self, *, user_id: str, session_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> MessagePage:
        """List the stored messages of a user, verbatim, the last stored first. Pages work as in `list`."""
        user_id, session_id = validation.name("user_id", user_id), validation.optional_name("session_id", session_id)
        cursor, limit = validation.optional_name("cursor", cursor), validation.whole("limit", limit)
        return await self._engine.store.messages.page(user_id, session_id, cursor=cursor, limit=limit)

    async def timeline(
        self,
        *,
        user_id: str,
        time_range: TimeRange | None = None,
        memory_types: Sequence[str] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """List memories that were valid at some time in `time_range`, also ended ones, latest start first.
        Messages are left out unless `memory_types` names them."""
        where = Filter.parse(user_id=user_id, memory_types=memory_types, time_range=time_range, with_messages=False)
        cursor, limit = validation.optional_name("cursor", cursor), validation.whole("limit", limit)
        return await self._engine.store.memories.timeline(where, cursor=cursor, limit=limit)

    async def update_many(
        self,
        changes: Sequence[Mapping[str, Any]],
        *,
        user_id: str,
        actor: str = "user",
        reason: str | None = None,
    ) -> Sequence[MemoryItem]:
        """Change several memories in one transaction, or none of them. Each entry has a `memory_id`, the fields of
        `update`, and optionally the `expected_version`.

            await memory.update_many([{"memory_id": one.id, "tags": ["home"]} for one in page], user_id="mei")
        """
        from ..write.change import WantedChange, change_all, changed_fields, named

        engine, user_id = self._engine, validation.name("user_id", user_id)
        validation.name("actor", actor)
        if isinstance(changes, (str, bytes, Mapping)) or not isinstance(changes, Sequence):
            raise InvalidInput("changes", "must be a list of objects with memory_id and the fields to change")
        wanted: list[WantedChange] = []
        for at, entry in enumerate(changes):
            fields: Any = dict(entry)
            memory_id = validation.name(f"changes[{at}].memory_id", fields.pop("memory_id", None))
            fields = dict(with_new_name("version", "expected_version", fields, f"changes[{at}]"))
            expected = fields.pop("expected_version", None)
            changed_fields(**fields)
            memory = await named(engine.store, user_id, memory_id)
            wanted.append(WantedChange(user_id, memory.id, _expecting(expected, fields)))
        if len({one.memory_id for one in wanted}) < len(wanted):
            raise InvalidInput("changes", "names a memory twice")
        options: Any = {"actor": actor, "reason": reason, "store": engine.store, "embedder": engine.embedder}
        return await change_all(wanted, **options, rules=engine.rules)

    async def delete_many(self, memory_ids: Sequence[str], *, user_id: str, with_sources: bool = False) -> Deletion:
        """Delete several memories with their history in one transaction, or none of them if one does not exist. This
        cannot be undone.

            await memory.delete_many([hit.id for hit in found], user_id="mei")
        """
        from ..keep.erase import erase_each
        from ..write.change import named

        engine, user_id = self._engine, validation.name("user_id", user_id)
        ids = validation.names("memory_ids", memory_ids, most=validation.MAX_LIMIT)
        wanted = [(await named(engine.store, user_id, memory_id)).id for memory_id in dict.fromkeys(ids)]
        lines = await engine.before_delete(user_id)
        parts = (engine.store, engine.embedder, engine.rules)
        done = await erase_each(*parts, {user_id: wanted}, with_sources=with_sources, all_or_none=True)
        return await engine.forget_traces(user_id, done[user_id], lines)


def _expecting(expected: int | None, fields: Changes) -> Any:
    """Return what makes the changes of a memory, if it has the expected version."""

    def changes(memory: MemoryItem) -> Changes:
        if expected is not None and memory.version != expected:
            raise VersionConflict(memory.id, expected=expected, actual=memory.version)
        return fields

    return changes
