"""Changes of memories: new values, revisions, and the changes that undo selects. Everything that one `add` changes has
the same time, to the microsecond. So the changes that a session or a document caused are found by the times at which
its messages were added."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, bindparam, delete, or_, select, update
from sqlalchemy.orm import Session

from ...errors import InvalidInput, VersionConflict
from ...models import MemoryItem, Revision
from ..database import Columns, Inserts, Repository, Values, chunks, from_row, reads, writes
from ..schema.tables import MemoryRow, MemorySourceRow, MessageRow, RelationRow, RevisionRow
from ..write_set import SCOPE, Change, ChangedMemory, Division, NewMemory, Past, StoredMemory
from . import memories
from .index_entries import INDEX_TABLES, index_values
from .memories import known_by_hash, memory_row


def retire_expired(session: Session, user_id: str, hashes: Sequence[str], at: datetime, *, but: str = "") -> None:
    """Archive expired memories with these hashes, so that the same text can be added again; `but` is left out."""
    for some in chunks(hashes):
        expired = session.execute(
            select(MemoryRow.__table__).where(
                MemoryRow.user_id == user_id,
                MemoryRow.dedupe_hash.in_(some),
                MemoryRow.id != but,
                MemoryRow.status == "active",
                MemoryRow.expires_at <= at,
            )
        ).all()
        for row in expired:
            change = Change(
                values={"status": "archived"}, action="archive", actor="system", reason="it had expired", at=at
            )
            _apply(session, row, change)


def _refuse_twin(session: Session, row: Row[*Columns], change: Change) -> None:
    """Raise if another current memory has the same text."""
    said = change.dedupe_hash or row.dedupe_hash
    status, valid_to = (change.values.get(name, getattr(row, name)) for name in ("status", "valid_to"))
    if said is None or status != "active" or valid_to is not None:
        return
    retire_expired(session, row.user_id, [said], change.at, but=row.id)
    twin = (known_by_hash(session, row.user_id, [said], change.at)).get(said, row.id)
    if twin != row.id:
        raise InvalidInput("content", f"memory {twin} says the same already: change or delete that one")


def revision_values(
    user_id: str, memory_id: str, version: int, change: Change, before: dict[str, Any] | None
) -> Values:
    """Return the row of a revision."""
    return {
        "user_id": user_id,
        "memory_id": memory_id,
        "version": version,
        "action": change.action,
        "actor": change.actor,
        "reason": change.reason,
        "before": before,
        "changed_at": change.at,
    }


def _apply(session: Session, row: Row[*Columns], change: Change) -> None:
    inserts = Inserts()
    apply_changes(session, row.user_id, [(row, change)], inserts)
    inserts.run(session)


def apply_changes(
    session: Session, user_id: str, changes: Sequence[tuple[Row[*Columns], Change]], inserts: Inserts
) -> None:
    """Change memories; add their revisions, index entries and feed entries to `inserts`."""
    if not changes:
        return
    columns = {"version", "updated_at"}
    states: dict[str, Any] = {}
    revisions = []
    for row, change in changes:
        state = states.setdefault(row.id, SimpleNamespace(**row._asdict()))
        before = snapshot(state)
        new = _new_values(change)
        vars(state).update(new, version=state.version + 1, updated_at=change.at)
        columns.update(new)
        revisions.append(revision_values(user_id, row.id, state.version, change, before))
    statement = (  # the same columns in every row make one statement
        update(MemoryRow.__table__)
        .where(MemoryRow.user_id == user_id, MemoryRow.id == bindparam("memory"))
        .values({name: bindparam(f"new_{name}") for name in sorted(columns)})
    )
    changed = [
        {"memory": memory_id, **{f"new_{name}": getattr(state, name) for name in columns}}
        for memory_id, state in states.items()
    ]
    session.execute(statement, changed)
    reindexed = {row.id: change.index for row, change in changes if change.index is not None}
    for some in chunks(list(reindexed)):
        for table in INDEX_TABLES:
            session.execute(delete(table).where(table.user_id == user_id, table.memory_id.in_(some)))
    for memory_id, index in reindexed.items():
        inserts.add_tables(index_values(user_id, memory_id, index))
    inserts.add(RevisionRow, revisions)
    inserts.tell(user_id, [row.id for row, _ in changes], "update")
    for _, change in changes:
        divide(session, user_id, change.divisions, inserts, actor=change.actor, at=change.at)


def divide(
    session: Session, user_id: str, divisions: Sequence[Division], inserts: Inserts, *, actor: str, at: datetime
) -> None:
    """Archive the rows of messages, and insert the rows of their statements."""
    if not divisions:
        return
    there = memories.memory_rows(session, user_id, [one.memory_id for one in divisions])
    archived = []
    for one in divisions:
        row = there.get(one.memory_id)
        if row is None or row.version != one.version:
            raise VersionConflict(one.memory_id, one.version, 0 if row is None else row.version)
        change = Change(values={"status": "archived"}, action="archive", actor=actor, reason=one.reason, at=at)
        archived.append((row, change))
        for new in one.left:
            insert_statement(inserts, row, new, replace(change, action="add"))
    apply_changes(session, user_id, archived, inserts)


def insert_statement(inserts: Inserts, whole: Row[*Columns] | StoredMemory, new: NewMemory, added: Change) -> None:
    """Insert the row of a statement, in the place of the row that it was a part of."""
    own = {
        "tags": list(new.tags),
        "near_hash": new.index.near_hash,
        "version": 1,
        "access_count": 0,
        "last_accessed_at": None,
        "created_at": new.created_at or added.at,
        "updated_at": added.at,
        **{name: getattr(whole, name) for name in ("user_id", *SCOPE)},
    }
    columns = MemoryRow.__table__.columns.keys()
    inserts.add(MemoryRow, [own | {name: getattr(new, name) for name in columns if name not in own}])
    inserts.add_tables(index_values(whole.user_id, new.id, new.index))
    inserts.add(
        MemorySourceRow,
        (
            {
                "user_id": whole.user_id,
                "memory_id": new.id,
                "message_id": source.message_id,
                "span_start": source.start,
                "span_end": source.end,
            }
            for source in new.sources
        ),
    )
    inserts.add(RevisionRow, [revision_values(whole.user_id, new.id, 1, replace(added, reason=new.reason), None)])
    inserts.tell(whole.user_id, [new.id], "add")


def _new_values(change: Change) -> Values:
    """Return the columns that a change sets, other than version and time."""
    found = dict(change.values)
    if change.dedupe_hash is not None:
        found["dedupe_hash"] = change.dedupe_hash
    if change.index is not None:
        found["near_hash"] = change.index.near_hash
    return found


def bring_back(session: Session, row: Row[*Columns], actor: str, reason: str, at: datetime) -> None:
    """Restore an archived memory."""
    change = Change(values={"status": "active"}, action="restore", actor=actor, reason=reason, at=at)
    _apply(session, row, change)


def reopen(session: Session, row: Row[*Columns], actor: str, reason: str, at: datetime) -> None:
    """Let an ended memory hold again."""
    values = {"valid_to": None, "superseded_by": None}
    _apply(session, row, Change(values=values, action="restore", actor=actor, reason=reason, at=at))


class Edits(Repository):
    """Changes of memories."""

    @writes
    def update(self, session: Session, user_id: str, memory_id: str, change: Change, version: int | None) -> None:
        """Change a memory; with a version, only if it still has that version."""
        row = memory_row(session, user_id, memory_id)
        if version is not None and row.version != version:
            raise VersionConflict(memory_id, version, row.version)
        _refuse_twin(session, row, change)
        _apply(session, row, change)

    async def update_all(self, wanted: Sequence[tuple[str, ChangedMemory]]) -> None:
        """Change memories of users in one transaction; nothing if one of them does not exist or has another version."""

        def work(session: Session) -> None:
            for user_id, one in wanted:
                row = memory_row(session, user_id, one.id)
                if one.version is not None and row.version != one.version:
                    raise VersionConflict(one.id, one.version, row.version)
                _refuse_twin(session, row, one.change)
                _apply(session, row, one.change)

        await self._database.write(sorted({user_id for user_id, _ in wanted}), work)

    @writes
    def update_many(self, session: Session, user_id: str, wanted: Sequence[ChangedMemory]) -> list[tuple[str, str]]:
        """Change memories that still have their version; return the others, with the reason."""
        left: list[tuple[str, str]] = []
        for one in wanted:
            row = session.execute(
                select(MemoryRow.__table__).where(MemoryRow.user_id == user_id, MemoryRow.id == one.id)
            ).first()
            try:
                if row is None:
                    left.append((one.id, "it is gone"))
                elif one.version is not None and row.version != one.version:
                    left.append((one.id, f"it was changed meanwhile, to version {row.version}"))
                else:
                    _refuse_twin(session, row, one.change)
                    _apply(session, row, one.change)
            except InvalidInput as error:
                left.append((one.id, error.problem))
        return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """A selection of changes. None does not restrict; `memory_id` means the last change of that memory, `after`
    everything since that time."""

    user_id: str
    memory_id: str | None = None
    session_id: str | None = None
    actor: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    after: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A memory with its history, and the selected versions."""

    memory: MemoryItem
    revisions: tuple[Revision, ...]
    selected: frozenset[int]


