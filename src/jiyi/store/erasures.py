"""The erasure epoch of a user: the id of the last deletion of all their data.

Work that takes long reads it when it begins and compares it in the transaction that saves, so that nothing which began
before the deletion is saved after it. The id is in the change feed, under a hash of the user's id, and outlives the
rows of the user.
"""

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from ..errors import UserErased
from ..ids import MARKS, erased
from .database import Repository
from .session import Session
from .tables import ChangeRow

NEVER = ""  # epoch of a user who was never deleted
ERASE = "erase"  # action of a deletion in the change feed

# Built once: every `add` runs them.
_MARK: sa.BindParameter[str] = sa.bindparam("erased")
_IS_MARK = sa.and_(ChangeRow.user_id == _MARK, ChangeRow.action == ERASE)  # a user's id may look like a mark
LAST_ERASURE = ChangeRow.seq == sa.select(sa.func.max(ChangeRow.seq)).where(_IS_MARK).scalar_subquery()
_LAST = sa.select(ChangeRow.memory_id, ChangeRow.changed_at).where(LAST_ERASURE)
_ALL = (
    sa.select(ChangeRow.user_id, ChangeRow.memory_id)
    .where(ChangeRow.user_id.between(MARKS, MARKS + "g"), ChangeRow.action == ERASE)  # a hash has no g
    .order_by(ChangeRow.seq)
)


async def last_erasure(session: Session, user_id: str) -> tuple[str, datetime | None]:
    """Return the epoch of a user, and when it began."""
    [found] = await session.select((_LAST, {"erased": erased(user_id)}))
    return (found[0][0], found[0][1]) if found else (NEVER, None)


async def check_epoch(session: Session, user_id: str, epoch: str) -> None:
    """Raise `UserErased` if the user was deleted since this was their epoch."""
    if (await last_erasure(session, user_id))[0] != epoch:
        raise UserErased(user_id=user_id)


class Epochs:
    """The epochs of all users at one moment."""

    def __init__(self, found: Mapping[str, str]) -> None:
        self._found = found

    def of(self, user_id: str) -> str:
        return self._found.get(erased(user_id), NEVER)


class Erasures(Repository):
    """Deletions of all data of a user."""

    async def epoch(self, user_id: str) -> str:
        [found] = await self._database.select(user_id, (_LAST, {"erased": erased(user_id)}))
        return str(found[0][0]) if found else NEVER

    async def epochs(self) -> Epochs:
        async with self._database.reading(None) as session:
            return Epochs(dict(await session.rows(_ALL)))
