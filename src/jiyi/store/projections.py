"""The state of external engines: which changes of each user they have, which user is to be erased, and who feeds them.

All rows of a user are written under that user's lock, so an erasure and a feeding process cannot overtake each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Integer,
    String,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from ..ids import MARKS
from .database import Repository, from_row
from .session import Session
from .tables import SHARED, ChangeRow, EngineRow, EngineUserRow, MemoryRow

MOST_COUNTED = 200_000  # memories of a user


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


# Built once: every search runs them.
_FIELDS = tuple(EngineUser.__dataclass_fields__)
_USER: BindParameter[str] = bindparam("user_id", type_=String)
_STATES = select(*(getattr(EngineUserRow, name) for name in _FIELDS)).where(EngineUserRow.user_id == _USER)
_NEXT = (
    select(ChangeRow.seq, ChangeRow.memory_id)
    .where(
        ChangeRow.user_id == bindparam("user_id", type_=String), ChangeRow.seq > bindparam("after", type_=BigInteger)
    )
    .order_by(ChangeRow.seq)
    .limit(bindparam("limit", type_=Integer))
)


async def request_erasure(session: Session, user_id: str) -> None:
    """Ask every engine to remove a user whose rows were just deleted."""
    engines = await session.scalars(select(EngineRow.name))
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
            mine = EngineRow.name == engine
            known = await session.scalar(select(EngineRow.model).where(mine))
            if known is None:
                await session.execute(insert(EngineRow), [{"name": engine, "model": model, "seen": 0}])
            elif known != model:
                await session.execute(update(EngineRow).where(mine).values(model=model))
                await _reset(session, engine)

    async def reset(self, engine: str) -> None:
        """Load all users anew."""
        async with self._database.writing([SHARED]) as session:
            await _reset(session, engine)

    async def claim(self, engine: str, owner: str, now: datetime, until: datetime) -> tuple[int | None, bool]:
        """Take or renew the right to feed an engine; return its position in the feed, or None if another has it, and
        whether nobody else has had the right since the last time."""
        free = or_(EngineRow.owner == owner, EngineRow.leased_until.is_(None), EngineRow.leased_until < now)
        async with self._database.writing([]) as session:
            last = await session.scalar(select(EngineRow.owner).where(EngineRow.name == engine).with_for_update())
            mine = (
                update(EngineRow)
                .where(EngineRow.name == engine, free)
                .values(owner=owner, leased_until=until)
                .returning(EngineRow.seen)
            )
            return await session.scalar(mine), last == owner

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
                counts |= {(name, what): number for name, number in await session.rows(counting)}
            return [
                from_row(
                    EngineState,
                    row,
                    tip=tip,
                    loading=counts.get((row.name, "loading"), 0),
                    erasing=counts.get((row.name, "erasing"), 0),
                )
                for row in await session.rows(select(EngineRow).order_by(EngineRow.name))
            ]

    async def user(self, user_id: str) -> dict[str, EngineUser]:
        """Return a user's state in each engine that has one, by engine."""
        [rows] = await self._database.select(user_id, (_STATES, {"user_id": user_id}))
        states = [EngineUser(**dict(zip(_FIELDS, row, strict=True))) for row in rows]
        return {state.engine: state for state in states}

    async def unfinished(self, engine: str) -> list[str]:
        """Return the users to be erased or loaded."""
        async with self._database.reading(None) as session:
            waiting = or_(EngineUserRow.erase, EngineUserRow.applied.is_(None))
            users = select(EngineUserRow.user_id).where(EngineUserRow.engine == engine, waiting)
            return await session.scalars(users.order_by(EngineUserRow.user_id))

    async def new_users(self, engine: str, users: Sequence[str]) -> dict[str, int]:
        """Return the numbers of memories of users of whom an engine has no state."""
        async with self._database.reading(None) as session:
            known = select(EngineUserRow.user_id).where(EngineUserRow.engine == engine)
            new = MemoryRow.user_id.in_(users) & MemoryRow.user_id.not_in(known.where(EngineUserRow.user_id.in_(users)))
            counting = select(MemoryRow.user_id, func.count()).where(new).group_by(MemoryRow.user_id)
            return dict(await session.rows(counting))

    async def tips(self, users: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the newest changes of users."""
        async with self._database.reading(None) as session:
            newest = select(ChangeRow.user_id, func.max(ChangeRow.seq)).where(ChangeRow.user_id.in_(users))
            return dict(await session.rows(newest.group_by(ChangeRow.user_id)))

    async def begin(self, owner: str, states: Sequence[EngineUser]) -> list[str]:
        """Store the first states of users; return those who have one already, or all if the engine belongs to another
        process by now."""
        users, engine = [state.user_id for state in states], states[0].engine
        async with self._database.writing(users) as session:
            if await session.scalar(select(EngineRow.owner).where(EngineRow.name == engine)) != owner:
                return users
            mine = and_(EngineUserRow.user_id.in_(users), EngineUserRow.engine == engine)
            known = set(await session.scalars(select(EngineUserRow.user_id).where(mine)))
            new = [_values(state) for state in states if state.user_id not in known]
            if new:
                await session.execute(insert(EngineUserRow), new)
            return sorted(known)

    async def changes(self, user_id: str, after: int, limit: int) -> list[tuple[int, str]]:
        """Return the numbers and memories of a user's next changes."""
        [rows] = await self._database.select(user_id, (_NEXT, {"user_id": user_id, "after": after, "limit": limit}))
        return [(seq, memory_id) for seq, memory_id in rows]

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
            mine = and_(EngineUserRow.user_id == state.user_id, EngineUserRow.engine == state.engine)
            row = await session.first(select(EngineUserRow).where(mine))
            if holder != owner or (None if row is None else from_row(EngineUser, row)) != before:
                return False
            if after is None:
                await session.execute(delete(EngineUserRow).where(mine))
                return True
            values = _values(after)
            if after.applied is not None and after.memories < MOST_COUNTED:  # one with more stays so until loaded anew
                values["memories"] = await _number(session, state.user_id)
            if row is None:
                await session.execute(insert(EngineUserRow), [values])
            else:
                await session.execute(update(EngineUserRow).where(mine).values(**values))
            return True

    async def reload(self, engine: str, user_id: str) -> None:
        """Have a user removed from an engine and loaded anew, by whichever process feeds it."""
        async with self._database.writing([user_id]) as session:
            mine = and_(EngineUserRow.user_id == user_id, EngineUserRow.engine == engine)
            if not await session.execute(update(EngineUserRow).where(mine).values(applied=None, loaded_id=None)):
                state = EngineUser(user_id=user_id, engine=engine, erase=True)
                await session.execute(insert(EngineUserRow), [_values(state)])


async def _number(session: Session, user_id: str) -> int:
    """Count a user's memories, up to a limit."""
    some = select(MemoryRow.id).where(MemoryRow.user_id == user_id).limit(MOST_COUNTED).subquery()
    return await session.scalar(select(func.count()).select_from(some)) or 0


async def _reset(session: Session, engine: str) -> None:
    await session.execute(update(EngineRow).where(EngineRow.name == engine).values(seen=0))
    mine = EngineUserRow.engine == engine
    await session.execute(delete(EngineUserRow).where(mine, EngineUserRow.erase.is_(False)))
    await session.execute(update(EngineUserRow).where(mine).values(applied=None, loaded_id=None, load_from=0))


def _values(state: EngineUser) -> dict[str, Any]:
    return {name: getattr(state, name) for name in EngineUser.__dataclass_fields__}


def is_user(name: str) -> bool:
    """Return False for names in the change feed that stand for an erased user or for all users."""
    return name != SHARED and not name.startswith(MARKS)


def users_in(names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if is_user(name))