REVISED = (
    "content",
    "summary",
    "memory_type",
    "layer",
    "data",
    "metadata",
    "importance",
    "confidence",
    "tags",
    "status",
    "occurred_at",
    "valid_from",
    "valid_to",
    "superseded_by",
    "expires_at",
)

Versions = dict[str, set[int]]  # by memory
WORKED_OUT = ("merge", "supersede")  # what `add` does to memories that are there


def _memories(user_id: str, ids: Iterable[str]) -> Select[MemoryRow]:
    return select(MemoryRow.__table__).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(list(ids)))


def _last_change(session: Session, what: Undoing) -> Versions:
    row = memories.memory_row(session, what.user_id, what.memory_id or "")
    return {row.id: {row.version}}


def _changes(session: Session, what: Undoing) -> Versions:
    user_id = what.user_id
    statement = select(RevisionRow.memory_id, RevisionRow.version).where(RevisionRow.user_id == user_id)
    if what.after is not None:
        statement = statement.where(RevisionRow.changed_at > what.after)
    if what.since is not None:
        statement = statement.where(RevisionRow.changed_at >= what.since)
    if what.actor is not None:
        statement = statement.where(RevisionRow.actor == what.actor)
    if what.session_id is not None or what.metadata:
        statement = statement.where(_learned_from(what))
    found: Versions = defaultdict(set)
    for memory_id, version in session.execute(statement):
        found[memory_id].add(version)
    return found


