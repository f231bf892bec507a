"""The state of external engines: which changes of each user they have, which user is to be erased, and who feeds them.
All rows of a user are written under that user's lock, so an erasure and a feeding
process cannot overtake each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from ...ids import MARKS
from ..database import Repository, count_changed, from_row, reads, writes
from ..schema.tables import (
    SHARED,
    SOURCES,
    ChangeRow,
    EngineRow,
    EngineUserRow,
    MemoryRow,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedEngine:
    """An engine as a search of one user finds it."""

    generation: int
    problem: str | None
    user: EngineUser | None


def request_erasure(session: Session, user_id: str) -> None:
    """Ask every engine to remove a user whose rows were just deleted."""
    engines = session.scalars(select(EngineRow.name)).all()
    if engines:
        rows = [_values(EngineUser(user_id=user_id, engine=name, erase=True)) for name in engines]
        session.execute(insert(EngineUserRow), rows)


class Projections(Repository):
    """The state of external engines."""

    async def register(self, engine: str, identity: str) -> None:
        """Add an engine, or load it anew if it was at another place or had vectors of another model."""
        known = await self._database.read(None, lambda session: _model_of(session, engine))
        if known is None or identity_in(known) != identity:
            await self._register(engine, identity)

    @writes(locks=[SHARED])
    def _register(self, session: Session, engine: str, identity: str) -> None:
        known = _model_of(session, engine)
        if known is None:
            session.execute(insert(EngineRow), [{"name": engine, "model": model_of(identity, 1), "seen": 0}])
        elif identity_in(known) != identity:
            _reset(session, engine, identity)

    @reads(everybody=True)
    def generation(self, session: Session, engine: str) -> int:
        """Return the generation that an engine has, 0 if it was never fed."""
        return generation_in(_model_of(session, engine) or "")

    @reads(everybody=True)
    def has_memories(self, session: Session, engine: str) -> bool:
        """Return True if an engine has memories of any user."""
        some = select(EngineUserRow.user_id).where(EngineUserRow.engine == engine, EngineUserRow.memories > 0)
        return session.scalar(some.limit(1)) is not None

    @writes(locks=[SHARED])
    def begin_rebuild(self, session: Session, engine: str) -> None:
        """Add a row for the next generation beside the present one, or keep that of an interrupted rebuild."""
        identity, number = _parts(_model_of(session, engine))
        new = rebuilding(engine)
        new_identity, new_number = _parts(_model_of(session, new))
        if new_identity == identity and new_number > number:
            return
        _remove(session, new)
        session.execute(insert(EngineRow), [{"name": new, "model": model_of(identity, number + 1), "seen": 0}])

    @reads(everybody=True)
    def is_rebuilding(self, session: Session, engine: str, free_at: datetime | None = None) -> bool:
        """Return True if a rebuild was begun and not finished; with `free_at`, if no process was at it at that time."""
        lease = select(EngineRow.leased_until).where(EngineRow.name == rebuilding(engine))
        row = session.execute(lease).first()
        return row is not None and (free_at is None or row.leased_until is None or row.leased_until < free_at)

    @writes(locks=[SHARED])
    def switch(self, session: Session, engine: str, owner: str) -> bool:
        """Put the next generation in the place of the present one, if this process still loads it. Whoever feeds the
        present one loses the right to it: what it is writing now counts for nothing."""
        new = rebuilding(engine)
        row = session.execute(
            select(EngineRow.model, EngineRow.seen).where(EngineRow.name == new, EngineRow.owner == owner)
        )
        if (loaded := row.first()) is None:
            return False
        session.execute(delete(EngineUserRow).where(EngineUserRow.engine == engine))
        session.execute(update(EngineUserRow).where(EngineUserRow.engine == new).values(engine=engine))
        session.execute(delete(EngineRow).where(EngineRow.name == new))
        values = {"model": loaded.model, "seen": loaded.seen, "owner": owner, "leased_until": None, "problem": None}
        session.execute(update(EngineRow).where(EngineRow.name == engine).values(**values))
        return True

    @writes(locks=[SHARED])
    def reset(self, session: Session, engine: str, owner: str, problem: str) -> tuple[int, bool] | None:
        """Have all users loaded anew into the next generation; return its number, and whether any user was loaded, or
        None if another process feeds the engine by now. `problem` is shown until everything is loaded."""
        if _owner_of(session, engine) != owner:
            return None
        loaded = select(EngineUserRow.user_id).where(EngineUserRow.engine == engine, EngineUserRow.erase.is_(False))
        was_loaded = session.scalar(loaded.limit(1)) is not None
        _reset(session, engine, identity_in(_model_of(session, engine) or ""))
        if was_loaded:
            session.execute(update(EngineRow).where(EngineRow.name == engine).values(problem=problem))
        return generation_in(_model_of(session, engine) or ""), was_loaded

    @writes(locks=())
    def claim(
        self, session: Session, engine: str, owner: str, now: datetime, until: datetime
    ) -> tuple[int | None, bool, int]:
        """Take or renew the right to feed an engine; return its position in the feed, or None if another has it,
        whether nobody else has had the right since the last time, and the generation."""
        free = or_(EngineRow.owner == owner, EngineRow.leased_until.is_(None), EngineRow.leased_until < now)
        last = session.execute(
            select(EngineRow.owner, EngineRow.model).where(EngineRow.name == engine).with_for_update()
        ).first()
        mine = (
            update(EngineRow)
            .where(EngineRow.name == engine, free)
            .values(owner=owner, leased_until=until)
            .returning(EngineRow.seen)
        )
        seen = session.scalar(mine)
        return seen, last is not None and last.owner == owner, generation_in("" if last is None else last.model)

    @writes(locks=())
    def release(self, session: Session, engine: str, owner: str) -> None:
        mine = and_(EngineRow.name == engine, EngineRow.owner == owner)
        session.execute(update(EngineRow).where(mine).values(owner=None, leased_until=None))

    @writes(locks=())
    def note(
        self, session: Session, engine: str, owner: str, *, seen: int | None = None, problem: str | None = None
    ) -> bool:
        """Store the position and the problem of the process that feeds an engine; return False if it is another one."""
        values: dict[str, Any] = {"problem": problem} | ({} if seen is None else {"seen": seen})
        mine = and_(EngineRow.name == engine, EngineRow.owner == owner)
        return bool(count_changed(session, update(EngineRow).where(mine).values(**values)))

    @reads(everybody=True)
    def states(self, session: Session) -> list[EngineState]:
        """Return the state of each engine, by name."""
        tip = session.scalar(select(func.max(ChangeRow.seq))) or 0
        counts: dict[tuple[str, str], int] = {}
        for what, where in (("loading", EngineUserRow.applied.is_(None)), ("erasing", EngineUserRow.erase)):
            counting = select(EngineUserRow.engine, func.count()).where(where).group_by(EngineUserRow.engine)
            counts |= {(name, what): number for name, number in session.execute(counting).all()}
        return [
            from_row(
                EngineState,
                row,
                tip=tip,
                loading=counts.get((row.name, "loading"), 0),
                erasing=counts.get((row.name, "erasing"), 0),
            )
            for row in session.execute(select(EngineRow.__table__).order_by(EngineRow.name)).all()
        ]

    @reads
    def searched(self, session: Session, user_id: str) -> dict[str, SearchedEngine]:
        """Return each engine with the user's state in it."""
        mine = and_(EngineUserRow.engine == EngineRow.name, EngineUserRow.user_id == user_id)
        columns = (EngineRow.name, EngineRow.model, EngineRow.problem, *EngineUserRow.__table__.columns)
        rows = session.execute(select(*columns).join(EngineUserRow, mine, isouter=True)).all()
        return {
            row.name: SearchedEngine(
                generation=generation_in(row.model),
                problem=row.problem,
                user=None if row.user_id is None else from_row(EngineUser, row),
            )
            for row in rows
        }

    @reads
    def user(self, session: Session, user_id: str) -> dict[str, EngineUser]:
        """Return a user's state in each engine that has one, by engine."""
        rows = session.execute(select(EngineUserRow.__table__).where(EngineUserRow.user_id == user_id))
        return {row.engine: from_row(EngineUser, row) for row in rows}

    @reads(everybody=True)
    def unfinished(self, session: Session, engine: str) -> list[str]:
        """Return the users to be erased or loaded."""
        waiting = or_(EngineUserRow.erase, EngineUserRow.applied.is_(None))
        users = select(EngineUserRow.user_id).where(EngineUserRow.engine == engine, waiting)
        return list(session.scalars(users.order_by(EngineUserRow.user_id)))

    @reads(everybody=True)
    def new_users(self, session: Session, engine: str, users: Sequence[str]) -> dict[str, int]:
        """Return the numbers of memories of users of whom an engine has no state."""
        known = select(EngineUserRow.user_id).where(EngineUserRow.engine == engine)
        new = MemoryRow.user_id.in_(users) & MemoryRow.user_id.not_in(known.where(EngineUserRow.user_id.in_(users)))
        counting = select(MemoryRow.user_id, func.count()).where(new).group_by(MemoryRow.user_id)
        return dict(session.execute(counting).all())

    @reads(everybody=True)
    def tips(self, session: Session, users: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the newest changes of users."""
        newest = select(ChangeRow.user_id, func.max(ChangeRow.seq)).where(ChangeRow.user_id.in_(users))
        return dict(session.execute(newest.group_by(ChangeRow.user_id)).all())

    async def begin(self, owner: str, states: Sequence[EngineUser]) -> list[str]:
        """Store the first states of users; return those who have one already, or all if the engine belongs to another
        process by now."""
        users, engine = [state.user_id for state in states], states[0].engine

        def work(session: Session) -> list[str]:
            if _owner_of(session, engine) != owner:
                return users
            mine = and_(EngineUserRow.user_id.in_(users), EngineUserRow.engine == engine)
            known = set(session.scalars(select(EngineUserRow.user_id).where(mine)))
            new = [_values(state) for state in states if state.user_id not in known]
            if new:
                session.execute(insert(EngineUserRow), new)
            return sorted(known)

        return await self._database.write(users, work)

    @reads
    def changes(
        self, session: Session, user_id: str, after: int, limit: int, *, sources: bool = False
    ) -> list[tuple[int, str]]:
        """Return the numbers of a user's next changes, and what changed: memories, and with `sources` also units and
        memories of which only the messages changed."""
        columns = ChangeRow.seq, ChangeRow.memory_id, ChangeRow.action
        mine = select(*columns).where(ChangeRow.user_id == user_id, ChangeRow.seq > after)
        rows = session.execute(mine.order_by(ChangeRow.seq).limit(limit))
        return [(seq, one if sources or action != SOURCES else "") for seq, one, action in rows]

    @reads
    def tip(self, session: Session, user_id: str) -> int:
        """Return the number of a user's newest change."""
        return session.scalar(select(func.max(ChangeRow.seq)).where(ChangeRow.user_id == user_id)) or 0

    async def advance(self, owner: str, before: EngineUser | None, after: EngineUser | None) -> bool:
        """Store a user's new state (None: nothing is known of the user), if it is still `before` and the engine still
        belongs to this process. The memories are counted in the same transaction."""
        state = before or after
        if state is None:
            return True
        user_id, engine = state.user_id, state.engine

        def work(session: Session) -> bool:
            mine = and_(EngineUserRow.user_id == user_id, EngineUserRow.engine == engine)
            row = session.execute(select(EngineUserRow.__table__).where(mine)).first()
            stored = None if row is None else from_row(EngineUser, row)
            if _owner_of(session, engine) != owner or stored != before:
                return False
            if after is None:
                session.execute(delete(EngineUserRow).where(mine))
                return True
            values = _values(after)
            if after.applied is not None and after.memories < MOST_COUNTED:  # one with more stays so until loaded anew
                values["memories"] = _number(session, user_id)
            if row is None:
                session.execute(insert(EngineUserRow), [values])
            else:
                session.execute(update(EngineUserRow).where(mine).values(**values))
            return True

        return await self._database.write([user_id], work)

    async def reload(self, engine: str, user_id: str) -> None:
        """Have a user removed from an engine and loaded anew, by whichever process feeds it."""

        def work(session: Session) -> None:
            mine = and_(EngineUserRow.user_id == user_id, EngineUserRow.engine == engine)
            if not count_changed(session, update(EngineUserRow).where(mine).values(applied=None, loaded_id=None)):
                state = EngineUser(user_id=user_id, engine=engine, erase=True)
                session.execute(insert(EngineUserRow), [_values(state)])

        await self._database.write([user_id], work)


def _owner_of(session: Session, engine: str) -> str | None:
    return session.scalar(select(EngineRow.owner).where(EngineRow.name == engine))


def _number(session: Session, user_id: str) -> int:
    """Count a user's memories, up to a limit."""
    some = select(MemoryRow.id).where(MemoryRow.user_id == user_id).limit(MOST_COUNTED).subquery()
    return session.scalar(select(func.count()).select_from(some)) or 0


def _model_of(session: Session, engine: str) -> str | None:
    return session.scalar(select(EngineRow.model).where(EngineRow.name == engine))


def model_of(identity: str, generation: int) -> str:
    """Return what a row stores of a place and of the generation there."""
    return f"{identity}.{generation}"


def identity_in(model: str) -> str:
    return model.partition(".")[0]


def generation_in(model: str) -> int:
    return int(model.partition(".")[2] or 0)


def _parts(model: str | None) -> tuple[str, int]:
    return identity_in(model or ""), generation_in(model or "")


def rebuilding(engine: str) -> str:
    """Return the name of the row of an engine's next generation."""
    return f"{engine}+"


def _remove(session: Session, engine: str) -> None:
    session.execute(delete(EngineUserRow).where(EngineUserRow.engine == engine))
    session.execute(delete(EngineRow).where(EngineRow.name == engine))


def _reset(session: Session, engine: str, identity: str) -> None:
    """Have everything loaded anew, into a generation after all that were begun."""
    models = [_model_of(session, name) for name in (engine, rebuilding(engine))]
    number = max(generation_in(model or "") for model in models) + 1
    _remove(session, rebuilding(engine))
    values = {"seen": 0, "model": model_of(identity, number)}
    session.execute(update(EngineRow).where(EngineRow.name == engine).values(**values))
    mine = EngineUserRow.engine == engine
    session.execute(delete(EngineUserRow).where(mine, EngineUserRow.erase.is_(False)))
    session.execute(update(EngineUserRow).where(mine).values(applied=None, loaded_id=None, load_from=0))


def _values(state: EngineUser) -> dict[str, Any]:
    return {name: getattr(state, name) for name in EngineUser.__dataclass_fields__}


def is_user(name: str) -> bool:
    """Return False for names in the change feed that stand for an erased user or for all users."""
    return name != SHARED and not name.startswith(MARKS)


def users_in(names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if is_user(name))
