"""The state of external engines: which changes of each user they have, which user is to be erased, and who feeds them.

All rows of a user are written under that user's lock, so an erasure and a feeding process cannot overtake each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from ..ids import erased
from .database import Repository, from_row
from .tables import SHARED, ChangeRow, EngineRow, EngineUserRow, MemoryRow

MOST_COUNTED = 200_000  # memories of a user
_ERASED = erased("").partition(":")[0] + ":"  # begins the name of an erased user in the change feed


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUser:
    """One user's state in an engine."""

    user_id: str
    engine: str
    applied: int | None = None  # newest change in the engine; None while it is loaded
    load_from: int = 0
    loaded_id: str | None = None
    memories: int = 0
    erase: bool = False

    @property
    def ready(self) -> bool:
        return self.applied is not None and not self.erase


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """An engine: position in the change feed, users that are behind, and the last problem."""

    name: str
    model: str
    seen: int
    tip: int  # newest change of the feed
    loading: int  # users
    erasing: int  # users
    problem: str | None
    leased_until: datetime | None

    @property
    def trouble(self) -> str | None:
        """The last failure and how far the engine is behind, if it fails or users wait to be erased."""
        if self.problem is None and not self.erasing:
            return None
        behind = f"up to {self.lag:,} changes behind, {self.loading:,} users to load, {self.erasing:,} to erase"
        return f"{self.problem or 'erasures are not confirmed yet'} ({behind})"

    @property
    def lag(self) -> int:
        """Number of changes since the last time that all users were up to date."""
        return max(self.tip - self.seen, 0)


async def request_erasure(session: AsyncSession, user_id: str) -> None:
    """Ask every engine to remove a user whose rows were just deleted."""
    engines = list(await session.scalars(select(EngineRow.name)))
    if engines:
        rows = [_values(EngineUser(user_id=user_id, engine=name, erase=True)) for name in engines]
        await session.execute(insert(EngineUserRow), rows)