def _learned_from(what: Undoing) -> ColumnElement[bool]:
    """Select memories that a source created, and changes to others at the same time."""
    learned = [MemoryRow.user_id == what.user_id]
    learned += [MemoryRow.metadata_[name].as_string() == value for name, value in what.metadata.items()]
    moments = [select(MemoryRow.created_at)]
    if what.session_id is not None:
        learned.append(MemoryRow.session_id == what.session_id)
        own = (MessageRow.user_id == what.user_id, MessageRow.session_id == what.session_id)
        # What was said may have made no memory of its own, and yet have changed others.
        moments += [] if what.metadata else [select(MessageRow.created_at).where(*own)]
    moments[0] = moments[0].where(*learned)
    made = and_(RevisionRow.version == 1, RevisionRow.memory_id.in_(select(MemoryRow.id).where(*learned)))
    worked_out = RevisionRow.action.in_(WORKED_OUT)
    return or_(made, and_(worked_out, or_(*(RevisionRow.changed_at.in_(some) for some in moments))))


def _add_compressed(session: Session, user_id: str, found: Versions) -> None:
    """Add compressed memories that contain removed ones, and restore their other members."""
    seen: set[str] = set()
    while new := [memory_id for memory_id, versions in found.items() if 1 in versions and memory_id not in seen]:
        seen.update(new)
        for some in chunks(new):
            either = or_(RelationRow.target_id.in_(some), RelationRow.memory_id.in_(some))
            refined = (RelationRow.user_id == user_id, RelationRow.relation_type == "refines", either)
            wholes = set(session.scalars(select(RelationRow.memory_id).where(*refined).distinct()))
            for whole in session.execute(_memories(user_id, wholes)):
                if "compressed" in whole.data:
                    _take_apart(session, whole, found)


