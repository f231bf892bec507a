"""Usage and overviews: past searches with the memories they returned, counts of memories, calls of language models, the
log of changes. Recalls are written in batches, and enter neither the change feed nor a memory's history."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    String,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    type_coerce,
    union_all,
    update,
)
from sqlalchemy.orm import Session, aliased

from ...llm import Usage
from ...models import EPOCH, Recall, Stats
from ..database import PAGE_SIZE, Inserts, Repository, chunks, from_row, reads, writes
from ..schema.columns import Instant
from ..schema.tables import (
    ChangeRow,
    LlmUsageRow,
    MemoryRow,
    MemorySourceRow,
    MessageRow,
    RecallRow,
    RelationRow,
    RevisionRow,
)
from .change_feed import Erasures, check_epoch
from .index_entries import coverage
from .memories import all_users

TENTHS = 10
DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    by_importance: tuple[int, ...]  # active ones, in each tenth
    average_importance: float | None
    archived: int
    added_by_day: dict[str, int]


def count_by_type(session: Session, user_id: str | None) -> dict[str, int]:
    """Count active memories by type, the most frequent first."""
    statement = (
        select(MemoryRow.memory_type, func.count())
        .where(MemoryRow.status == "active")
        .group_by(MemoryRow.memory_type)
        .order_by(func.count().desc(), MemoryRow.memory_type)
    )
    if user_id is not None:
        statement = statement.where(MemoryRow.user_id == user_id)
    return dict(session.execute(statement).all())


class Statistics(Repository):
    """Counts over all memories."""

    async def stats(self, model: str, user_id: str | None = None) -> Stats:
        info = await self._database.info()

        def count(session: Session) -> Stats:
            by_type = count_by_type(session, user_id)
            return Stats(
                users=len(all_users(session)) if user_id is None else 1,
                memories=sum(by_type.values()),
                by_type=by_type,
                coverage=coverage(session, model, user_id),
                embedder=model,
                store=info.url,
                schema_version=info.schema,
                size_bytes=info.size_bytes,
            )

        return await self._database.read(user_id, count)

    @reads
    def tally(self, session: Session, user_id: str | None, since: datetime) -> Tally:
        """Count memories of one user or of all; `added_by_day` includes archived ones."""
        mine: list[ColumnElement[bool]] = [] if user_id is None else [MemoryRow.user_id == user_id]
        statement = select(MemoryRow.status, MemoryRow.importance, func.count()).where(*mine)
        tenths, archived, total = [0] * TENTHS, 0, 0.0
        for status, importance, number in session.execute(
            statement.group_by(MemoryRow.status, MemoryRow.importance)
        ).all():
            if status != "active":
                archived += number
                continue
            tenths[min(int(importance * TENTHS), TENTHS - 1)] += number
            total += importance * number
        day = type_coerce(MemoryRow.created_at, BigInteger) // DAY
        added = select(day, func.count()).where(*mine, MemoryRow.created_at >= since).group_by(day).order_by(day)
        return Tally(
            by_importance=tuple(tenths),
            average_importance=total / sum(tenths) if sum(tenths) else None,
            archived=archived,
            added_by_day={
                (EPOCH + timedelta(days=int(days))).date().isoformat(): number
                for days, number in session.execute(added).all()
            },
        )


KEPT = timedelta(days=30)


def count_usage(session: Session, user_id: str, hour: datetime, usage: Usage) -> Usage:
    """Add to the usage of an hour, or refund a negative one; return the new usage."""
    mine = and_(LlmUsageRow.user_id == user_id, LlmUsageRow.hour == hour)
    row = session.execute(select(LlmUsageRow.__table__).where(mine)).first()
    before = Usage(0, 0, 0) if row is None else Usage(row.calls, row.input_tokens, row.output_tokens)
    after = before + usage
    if row is None:
        session.execute(delete(LlmUsageRow).where(LlmUsageRow.user_id == user_id, LlmUsageRow.hour < hour - KEPT))
        session.execute(insert(LlmUsageRow), [{"user_id": user_id, "hour": hour, **asdict(after)}])
    else:
        session.execute(update(LlmUsageRow).where(mine).values(asdict(after)))
    return after


class LlmUsage(Repository):
    """Calls and tokens of language models, by user and hour."""

    async def epoch(self, user_id: str) -> str:
        return await Erasures(self._database).epoch(user_id)

    @writes
    def count_llm_usage(self, session: Session, user_id: str, hour: datetime, usage: Usage, epoch: str) -> Usage:
        check_epoch(session, user_id, epoch)
        return count_usage(session, user_id, hour, usage)


MOST_COUNTED = 2_000_000_000  # a counter stops here rather than overflow
_AT = bindparam("at", type_=Instant)
# Built once: every flush runs it. Another process may have noted a later access.
_LOOKED_AT = (
    update(MemoryRow.__table__)
    .where(MemoryRow.user_id == bindparam("whose"), MemoryRow.id == bindparam("memory"))
    .values(
        access_count=case(
            (MemoryRow.access_count < MOST_COUNTED, MemoryRow.access_count + bindparam("times")), else_=MOST_COUNTED
        ),
        last_accessed_at=case((MemoryRow.last_accessed_at > _AT, MemoryRow.last_accessed_at), else_=_AT),
    )
)


def record_recalls(session: Session, recalls: Sequence[Recall], keep: int) -> None:
    """Save recalls, the newest `keep` of each user, and count the accesses of memories. A recall of a memory that was
    deleted meanwhile is dropped, because a question often repeats what its answer says."""
    by_user: defaultdict[str, list[Recall]] = defaultdict(list)
    for recall in recalls:
        by_user[recall.user_id].append(recall)
    looked_at, inserts = [], Inserts()
    for user_id, theirs in sorted(by_user.items()):  # in one order, lest two processes wait for each other
        alive = _alive(session, user_id, {memory_id for recall in theirs for memory_id in recall.memory_ids})
        kept = [recall for recall in theirs if alive.issuperset(recall.memory_ids)]
        times = Counter(memory_id for recall in kept for memory_id in recall.memory_ids)
        last = {memory_id: recall.recalled_at for recall in kept for memory_id in recall.memory_ids}
        looked_at += [
            {"whose": user_id, "memory": memory_id, "times": times[memory_id], "at": last[memory_id]}
            for memory_id in sorted(times)
        ]
        inserts.add(RecallRow, [{**dict(recall), "memory_ids": list(recall.memory_ids)} for recall in kept])
    if not looked_at:
        return
    session.execute(_LOOKED_AT, looked_at)
    inserts.run(session)
    for user_id in by_user:
        _forget_older(session, user_id, keep)


def _alive(session: Session, user_id: str, ids: set[str]) -> set[str]:
    mine = select(MemoryRow.id).where(MemoryRow.user_id == user_id)
    return {
        memory_id for some in chunks(sorted(ids)) for memory_id in session.scalars(mine.where(MemoryRow.id.in_(some)))
    }


def _forget_older(session: Session, user_id: str, keep: int) -> None:
    mine = select(RecallRow.id).where(RecallRow.user_id == user_id).order_by(RecallRow.id.desc())
    too_old = session.scalar(mine.offset(keep).limit(1))
    if too_old is not None:
        session.execute(delete(RecallRow).where(RecallRow.user_id == user_id, RecallRow.id <= too_old))


def forget_recalls(session: Session, user_id: str, memory_ids: Sequence[str], words: Sequence[str] = ()) -> int:
    """Remove recalls that name one of these memories or contain one of these words; return their number."""
    listed, asked = cast(RecallRow.memory_ids, String), func.lower(RecallRow.query)
    removed = 0
    for some in chunks(memory_ids, 100):
        named = or_(*(listed.contains(memory_id) for memory_id in some))  # ids are of one length, in letters and digits
        removed += _remove(session, user_id, named)
    for some in chunks(words, 100):
        removed += _remove(session, user_id, or_(*(asked.contains(word, autoescape=True) for word in some)))
    return removed


def _remove(session: Session, user_id: str, which: ColumnElement[bool]) -> int:
    mine = and_(RecallRow.user_id == user_id, which)
    count = session.scalar(select(func.count()).select_from(RecallRow).where(mine)) or 0
    if count:
        session.execute(delete(RecallRow).where(mine))
    return count


class Recalls(Repository):
    """Past searches and the memories they returned."""

    async def add(self, recalled: Sequence[Recall], keep: int) -> None:
        users = sorted({recall.user_id for recall in recalled})
        await self._database.write(users, lambda session: record_recalls(session, recalled, keep))

    @reads
    def list(self, session: Session, user_id: str, *, since: datetime | None, limit: int) -> Sequence[Recall]:
        """Return recalls, newest first."""
        statement = (
            select(RecallRow.__table__).where(RecallRow.user_id == user_id).order_by(RecallRow.id.desc()).limit(limit)
        )
        if since is not None:
            statement = statement.where(RecallRow.recalled_at >= since)
        return [from_row(Recall, row) for row in session.execute(statement).all()]


MESSAGE = "message"
MAX_ENDINGS = 1000  # unclear ones that are looked at
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
    memory_type: str


def _has_derived() -> ColumnElement[bool]:
    """Match a message of which an active memory was made."""
    own, other, memory = aliased(MemorySourceRow), aliased(MemorySourceRow), aliased(MemoryRow)
    return (
        select(own.memory_id)
        .join(other, and_(other.user_id == own.user_id, other.message_id == own.message_id))
        .join(memory, and_(memory.user_id == other.user_id, memory.id == other.memory_id))
        .where(own.user_id == MemoryRow.user_id, own.memory_id == MemoryRow.id, other.memory_id != MemoryRow.id)
        .where(memory.status == "active", memory.memory_type.not_in((MESSAGE, *GROWING)))
        .exists()
    )


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
    def told(self, session: Session, user_id: str, limit: int, *, with_messages: bool = False) -> Sequence[Told]:
        """Return active memories other than what is made of others, also ended ones, newest first. `with_messages`:
        also messages of which no memory was made."""
        made = {"content": func.substr(MemoryRow.content, 1, TOLD), "length": func.length(MemoryRow.content)}
        names = Told.__dataclass_fields__
        columns = [(made[name] if name in made else MemoryRow.__table__.columns[name]).label(name) for name in names]
        statement = (
            select(*columns)
            .where(MemoryRow.user_id == user_id, MemoryRow.status == "active")
            .where(MemoryRow.memory_type.not_in(GROWING if with_messages else (MESSAGE, *GROWING)))
            .order_by(MemoryRow.id.desc())
            .limit(limit)
        )
        if with_messages:
            statement = statement.where(or_(MemoryRow.memory_type != MESSAGE, ~_has_derived()))
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

    @reads
    def endings(self, session: Session, user_id: str, below: float) -> Sequence[tuple[str, str, dict[str, Any]]]:
        """Return memories that ended others with a probability below this, with the ended ones and their metadata,
        newest first."""
        new, old = aliased(MemoryRow), aliased(MemoryRow)
        statement = (
            select(RelationRow.memory_id, RelationRow.target_id, old.metadata_)
            .join(new, and_(new.user_id == RelationRow.user_id, new.id == RelationRow.memory_id))
            .join(old, and_(old.user_id == RelationRow.user_id, old.id == RelationRow.target_id))
            .where(RelationRow.user_id == user_id, RelationRow.relation_type == "contradicts")
            .where(RelationRow.strength < below, old.superseded_by == new.id)
            .where(new.status == "active", old.status == "active")
            .order_by(RelationRow.memory_id.desc())
            .limit(MAX_ENDINGS)
        )
        return [(new_id, old_id, metadata) for new_id, old_id, metadata in session.execute(statement).all()]

    @reads(everybody=True)
    def sizes(self, session: Session) -> Sequence[tuple[str, int, int]]:
        """Return each user with the numbers of memories and messages."""
        memories = select(MemoryRow.user_id, func.count()).where(MemoryRow.memory_type != MESSAGE)
        messages = select(MessageRow.user_id, func.count()).group_by(MessageRow.user_id)
        held = dict(session.execute(memories.group_by(MemoryRow.user_id)).all())
        said = dict(session.execute(messages).all())
        return [(user, held.get(user, 0), said.get(user, 0)) for user in sorted({*held, *said})]