class Projections(Repository):
    """The state of external engines."""

    async def register(self, engine: str, model: str) -> None:
        """Add an engine, or load it anew if it was at another place or had vectors of another model."""
        async with self._database.reading(None) as session:
            known = await session.scalar(select(EngineRow.model).where(EngineRow.name == engine))
        if known == model:
            return
        async with self._database.writing([SHARED]) as session:
            row = await session.get(EngineRow, engine)
            if row is None:
                session.add(EngineRow(name=engine, model=model, seen=0))
            elif row.model != model:
                row.model = model
                await _reset(session, row)

    async def reset(self, engine: str) -> None:
        """Load all users anew."""
        async with self._database.writing([SHARED]) as session:
            row = await session.get(EngineRow, engine)
            if row is not None:
                await _reset(session, row)

    async def claim(self, engine: str, owner: str, now: datetime, until: datetime) -> int | None:
        """Take or renew the right to feed an engine; return its position in the feed, or None if another has it."""
        free = or_(EngineRow.owner == owner, EngineRow.leased_until.is_(None), EngineRow.leased_until < now)
        async with self._database.writing([]) as session:
            mine = (
                update(EngineRow)
                .where(EngineRow.name == engine, free)
                .values(owner=owner, leased_until=until)
                .returning(EngineRow.seen)
            )
            return await session.scalar(mine)

    async def release(self, engine: str, owner: str) -> None:
        async with self._database.writing([]) as session:
            mine = and_(EngineRow.name == engine, EngineRow.owner == owner)
            await session.execute(update(EngineRow).where(mine).values(owner=None, leased_until=None))

    async def note(self, engine: str, owner: str, *, seen: int | None = None, problem: str | None = None) -> None:
        """Store the position and the problem of the process that feeds an engine."""
        values: dict[str, Any] = {"problem": problem} | ({} if seen is None else {"seen": seen})
        async with self._database.writing([]) as session:
            mine = and_(EngineRow.name == engine, EngineRow.owner == owner)
            await session.execute(update(EngineRow).where(mine).values(**values))

    async def states(self) -> list[EngineState]:
        """Return the state of each engine, by name."""
        async with self._database.reading(None) as session:
            tip = await session.scalar(select(func.max(ChangeRow.seq))) or 0
            counts: dict[tuple[str, str], int] = {}
            for what, where in (("loading", EngineUserRow.applied.is_(None)), ("erasing", EngineUserRow.erase)):
                counting = select(EngineUserRow.engine, func.count()).where(where).group_by(EngineUserRow.engine)
                counts |= {(name, what): number for name, number in await session.execute(counting)}
            return [
                from_row(
                    EngineState,
                    row,
                    tip=tip,
                    loading=counts.get((row.name, "loading"), 0),
                    erasing=counts.get((row.name, "erasing"), 0),
                )
                for row in await session.scalars(select(EngineRow).order_by(EngineRow.name))
            ]

    async def user(self, user_id: str) -> dict[str, EngineUser]:
        """Return a user's state in each engine that has one, by engine."""
        async with self._database.reading(user_id) as session:
            rows = await session.scalars(select(EngineUserRow).where(EngineUserRow.user_id == user_id))
            return {row.engine: from_row(EngineUser, row) for row in rows}

    async def unfinished(self, engine: str) -> list[str]:
        """Return the users to be erased or loaded."""
        async with self._database.reading(None) as session:
            waiting = or_(EngineUserRow.erase, EngineUserRow.applied.is_(None))
            users = select(EngineUserRow.user_id).where(EngineUserRow.engine == engine, waiting)
            return list(await session.scalars(users.order_by(EngineUserRow.user_id)))

    async def changes(self, user_id: str, after: int, limit: int) -> list[tuple[int, str]]:
        """Return the numbers and memories of a user's next changes."""
        async with self._database.reading(user_id) as session:
            statement = (
                select(ChangeRow.seq, ChangeRow.memory_id)
                .where(ChangeRow.user_id == user_id, ChangeRow.seq > after)
                .order_by(ChangeRow.seq)
                .limit(limit)
            )
            return [(seq, memory_id) for seq, memory_id in await session.execute(statement)]

    async def tip(self, user_id: str) -> int:
        """Return the number of a user's newest change."""
        async with self._database.reading(user_id) as session:
            return await session.scalar(select(func.max(ChangeRow.seq)).where(ChangeRow.user_id == user_id)) or 0

    async def advance(self, owner: str, before: EngineUser | None, after: EngineUser | None) -> bool:
        """Store a user's new state (None: nothing is known of the user), if it is still `before` and the engine still
        belongs to this process. The memories are counted in the same transaction."""
        state = before or after
        if state is None:
            return True
        async with self._database.writing([state.user_id]) as session:
            holder = await session.scalar(select(EngineRow.owner).where(EngineRow.name == state.engine))
            row = await session.get(EngineUserRow, (state.user_id, state.engine))
            if holder != owner or (None if row is None else from_row(EngineUser, row)) != before:
                return False
            mine = and_(EngineUserRow.user_id == state.user_id, EngineUserRow.engine == state.engine)
            if after is None:
                await session.execute(delete(EngineUserRow).where(mine))
                return True
            some = select(MemoryRow.id).where(MemoryRow.user_id == state.user_id).limit(MOST_COUNTED).subquery()
            number = await session.scalar(select(func.count()).select_from(some)) or 0
            values = _values(after) | {"memories": number}
            if row is None:
                await session.execute(insert(EngineUserRow), [values])
            else:
                await session.execute(update(EngineUserRow).where(mine).values(**values))
            return True

    async def reload(self, engine: str, user_id: str) -> None:
        """Have a user removed from an engine and loaded anew, by whichever process feeds it."""
        async with self._database.writing([user_id]) as session:
            row = await session.get(EngineUserRow, (user_id, engine))
            if row is None:
                state = EngineUser(user_id=user_id, engine=engine, erase=True)
                await session.execute(insert(EngineUserRow), [_values(state)])
            else:
                row.applied, row.loaded_id = None, None


async def _reset(session: AsyncSession, row: EngineRow) -> None:
    row.seen = 0
    await session.execute(
        update(EngineUserRow).where(EngineUserRow.engine == row.name).values(applied=None, loaded_id=None, load_from=0)
    )


def _values(state: EngineUser) -> dict[str, Any]:
    return {name: getattr(state, name) for name in EngineUser.__dataclass_fields__}


def is_user(name: str) -> bool:
    """Return False for names in the change feed that stand for an erased user or for all users."""
    return name != SHARED and not name.startswith(_ERASED)


def users_in(names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if is_user(name))
