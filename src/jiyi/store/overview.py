"""Reading many memories in few columns: the log of changes, current statements, sizes of users."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import String, and_, cast, func, literal, null, or_, select, union_all
from sqlalchemy.orm import Session, aliased

from .database import PAGE_SIZE, Repository, chunks, reads
from .tables import ChangeRow, MemoryRow, MessageRow, RelationRow, RevisionRow

MESSAGE = "message"
GROWING = ("profile", "group_profile", "episode")  # made of others
TOLD = 1_000  # characters at the beginning of a memory, in which people and things are looked for
CHANGES_PART = 50  # changes that are read at once
STATE = ("content", "summary", "memory_type", "status", "source", "agent_id", "session_id", "data", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChange:
    """A change of a memory, with the memory's current state; None for a deleted one."""

    memory_id: str
    version: int
    action: str
    actor: str
    reason: str | None
    changed_at: datetime
    before: dict[str, Any] | None
    memory: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory with the fields that name people and things."""

    id: str
    content: str  # its beginning
    length: int  # of the whole content
    data: dict[str, Any]
    metadata: dict[str, Any]
    confidence: float
    trust: float
    occurred_at: datetime
    valid_from: datetime
    valid_to: datetime | None


def _logged(session: Session, user_id: str, lines: Sequence[Any]) -> list[LoggedChange]:
    """Return changes with their revisions, and the memories as they are now."""
    ids = list({line.memory_id for line in lines})
    mine = select(MemoryRow.__table__).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(ids))
    memories = {row.id: {name: getattr(row, name) for name in STATE} for row in session.execute(mine).all()}
    versions = list({line.version for line in lines})
    history = select(RevisionRow.__table__).where(
        RevisionRow.user_id == user_id, RevisionRow.memory_id.in_(ids), RevisionRow.version.in_(versions)
    )
    told = {(row.memory_id, row.version): row for row in session.execute(history).all()}
    return [
        LoggedChange(
            memory_id=line.memory_id,
            version=line.version,
            action=line.action,
            actor=line.actor or "",
            reason=revision.reason if (revision := told.get((line.memory_id, line.version))) else None,
            changed_at=line.changed_at,
            before=revision.before if revision else None,
            memory=memories.get(line.memory_id),
        )
        for line in lines
    ]


class Overviews(Repository):
    """Overviews of a user's memories."""

    @reads
    def changes(
        self, session: Session, user_id: str, *, after: tuple[datetime, str, int] | None, limit: int
    ) -> tuple[Sequence[LoggedChange], bool]:
        """Return changes of memories other than messages, newest first, as many as a page may hold, and True if there
        may be more; `after` is the last one of the page before."""
        of_memory = and_(MemoryRow.user_id == RevisionRow.user_id, MemoryRow.id == RevisionRow.memory_id)
        revisions = (
            select(
                RevisionRow.changed_at,
                RevisionRow.memory_id,
                RevisionRow.version,
                RevisionRow.action,
                RevisionRow.actor,
            )
            .join(MemoryRow, of_memory)
            .where(RevisionRow.user_id == user_id, MemoryRow.memory_type != MESSAGE)
        )
        deleted = select(
            ChangeRow.changed_at, ChangeRow.memory_id, literal(0), ChangeRow.action, cast(null(), String)
        ).where(ChangeRow.user_id == user_id, ChangeRow.action == "delete")
        both = union_all(revisions, deleted).subquery("log")
        order = (both.c.changed_at, both.c.memory_id, both.c.version)
        page = select(*both.c).order_by(*(column.desc() for column in order)).limit(limit)
        if after is not None:
            same_time, same_memory = order[0] == after[0], order[1] == after[1]
            page = page.where(
                or_(
                    order[0] < after[0],
                    and_(same_time, order[1] < after[1]),
                    and_(same_time, same_memory, order[2] < after[2]),
                )
            )
        lines = session.execute(page).all()
        found: list[LoggedChange] = []
        room = PAGE_SIZE
        for some in chunks(lines, CHANGES_PART):
            for change in _logged(session, user_id, some):
                found.append(change)
                room -= sum(len(state["content"]) for state in (change.before, change.memory) if state)
                if room < 0:
                    return found, True
        return found, len(lines) == limit

    @reads
    def told(self, session: Session, user_id: str, limit: int) -> Sequence[Told]:
        """Return active memories other than messages and what is made of others, also ended ones, newest first."""
        made = {"content": func.substr(MemoryRow.content, 1, TOLD), "length": func.length(MemoryRow.content)}
        names = Told.__dataclass_fields__
        columns = [(made[name] if name in made else MemoryRow.__table__.columns[name]).label(name) for name in names]
        statement = (
            select(*columns)
            .where(MemoryRow.user_id == user_id, MemoryRow.status == "active")
            .where(MemoryRow.memory_type.not_in((MESSAGE, *GROWING)))
            .order_by(MemoryRow.id.desc())
            .limit(limit)
        )
        return [Told(**row._asdict()) for row in session.execute(statement).all()]

    @reads
    def contradictions(self, session: Session, user_id: str) -> Sequence[tuple[str, str]]:
        """Return pairs of memories that contradict each other and both hold."""
        one, other = aliased(MemoryRow), aliased(MemoryRow)
        holding = [and_(row.status == "active", row.valid_to.is_(None)) for row in (one, other)]
        statement = (
            select(RelationRow.memory_id, RelationRow.target_id)
            .join(one, and_(one.user_id == RelationRow.user_id, one.id == RelationRow.memory_id))
            .join(other, and_(other.user_id == RelationRow.user_id, other.id == RelationRow.target_id))
            .where(RelationRow.user_id == user_id, RelationRow.relation_type == "contradicts", *holding)
            .order_by(RelationRow.memory_id)
        )
        return [(memory_id, target_id) for memory_id, target_id in session.execute(statement).all()]

    @reads(everybody=True)
    def sizes(self, session: Session) -> Sequence[tuple[str, int, int]]:
        """Return each user with the numbers of memories and messages."""
        memories = select(MemoryRow.user_id, func.count()).where(MemoryRow.memory_type != MESSAGE)
        messages = select(MessageRow.user_id, func.count()).group_by(MessageRow.user_id)
        held = dict(session.execute(memories.group_by(MemoryRow.user_id)).all())
        said = dict(session.execute(messages).all())
        return [(user, held.get(user, 0), said.get(user, 0)) for user in sorted({*held, *said})]
