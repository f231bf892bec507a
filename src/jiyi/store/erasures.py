"""The erasure epoch of a user: the id of the last deletion of all their data.

Work that takes long reads it when it begins and compares it in the transaction that saves, so that nothing which began
before the deletion is saved after it. The id is in the change feed, under a hash of the user's id, and outlives the
rows of the user.
"""

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from ..errors import UserErased
from ..ids import MARKS, erased
from .database import Repository, reads
from .tables import ChangeRow

NEVER = ""  # epoch of a user who was never deleted
ERASE = "erase"  # action of a deletion in the change feed

_change = ChangeRow.__table__.c
_ALL = (
    sa.select(_change.user_id, _change.memory_id)
    .where(_change.user_id.between(MARKS, MARKS + "g"), _change.action == ERASE)  # a hash has no g
    .order_by(_change.seq)
)


_LAST = (
    sa.select(_change.memory_id, _change.changed_at)
    .where(_change.user_id == sa.bindparam("erased"), _change.action == ERASE)  # a user's id may look like a mark
    .order_by(_change.seq.desc())
    .limit(1)
)
EPOCH = _LAST.with_only_columns(_change.memory_id).scalar_subquery()  # of the user with the mark `erased`


def last_erasure(session: Session, user_id: str) -> tuple[str, datetime | None]:
    """Return the epoch of a user, and when it began."""
    found = session.execute(_LAST, {"erased": erased(user_id)}).first()
    return (NEVER, None) if found is None else (found.memory_id, found.changed_at)


def check_epoch(session: Session, user_id: str, epoch: str) -> None:
    """Raise `UserErased` if the user was deleted since this was their epoch."""
    if last_erasure(session, user_id)[0] != epoch:
        raise UserErased(user_id=user_id)


class Epochs:
    """The epochs of all users at one moment."""

    def __init__(self, found: Mapping[str, str]) -> None:
        self._found = found

    def of(self, user_id: str) -> str:
        return self._found.get(erased(user_id), NEVER)


class Erasures(Repository):
    """Deletions of all data of a user."""

    @reads
    def epoch(self, session: Session, user_id: str) -> str:
        return last_erasure(session, user_id)[0]

    @reads(everybody=True)
    def epochs(self, session: Session) -> Epochs:
        return Epochs(dict(session.execute(_ALL).all()))
