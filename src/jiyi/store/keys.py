"""API keys of the server and the audit log. They belong to no user."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Row, delete, insert, select, update

from ..errors import NotFound
from ..keys import ApiKey, AuditEntry
from .database import Repository, from_row, writes
from .session import Session
from .tables import ApiKeyRow, AuditRow


def _plain(key: ApiKey) -> dict[str, object]:
    values = {name: getattr(key, name) for name in ApiKey.model_fields}
    return {**values, "scopes": list(key.scopes), "user_ids": list(key.user_ids)}


def _key(row: Row[ApiKeyRow]) -> ApiKey:
    return from_row(ApiKey, row)


class Keys(Repository):
    """API keys of the server, and the audit log."""

    @writes()
    async def add(self, session: Session, key: ApiKey, key_hash: str) -> None:
        await session.execute(insert(ApiKeyRow), [{**_plain(key), "key_hash": key_hash}])

    async def list(self) -> Sequence[tuple[ApiKey, str]]:
        """Return all keys with their hashes, oldest first."""
        async with self._database.reading(None) as session:
            rows = await session.rows(select(ApiKeyRow).order_by(ApiKeyRow.id))
            return [(_key(row), row.key_hash) for row in rows]

    @writes()
    async def revoke(self, session: Session, key_id: str, now: datetime) -> ApiKey:
        mine = select(ApiKeyRow).where(ApiKeyRow.id == key_id)
        row = await session.first(mine.with_for_update())
        if row is None:
            raise NotFound(f"there is no key {key_id!r}")
        revoked = {"revoked_at": row.revoked_at or now}
        await session.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(revoked))
        return _key(row).model_copy(update=revoked)

    @writes()
    async def add_audit(self, session: Session, entries: Sequence[AuditEntry], keep: int) -> None:
        await session.execute(insert(AuditRow), [entry.model_dump() for entry in entries])
        oldest = await session.scalar(select(AuditRow.id).order_by(AuditRow.id.desc()).offset(keep).limit(1))
        if oldest is not None:
            await session.execute(delete(AuditRow).where(AuditRow.id <= oldest))

    async def audit(self, limit: int) -> Sequence[AuditEntry]:
        async with self._database.reading(None) as session:
            rows = await session.rows(select(AuditRow).order_by(AuditRow.id.desc()).limit(limit))
            return [from_row(AuditEntry, row) for row in rows]
