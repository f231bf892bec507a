"""The change feed: the newest change of a user, and the users whose memories changed."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ..ids import erased
from ..languages.words import normalise
from ..models import from_micros
from .contract import FeedPosition, SearchSnapshot
from .database import Database, Inserts, Repository
from .session import Session
from .tables import SHARED, ChangeRow, MemoryRow, SynonymRow

SETTLE_PAUSES_S = (0.002, 0.01, 0.03, 0.06, 0.1, 0.1)

# Built once, because every search runs it. Each newest number is one index look-up, and so is the entry behind it.
_TIPS = [
    sa.select(sa.func.max(ChangeRow.seq)).where(ChangeRow.user_id == sa.bindparam(name)).scalar_subquery()
    for name in ("user_id", "erased", "shared")
]
_NEWEST = sa.select(
    ChangeRow.seq,
    ChangeRow.memory_id,
    sa.type_coerce(ChangeRow.changed_at, sa.BigInteger),
    *(sa.null().label(name) for name in ("keyword", "synonym", "similarity", "user_id")),
).where(ChangeRow.seq == sa.select(sa.func.max(ChangeRow.seq)).where(ChangeRow.seq.in_(_TIPS)).scalar_subquery())
_WORDS: sa.BindParameter[list[str]] = sa.bindparam("words", expanding=True)
_SNAPSHOT: Any = sa.union_all(
    _NEWEST,
    sa.select(
        sa.cast(sa.null(), sa.BigInteger),
        sa.cast(sa.null(), sa.String),
        sa.cast(sa.null(), sa.BigInteger),
        SynonymRow.keyword,
        SynonymRow.synonym,
        SynonymRow.similarity,
        SynonymRow.user_id,
    ).where(SynonymRow.user_id.in_([sa.bindparam("user_id"), sa.bindparam("shared")]), SynonymRow.keyword.in_(_WORDS)),
)

_HAS_SYNONYMS = sa.select(sa.exists().where(SynonymRow.user_id.in_([sa.bindparam("user_id"), sa.bindparam("shared")])))
MOST_POSITIONS = 10_000

_ENTRY = sa.select(ChangeRow.memory_id, sa.type_coerce(ChangeRow.changed_at, sa.BigInteger)).where(
    ChangeRow.user_id.in_([sa.bindparam("user_id"), sa.bindparam("erased"), sa.bindparam("shared")]),
    ChangeRow.seq == sa.bindparam("seen"),
)
_TYPES: sa.BindParameter[list[str]] = sa.bindparam("memory_types", expanding=True)
_CHANGED = (
    sa.select(ChangeRow.memory_id)
    .join(MemoryRow, sa.and_(MemoryRow.user_id == ChangeRow.user_id, MemoryRow.id == ChangeRow.memory_id))
    .where(ChangeRow.user_id == sa.bindparam("user_id"), ChangeRow.seq > sa.bindparam("seen"))
    .where(MemoryRow.status == "active", MemoryRow.memory_type.in_(_TYPES))
    .distinct()
)


async def tell(session: Session, user_id: str, memory_ids: Sequence[str], action: str) -> None:
    """Add changes to the change feed."""
    inserts = Inserts()
    inserts.tell(user_id, memory_ids, action)
    await inserts.run(session)


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
        found = await self._read_snapshot(user_id, words)
        if version is None or found.synonyms or await self._has_synonyms(user_id):
            return found
        if version == self._version:  # no other search has seen a newer one meanwhile
            self._positions[user_id] = found.position
        return found

    async def _has_synonyms(self, user_id: str) -> bool:
        [[[there]]] = await self._database.select(user_id, (_HAS_SYNONYMS, {"user_id": user_id, "shared": SHARED}))
        return bool(there)

    async def _read_snapshot(self, user_id: str, words: Sequence[str]) -> SearchSnapshot:
        names: dict[str, Any] = {"user_id": user_id, "erased": erased(user_id), "shared": SHARED}
        names["words"] = list(dict.fromkeys(map(normalise, words)))
        newest: FeedPosition | None = None
        found: dict[tuple[str, str], float] = {}
        [lines] = await self._database.select(user_id, (_SNAPSHOT, names))
        for seq, memory_id, changed_at, keyword, synonym, similarity, owner in lines:
            if seq is not None:
                newest = FeedPosition(seq, memory_id, from_micros(changed_at))
            elif owner != SHARED or (keyword, synonym) not in found:
                found[keyword, synonym] = similarity
        by_word: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        for (keyword, synonym), similarity in found.items():
            by_word[keyword].append((synonym, similarity))
        return SearchSnapshot(
            newest, {keyword: sorted(some, key=lambda one: (-one[1], one[0])) for keyword, some in by_word.items()}
        )

    async def position(self, user_id: str) -> FeedPosition | None:
        """Return the newest change that concerns a user. Nothing is read again while nobody has committed."""
        return (await self.search_snapshot(user_id, ())).position

    async def changed_since(
        self, user_id: str, seen: FeedPosition | None, memory_types: Sequence[str]
    ) -> list[str] | None:
        """Return the ids of active memories of these types that changed after a position; None if the feed does not
        have that entry any more: the user was deleted, or the store is another copy."""
        names: dict[str, Any] = {"user_id": user_id, "erased": erased(user_id), "shared": SHARED}
        names |= {"seen": 0 if seen is None else seen.seq, "memory_types": list(memory_types)}
        entry, changed = await self._database.select(user_id, (_ENTRY, names), (_CHANGED, names))
        if seen is not None and [(name, from_micros(at)) for name, at in entry] != [(seen.memory_id, seen.changed_at)]:
            return None
        return [memory_id for (memory_id,) in changed]

    async def users_since(self, seen: int) -> tuple[int, list[str]]:
        """Return a change number up to which nothing is missing, and the users whose memories changed since `seen`.

        A transaction that is still running can have lower numbers than one that has committed. So the number advances
        after the transactions that ran when it was read have ended; until then the same users are returned again.
        """
        async with self._database.reading(None) as session:
            tip = await session.scalar(sa.select(sa.func.max(ChangeRow.seq))) or 0
            if tip <= seen:
                return max(seen, tip), []
            settled = await self._settled(session)
            since = sa.select(ChangeRow.user_id).where(ChangeRow.seq > seen, ChangeRow.user_id != SHARED).distinct()
            return tip if settled else seen, await session.scalars(since)

    async def _settled(self, session: Session) -> bool:
        """Wait a moment for running transactions to end; return False if one goes on."""
        running = await self._database.writers(session)
        for pause in SETTLE_PAUSES_S:
            if not running:
                return True
            await asyncio.sleep(pause)
            running &= await self._database.writers(session)
        return not running
