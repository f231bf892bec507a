"""The change feed: the newest change of a user, the users whose memories changed, and the erasure epoch of a user.

The epoch is the id of the last deletion of all data of the user. Work that takes long reads it when it begins and
compares it in the transaction that saves, so that nothing which began before the deletion is saved after it. The id is
in the feed under a hash of the user's id, and outlives the rows of the user.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session

from ...errors import UserErased
from ...ids import MARKS, erased
from ..database import Database, Inserts, Repository, reads
from ..schema.tables import SHARED, ChangeRow, MemoryRow, SynonymRow
from ..write_set import FeedPosition, SearchSnapshot
from .link_rows import synonyms_of

SETTLE_PAUSES_S = (0.002, 0.01, 0.03, 0.06, 0.1, 0.1)

MOST_POSITIONS = 10_000

_change, _synonym = (row.__table__.c for row in (ChangeRow, SynonymRow))
# Built once: every search runs them, and building takes longer. Each newest number is one index look-up.
_TIPS = [
    sa.select(sa.func.max(_change.seq)).where(_change.user_id == sa.bindparam(name)).scalar_subquery()
    for name in ("user_id", "erased", "shared")
]
_NEWEST = sa.select(_change.seq, _change.memory_id, _change.changed_at).where(
    _change.seq == sa.select(sa.func.max(_change.seq)).where(_change.seq.in_(_TIPS)).scalar_subquery()
)
_HAS_SYNONYMS = (
    sa.select(_synonym.user_id).where(_synonym.user_id.in_([sa.bindparam("user_id"), sa.bindparam("shared")])).limit(1)
)


def tell(session: Session, user_id: str, memory_ids: Sequence[str], action: str) -> None:
    """Add changes to the change feed."""
    inserts = Inserts()
    inserts.tell(user_id, memory_ids, action)
    inserts.run(session)


class Changes(Repository):
    """The change feed: what a search has to catch up with."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._version: int | None = None  # of the database
        self._positions: dict[str, FeedPosition | None] = {}  # in this version, of users without synonyms

    async def search_snapshot(self, user_id: str, words: Sequence[str]) -> SearchSnapshot:
        """Return the newest change that concerns a user, and the synonyms of these words. Nothing is read again while
        nobody has committed."""
        version = self._database.version()
        if version != self._version or len(self._positions) > MOST_POSITIONS:
            self._version, self._positions = version, {}
        if user_id in self._positions:
            return SearchSnapshot(self._positions[user_id], {})
        found, has_synonyms = await self._read_snapshot(user_id, words)
        # No other search may have seen a newer version meanwhile.
        if version is not None and not has_synonyms and version == self._version:
            self._positions[user_id] = found.position
        return found

    @reads
    def _read_snapshot(self, session: Session, user_id: str, words: Sequence[str]) -> tuple[SearchSnapshot, bool]:
        names = {"user_id": user_id, "erased": erased(user_id), "shared": SHARED}
        newest = session.execute(_NEWEST, names).first()
        position = None if newest is None else FeedPosition(*newest)
        if session.scalar(_HAS_SYNONYMS, names) is None:
            return SearchSnapshot(position, {}), False
        return SearchSnapshot(position, synonyms_of(session, user_id, words)), True

    async def position(self, user_id: str) -> FeedPosition | None:
        """Return the newest change that concerns a user. Nothing is read again while nobody has committed."""
        return (await self.search_snapshot(user_id, ())).position

    @reads
    def changed_since(
        self, session: Session, user_id: str, seen: FeedPosition | None, memory_types: Sequence[str]
    ) -> list[str] | None:
        """Return the ids of active memories of these types that changed after a position; None if the feed does not
        have that entry any more: the user was deleted, or the store is another copy."""
        if seen is not None:
            entry = sa.select(ChangeRow.seq, ChangeRow.memory_id, ChangeRow.changed_at).where(
                ChangeRow.user_id.in_([user_id, erased(user_id), SHARED]), ChangeRow.seq == seen.seq
            )
            row = session.execute(entry).first()
            if row is None or FeedPosition(*row) != seen:
                return None
        memory = sa.and_(MemoryRow.user_id == ChangeRow.user_id, MemoryRow.id == ChangeRow.memory_id)
        changed = (
            sa.select(ChangeRow.memory_id)
            .join(MemoryRow, memory)
            .where(ChangeRow.user_id == user_id, ChangeRow.seq > (0 if seen is None else seen.seq))
            .where(MemoryRow.status == "active", MemoryRow.memory_type.in_(memory_types))
            .distinct()
        )
        return list(session.scalars(changed))

    async def users_since(self, seen: int) -> tuple[int, list[str]]:
        """Return a change number up to which nothing is missing, and the users whose memories changed since `seen`.

        A transaction that is still running can have lower numbers than one that has committed. So the number advances
        after the transactions that ran when it was read have ended; until then the same users are returned again.
        """
        tip, running = await self._database.read(None, self._tip)
        if tip <= seen:
            return max(seen, tip), []
        settled = await self._settled(running)
        return tip if settled else seen, await self._users_since(seen)

    def _tip(self, session: Session) -> tuple[int, frozenset[str]]:
        """Return the newest change number, and the transactions that run after it was read."""
        return session.scalar(sa.select(sa.func.max(ChangeRow.seq))) or 0, self._database.writers(session)

    @reads(everybody=True)
    def _users_since(self, session: Session, seen: int) -> list[str]:
        since = sa.select(ChangeRow.user_id).where(ChangeRow.seq > seen, ChangeRow.user_id != SHARED).distinct()
        return list(session.scalars(since))

    async def _settled(self, running: frozenset[str]) -> bool:
        """Wait a moment for running transactions to end; return False if one goes on."""
        for pause in SETTLE_PAUSES_S:
            if not running:
                return True
            await asyncio.sleep(pause)
            running &= await self._database.read(None, self._database.writers)
        return not running


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
