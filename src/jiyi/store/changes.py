"""The change feed: the newest change of a user, and the users whose memories changed."""

import asyncio
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session

from ..ids import erased
from .contract import FeedPosition, SearchSnapshot
from .database import Database, Inserts, Repository, reads
from .synonyms import synonyms_of
from .tables import SHARED, ChangeRow, MemoryRow, SynonymRow

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
