"""Changes of several memories at once: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import validation
from ..errors import InvalidInput, VersionConflict
from ..models import with_new_name

if TYPE_CHECKING:
    from ..engine import Engine
    from ..models import Deletion, MemoryItem
    from ..scope import Changes


class Bulk:
    _engine: Engine

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