def _take_apart(session: Session, whole: Row[*Columns], found: Versions) -> None:
    found.setdefault(whole.id, set()).add(1)
    parts = select(RelationRow.target_id).where(
        RelationRow.user_id == whole.user_id,
        RelationRow.memory_id == whole.id,
        RelationRow.relation_type == "refines",
    )
    archived = session.execute(
        select(RevisionRow.memory_id, RevisionRow.version).where(
            RevisionRow.user_id == whole.user_id,
            RevisionRow.memory_id.in_(parts),
            RevisionRow.action == "archive",
            RevisionRow.changed_at == whole.created_at,
        )
    ).all()
    for memory_id, version in archived:
        found.setdefault(memory_id, set()).add(version)


def snapshot(row: Any) -> dict[str, Any]:
    """The changeable fields of a memory, ready for JSON."""
    values = {name: getattr(row, name) for name in REVISED}
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()}


def revisions(rows: Sequence[Row[*Columns]], row: Row[*Columns]) -> list[Revision]:
    """The history of a memory, oldest first. What a change led to is where the next one started."""
    befores = [revision.before for revision in rows[1:]]
    return [
        from_row(Revision, revision, after=after)
        for revision, after in zip(rows, [*befores, snapshot(row)], strict=True)
    ]


class History(Repository):
    """The revisions of memories."""

    @reads
    def get(self, session: Session, user_id: str, memory_id: str) -> list[Revision]:
        row = memories.memory_row(session, user_id, memory_id)
        changes = session.execute(
            select(RevisionRow.__table__)
            .where(RevisionRow.user_id == user_id, RevisionRow.memory_id == row.id)
            .order_by(RevisionRow.version)
        ).all()
        return revisions(changes, row)

    @reads
    def touched(self, session: Session, what: Undoing) -> list[Touched]:
        """Return the selected memories by id."""
        found = _last_change(session, what) if what.memory_id is not None else _changes(session, what)
        _add_compressed(session, what.user_id, found)
        result: list[Touched] = []
        for some in chunks(sorted(found)):
            items = {item.id: item for item in memories.items(session, what.user_id, some)}
            found_rows = {row.id: row for row in session.execute(_memories(what.user_id, some)).all()}
            history: dict[str, list[Row[*Columns]]] = defaultdict(list)
            mine = (RevisionRow.user_id == what.user_id, RevisionRow.memory_id.in_(some))
            for revision in session.execute(select(RevisionRow.__table__).where(*mine).order_by(RevisionRow.version)):
                history[revision.memory_id].append(revision)
            result += [
                Touched(
                    memory=items[memory_id],
                    revisions=tuple(revisions(history[memory_id], found_rows[memory_id])),
                    selected=frozenset(found[memory_id]),
                )
                for memory_id in some
                if memory_id in items
            ]
        return result

    @reads
    def since(self, session: Session, user_id: str, versions: Mapping[str, int]) -> dict[str, list[Past]]:
        """Return the changes of memories after these versions."""
        found: dict[str, list[Past]] = {memory_id: [] for memory_id in versions}
        for some in chunks(list(versions)):
            statement = (
                select(
                    RevisionRow.memory_id,
                    RevisionRow.version,
                    RevisionRow.action,
                    RevisionRow.actor,
                    RevisionRow.before,
                )
                .where(RevisionRow.user_id == user_id, RevisionRow.memory_id.in_(some))
                .order_by(RevisionRow.version)
            )
            for memory_id, version, action, actor, before in session.execute(statement):
                if version > versions[memory_id]:
                    found[memory_id].append(Past(action=action, actor=actor, said=(before or {}).get("content")))
        return found
