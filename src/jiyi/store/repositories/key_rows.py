"""API keys of the server and the audit log. They belong to no user."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.orm import Session

from ...errors import NotFound
from ...keys import ApiKey, AuditEntry
from ..database import Columns, Repository, from_row, reads, writes
from ..schema.tables import ApiKeyRow, AuditRow

# Actions in the audit log: `jiyi doctor` has tested a language model, the target.
SELF_TEST_PASSED, SELF_TEST_FAILED = "llm.test.passed", "llm.test.failed"


def _plain(key: ApiKey) -> dict[str, object]:
    values = {name: getattr(key, name) for name in ApiKey.model_fields}
    return {**values, "scopes": list(key.scopes), "user_ids": list(key.user_ids)}


def _key(row: Row[*Columns]) -> ApiKey:
    return from_row(ApiKey, row)


class Keys(Repository):
    """API keys of the server, and the audit log."""

    @writes(locks=())
    def add(self, session: Session, key: ApiKey, key_hash: str) -> None:
        session.execute(insert(ApiKeyRow), [{**_plain(key), "key_hash": key_hash}])

    @reads(everybody=True)
    def list(self, session: Session) -> Sequence[tuple[ApiKey, str]]:
        """Return all keys with their hashes, oldest first."""
        rows = session.execute(select(ApiKeyRow.__table__).order_by(ApiKeyRow.id)).all()
        return [(_key(row), row.key_hash) for row in rows]

    @writes(locks=())
    def revoke(self, session: Session, key_id: str, now: datetime) -> ApiKey:
        mine = select(ApiKeyRow.__table__).where(ApiKeyRow.id == key_id)
        row = session.execute(mine.with_for_update()).first()
        if row is None:
            raise NotFound(f"there is no key {key_id!r}")
        revoked = {"revoked_at": row.revoked_at or now}
        session.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id).values(revoked))
        return _key(row).model_copy(update=revoked)

    @writes(locks=())
    def add_audit(self, session: Session, entries: Sequence[AuditEntry], keep: int) -> None:
        session.execute(insert(AuditRow), [entry.model_dump() for entry in entries])
        oldest = session.scalar(select(AuditRow.id).order_by(AuditRow.id.desc()).offset(keep).limit(1))
        if oldest is not None:
            session.execute(delete(AuditRow).where(AuditRow.id <= oldest))

    @reads(everybody=True)
    def passed_self_test(self, session: Session, model: str) -> bool | None:
        """Return the outcome of a language model's last self-test; None if there was none."""
        tested = AuditRow.action.in_((SELF_TEST_PASSED, SELF_TEST_FAILED))
        last = select(AuditRow.action).where(tested, AuditRow.target == model).order_by(AuditRow.id.desc()).limit(1)
        action = session.scalar(last)
        return None if action is None else action == SELF_TEST_PASSED

    @reads(everybody=True)
    def audit(self, session: Session, limit: int) -> Sequence[AuditEntry]:
        rows = session.execute(select(AuditRow.__table__).order_by(AuditRow.id.desc()).limit(limit)).all()
        return [from_row(AuditEntry, row) for row in rows]
