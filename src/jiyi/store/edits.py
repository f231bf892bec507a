"""Changing memories: new values, revisions and feed entries. Each function runs inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm.attributes import flag_modified

from ..errors import InvalidInput, VersionConflict
from .contract import Change, ChangedMemory
from .database import Repository
from .entries import INDEX_TABLES, index_values
from .history import NO_ATTRIBUTE, snapshot
from .inserts import Inserts, chunks
from .memories import known_by_hash, memory_row
from .tables import MemoryRow, RevisionRow


async def retire_expired(
    session: AsyncSession, user_id: str, hashes: Sequence[str], at: datetime, *, but: str = ""
) -> None:
    """Archive expired memories with these hashes, so that the same text can be added again; `but` is left out."""
    for some in chunks(hashes):
        expired = await session.scalars(
            select(MemoryRow).where(
                MemoryRow.user_id == user_id,
                MemoryRow.dedupe_hash.in_(some),
                MemoryRow.id != but,
                MemoryRow.status == "active",
                MemoryRow.expires_at <= at,
            )
        )
        for row in expired.all():
            change = Change(
                values={"status": "archived"}, action="archive", actor="system", reason="it had expired", at=at
            )
            await _apply(session, row, change)


async def update(session: AsyncSession, user_id: str, memory_id: str, change: Change, version: int | None) -> None:
    """Change a memory; with a version, only if it still has that version."""
    row = await memory_row(session, user_id, memory_id)
    if version is not None and row.version != version:
        raise VersionConflict(memory_id, version, row.version)
    await _refuse_twin(session, row, change)
    await _apply(session, row, change)


async def update_many(session: AsyncSession, user_id: str, wanted: Sequence[ChangedMemory]) -> list[tuple[str, str]]:
    """Change memories that still have their version; return the others, with the reason."""
    left: list[tuple[str, str]] = []
    for one in wanted:
        row = await session.scalar(select(MemoryRow).where(MemoryRow.user_id == user_id, MemoryRow.id == one.id))
        try:
            if row is None:
                left.append((one.id, "it is gone"))
            elif one.version is not None and row.version != one.version:
                left.append((one.id, f"it was changed meanwhile, to version {row.version}"))
            else:
                await _refuse_twin(session, row, one.change)
                await _apply(session, row, one.change)
        except InvalidInput as error:
            left.append((one.id, error.problem))
    return left


async def _refuse_twin(session: AsyncSession, row: MemoryRow, change: Change) -> None:
    """Raise if another current memory has the same text."""
    said = change.dedupe_hash or row.dedupe_hash
    status, valid_to = (change.values.get(name, getattr(row, name)) for name in ("status", "valid_to"))
    if said is None or status != "active" or valid_to is not None:
        return
    await retire_expired(session, row.user_id, [said], change.at, but=row.id)
    twin = (await known_by_hash(session, row.user_id, [said], change.at)).get(said, row.id)
    if twin != row.id:
        raise InvalidInput("content", f"memory {twin} says the same already: change or delete that one")


async def _apply(session: AsyncSession, row: MemoryRow, change: Change) -> None:
    inserts = Inserts()
    await apply_changes(session, row.user_id, [(row, change)], inserts)
    await inserts.run(session)


async def apply_changes(
    session: AsyncSession, user_id: str, changes: Sequence[tuple[MemoryRow, Change]], inserts: Inserts
) -> None:
    """Change memories; add their revisions, index entries and feed entries to `inserts`."""
    if not changes:
        return
    revisions = []
    changed = {attribute for _, change in changes for attribute in _attributes(change)}
    for row, change in changes:
        before = snapshot(row)
        for name, value in change.values.items():
            setattr(row, NO_ATTRIBUTE.get(name, name), value)
        if change.dedupe_hash is not None:
            row.dedupe_hash = change.dedupe_hash
        row.version += 1
        row.updated_at = change.at
        if change.index is not None:
            row.near_hash = change.index.near_hash
        for attribute in changed:  # the same columns in every row make one statement
            flag_modified(row, attribute)
        revisions.append(
            {
                "user_id": user_id,
                "memory_id": row.id,
                "version": row.version,
                "action": change.action,
                "actor": change.actor,
                "reason": change.reason,
                "before": before,
                "changed_at": change.at,
            }
        )
    await session.flush()
    reindexed = {row.id: change.index for row, change in changes if change.index is not None}
    for some in chunks(list(reindexed)):
        for table in INDEX_TABLES:
            await session.execute(delete(table).where(table.user_id == user_id, table.memory_id.in_(some)))
    for memory_id, index in reindexed.items():
        inserts.add_tables(index_values(user_id, memory_id, index))
    inserts.add(RevisionRow, revisions)
    inserts.tell(user_id, [row.id for row, _ in changes], "update")


def _attributes(change: Change) -> set[str]:
    """Return the attributes of `MemoryRow` that a change sets."""
    found = {NO_ATTRIBUTE.get(name, name) for name in change.values}
    found |= {"dedupe_hash"} if change.dedupe_hash is not None else set()
    return found | ({"near_hash"} if change.index is not None else set())


async def bring_back(session: AsyncSession, row: MemoryRow, actor: str, reason: str, at: datetime) -> None:
    """Restore an archived memory."""
    change = Change(values={"status": "active"}, action="restore", actor=actor, reason=reason, at=at)
    await _apply(session, row, change)


class Edits(Repository):
    """Changes of memories."""

    async def update(self, user_id: str, memory_id: str, change: Change, *, version: int | None) -> None:
        await self._database.write([user_id], lambda session: update(session, user_id, memory_id, change, version))

    async def update_many(self, user_id: str, wanted: Sequence[ChangedMemory]) -> list[tuple[str, str]]:
        return await self._database.write([user_id], lambda session: update_many(session, user_id, wanted))
