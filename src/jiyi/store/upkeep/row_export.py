"""Everything a store holds as records, out of and into the database. The order is the same on every database: by user,
kind and id. An import skips known records, so it can be repeated or resumed."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy import ColumnElement, RowMapping, and_, func, insert, select, tuple_
from sqlalchemy.orm import Session

from ..database import Inserts, Repository, chunks, writes
from ..repositories import link_rows
from ..repositories.change_feed import check_epoch, tell
from ..repositories.index_entries import insert_index
from ..schema.columns import Base
from ..schema.tables import (
    SHARED,
    SOURCES,
    EmbeddingRow,
    JobMemoryRow,
    JobRow,
    KeywordRow,
    MemoryRow,
    MemorySourceRow,
    MessageRow,
    RecallRow,
    RelationRow,
    RevisionRow,
    SynonymRow,
    UnitMessageRow,
    UnitRow,
)
from ..write_set import IndexEntry
from . import export_records as r

AT_ONCE = 200
JOBS_AT_ONCE = 5  # each may have led to a thousand memories
USERS_AT_ONCE = 1000
OWNING = (MemoryRow, MessageRow, JobRow, RecallRow, SynonymRow)  # every user has rows in one of them

Row = RowMapping


def size(session: Session, user_id: str | None) -> int:
    """Count memories and messages."""
    whole = 0
    for table in (MemoryRow, MessageRow):
        count = select(func.count()).select_from(table)
        whole += session.scalar(count if user_id is None else count.where(table.user_id == user_id)) or 0
    return whole


def lines(session: Session, user_id: str | None) -> Iterator[list[r.Line]]:
    """Yield everything of one user, or of all users with what they share."""
    if user_id is not None:
        for some in _of_user(session, user_id):
            yield some
        return
    for some in _synonyms(session, SHARED):
        yield some
    last = SHARED
    while users := _users(session, last):
        for each in users:
            for some in _of_user(session, each):
                yield some
        last = users[-1]


def _users(session: Session, after: str) -> list[str]:
    found: set[str] = set()
    for table in OWNING:
        own = select(table.user_id).where(table.user_id > after).distinct().order_by(table.user_id)
        found.update(session.scalars(own.limit(USERS_AT_ONCE)))
    return sorted(found)[:USERS_AT_ONCE]


def _of_user(session: Session, user_id: str) -> Iterator[list[r.Line]]:
    yield from _synonyms(session, user_id)
    for rows in _pages(session, UnitRow, user_id):
        yield [r.UnitRecord(**row) for row in rows]
    for rows in _pages(session, MessageRow, user_id):
        units = {row["message_id"]: row["unit_id"] for row in _beside(session, UnitMessageRow, rows, "message_id")}
        yield [r.MessageRecord(**row, unit_id=units.get(row["id"])) for row in rows]
    for rows in _pages(session, MemoryRow, user_id):
        yield _memories(session, rows)
    for rows in _pages(session, RelationRow, user_id):
        yield [r.RelationRecord(**row) for row in rows]
    for rows in _pages(session, RecallRow, user_id):
        yield [r.RecallRecord(**row) for row in rows]
    for rows in _pages(session, JobRow, user_id, JOBS_AT_ONCE):
        yield _jobs(session, rows)


def _synonyms(session: Session, user_id: str) -> Iterator[list[r.Line]]:
    for rows in _pages(session, SynonymRow, user_id):
        yield [r.SynonymRecord(**row) for row in rows]


def _memories(session: Session, rows: Sequence[Row]) -> list[r.Line]:
    keywords, sources, vectors, revisions = [
        _by_memory(_beside(session, table, rows, "memory_id"))
        for table in (KeywordRow, MemorySourceRow, EmbeddingRow, RevisionRow)
    ]
    return [
        r.MemoryRecord(
            **{name: value for name, value in row.items() if name != "near_hash"},
            keywords=[r.KeywordRecord(**_but(one)) for one in keywords[row["id"]]],
            sources=[r.SourceRecord(**_but(one)) for one in sources[row["id"]]],
            vectors=[
                r.VectorRecord(part=one["part"], model=one["model"], vector=r.encoded(one["vector"]))
                for one in vectors[row["id"]]
            ],
            revisions=[r.RevisionRecord(**_but(one)) for one in revisions[row["id"]]],
        )
        for row in rows
    ]


def _jobs(session: Session, rows: Sequence[Row]) -> list[r.Line]:
    led_to: defaultdict[str, list[str]] = defaultdict(list)
    for one in _beside(session, JobMemoryRow, rows, "job_id"):
        led_to[one["job_id"]].append(one["memory_id"])
    left_out = ("kind", "leased_by", "leased_until")
    return [
        r.JobRecord(
            **{name: value for name, value in row.items() if name not in left_out},
            job=row["kind"],
            memory_ids=led_to[row["id"]],
        )
        for row in rows
    ]


def _by_memory(rows: Sequence[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["memory_id"]].append(row)
    return found


def _but(row: Row) -> dict[str, Any]:
    """Return a row without the columns of the record around it."""
    return {name: value for name, value in row.items() if name not in ("user_id", "memory_id")}


def _pages(session: Session, table: type[Base], user_id: str, at_once: int = AT_ONCE) -> Iterator[Sequence[Row]]:
    """Yield a user's rows of a table by key."""
    own = table.__table__
    key = [column for column in own.primary_key.columns if column.name != "user_id"]
    statement = select(own).where(own.columns["user_id"] == user_id).order_by(*key).limit(at_once)
    page = statement
    while rows := [row._mapping for row in session.execute(page).all()]:
        yield rows
        if len(rows) < at_once:
            return
        last = [rows[-1][column.name] for column in key]
        page = statement.where(tuple_(*key) > tuple_(*last) if len(key) > 1 else key[0] > last[0])


def _beside(session: Session, table: type[Base], rows: Sequence[Row], name: str) -> Sequence[Row]:
    """Return the rows that belong to a page of others, which is a range of ids of one user."""
    own = table.__table__
    statement = select(own).where(
        own.columns["user_id"] == rows[0]["user_id"], own.columns[name].between(rows[0]["id"], rows[-1]["id"])
    )
    in_order = statement.order_by(*own.primary_key.columns)
    return [row._mapping for row in session.execute(in_order).all()]


_NESTED = {"kind", "keywords", "sources", "vectors", "revisions", "unit_id", "memory_ids", "job"}


@dataclass(slots=True, kw_only=True)
class Arriving:
    """The state of an import, for one user."""

    user_id: str
    epoch: str  # erasure epoch of the user when the import began
    renamed: dict[str, str] = field(default_factory=dict)  # ids in this store by ids of the export
    new: int = 0
    left_out: dict[str, int] = field(default_factory=dict)  # number by reason

    def leave_out(self, why: str, times: int = 1) -> None:
        if times:
            self.left_out[why] = self.left_out.get(why, 0) + times

    def name(self, name: str) -> str:
        return self.renamed.get(name, name)


def take_in(session: Session, arriving: Arriving, some: Sequence[r.Line], indexed: Sequence[IndexEntry]) -> None:
    """Write records of one kind of one user, with the index entries of memories."""
    check_epoch(session, arriving.user_id, arriving.epoch)
    kind, records = some[0].kind, cast(Any, some)
    match kind:
        case "memory":
            _import_memories(session, arriving, list(zip(records, indexed, strict=True)))
        case "message":
            _import_messages(session, arriving, records)
        case "relation":
            _import_relations(session, arriving, records)
        case "job":
            _import_jobs(session, arriving, records)
        case "recall":
            new = _unknown(session, arriving, RecallRow, records)
            values = [{**_plain(one), "memory_ids": [arriving.name(name) for name in one.memory_ids]} for one in new]
            _insert(session, arriving, RecallRow, values)
        case "unit":
            units = _unknown(session, arriving, UnitRow, records)
            _insert(session, arriving, UnitRow, [_plain(one) for one in units])
        case "synonym":
            _import_synonyms(session, arriving, records)


def _import_synonyms(session: Session, arriving: Arriving, some: Sequence[r.SynonymRecord]) -> None:
    mine = and_(SynonymRow.user_id == arriving.user_id, SynonymRow.keyword.in_({one.keyword for one in some}))
    known = {tuple(row) for row in session.execute(select(SynonymRow.keyword, SynonymRow.synonym).where(mine)).all()}
    new = {(one.keyword, one.synonym): one for one in some if (one.keyword, one.synonym) not in known}
    _insert(session, arriving, SynonymRow, [_plain(one) for one in new.values()])
    if new:
        link_rows.tell(session, arriving.user_id)


def _import_messages(session: Session, arriving: Arriving, some: Sequence[r.MessageRecord]) -> None:
    """Add messages; one that was delivered here too has another id and is the same."""
    fresh = _unknown(session, arriving, MessageRow, some)
    hashes = [one.dedupe_hash for one in fresh if one.dedupe_hash is not None]
    twins = _ids_by(session, arriving, MessageRow, MessageRow.dedupe_hash, hashes)
    new: dict[str | None, r.MessageRecord] = {}
    for one in fresh:
        twin = twins.get(one.dedupe_hash or "") or (new[one.dedupe_hash].id if one.dedupe_hash in new else None)
        if one.dedupe_hash is not None and twin is not None:
            arriving.renamed[one.id] = twin
        else:
            new[one.dedupe_hash or one.id] = one
    _insert(session, arriving, MessageRow, [_plain(one) for one in new.values()])
    units = _existing(session, arriving, UnitRow, {one.unit_id for one in new.values() if one.unit_id})
    members = [
        {"user_id": one.user_id, "message_id": one.id, "unit_id": one.unit_id}
        for one in new.values()
        if one.unit_id in units
    ]
    inserts = Inserts()
    inserts.add(UnitMessageRow, members)
    inserts.tell(arriving.user_id, dict.fromkeys(one["unit_id"] for one in members), SOURCES)
    inserts.run(session)


def _import_memories(session: Session, arriving: Arriving, some: Sequence[tuple[r.MemoryRecord, IndexEntry]]) -> None:
    """Add memories; a current one with the text of a stored one is that one."""
    unknown = {one.id for one in _unknown(session, arriving, MemoryRow, [record for record, _ in some])}
    fresh = {record.id: (record, index) for record, index in some if record.id in unknown}
    hashes = [record.dedupe_hash for record, _ in fresh.values() if record.dedupe_hash and _is_current(record)]
    here = and_(MemoryRow.status == "active", MemoryRow.valid_to.is_(None))
    twins = _ids_by(session, arriving, MemoryRow, MemoryRow.dedupe_hash, hashes, here)
    keys = _ids_by(
        session, arriving, MemoryRow, MemoryRow.memory_key, [record.memory_key for record, _ in fresh.values()]
    )
    new: list[tuple[r.MemoryRecord, IndexEntry]] = []
    for record, index in fresh.values():
        said = record.dedupe_hash if _is_current(record) else None
        if said is not None and said in twins:
            arriving.renamed[record.id] = twins[said]
            continue
        if said is not None:
            twins[said] = record.id
        if record.memory_key in keys:
            arriving.leave_out("keys that another memory has here")
            record = record.model_copy(update={"memory_key": record.id})  # noqa: PLW2901
        keys[record.memory_key] = record.id
        new.append((record, index))
    _insert(session, arriving, MemoryRow, [_memory_values(record, index) for record, index in new])
    insert_index(session, arriving.user_id, {one.id: index for one, index in new})
    _parts(session, arriving, [record for record, _ in new])
    tell(session, arriving.user_id, [record.id for record, _ in new], "add")


def _is_current(record: r.MemoryRecord) -> bool:
    return record.status == "active" and record.valid_to is None


def _memory_values(record: r.MemoryRecord, index: IndexEntry) -> dict[str, Any]:
    return {**_plain(record), "near_hash": index.near_hash}


def _parts(session: Session, arriving: Arriving, new: Sequence[r.MemoryRecord]) -> None:
    """Add sources, vectors and revisions of memories."""
    key = {one.id: {"user_id": one.user_id, "memory_id": one.id} for one in new}
    named = {arriving.name(source.message_id) for one in new for source in one.sources}
    messages = _existing(session, arriving, MessageRow, named)
    sources = {
        (one.id, message_id): {**key[one.id], **source.model_dump(), "message_id": message_id}
        for one in new
        for source in one.sources
        if (message_id := arriving.name(source.message_id)) in messages
    }
    arriving.leave_out("sources whose message is missing", sum(len(one.sources) for one in new) - len(sources))
    vectors = [
        {**key[one.id], "part": each.part, "model": each.model, "dimension": len(vector), "vector": vector}
        for one in new
        for each in one.vectors
        for vector in [r.unit_vector(each.vector)]
    ]
    revisions = [{**key[one.id], **each.model_dump()} for one in new for each in one.revisions]
    inserts = Inserts()
    inserts.add(MemorySourceRow, list(sources.values()))
    inserts.add(EmbeddingRow, vectors)
    inserts.add(RevisionRow, revisions)
    inserts.run(session)


def _import_relations(session: Session, arriving: Arriving, some: Sequence[r.RelationRecord]) -> None:
    new = {
        (one.memory_id, one.target_id, one.relation_type): one
        for each in some
        for one in [
            each.model_copy(
                update={"memory_id": arriving.name(each.memory_id), "target_id": arriving.name(each.target_id)}
            )
        ]
    }
    memories = _existing(session, arriving, MemoryRow, {name for key in new for name in key[:2]})
    dangling = [key for key in new if not memories.issuperset(key[:2])]
    arriving.leave_out("relations whose memory is missing", len(dangling))
    known = select(RelationRow.memory_id, RelationRow.target_id, RelationRow.relation_type).where(
        RelationRow.user_id == arriving.user_id, RelationRow.memory_id.in_({key[0] for key in new})
    )
    there = {*dangling, *(tuple(row) for row in session.execute(known).all())}
    _insert(session, arriving, RelationRow, [_plain(one) for key, one in new.items() if key not in there])


def _import_jobs(session: Session, arriving: Arriving, some: Sequence[r.JobRecord]) -> None:
    fresh = _unknown(session, arriving, JobRow, some)
    keys = [one.idempotency_key for one in fresh if one.idempotency_key is not None]
    taken = _ids_by(session, arriving, JobRow, JobRow.idempotency_key, keys)
    new = [one for one in fresh if one.idempotency_key is None or one.idempotency_key not in taken]
    _insert(session, arriving, JobRow, [{**_plain(one), "kind": one.job} for one in new])
    named = {arriving.name(name) for one in new for name in one.memory_ids}
    memories = _existing(session, arriving, MemoryRow, named)
    led_to = [
        {"user_id": one.user_id, "job_id": one.id, "position": position, "memory_id": memory_id}
        for one in new
        for position, memory_id in enumerate(dict.fromkeys(map(arriving.name, one.memory_ids)))
        if memory_id in memories
    ]
    inserts = Inserts()
    inserts.add(JobMemoryRow, led_to)
    inserts.run(session)


def _plain(record: r.Record) -> dict[str, Any]:
    return {name: value for name, value in record if name not in _NESTED}


def _insert(session: Session, arriving: Arriving, table: type[Base], values: list[dict[str, Any]]) -> None:
    if values:
        session.execute(insert(table.__table__), values)
    arriving.new += len(values)


def _unknown(session: Session, arriving: Arriving, table: Any, some: Sequence[r.R]) -> list[r.R]:
    """Return the records whose id is not taken, each once."""
    named = {record.id: record for record in some}  # type: ignore[attr-defined]
    known = _existing(session, arriving, table, named.keys())
    return [record for name, record in named.items() if name not in known]


def _existing(session: Session, arriving: Arriving, table: Any, ids: Collection[str]) -> set[str]:
    return set((_ids_by(session, arriving, table, table.id, sorted(ids))).values())


def _ids_by(
    session: Session,
    arriving: Arriving,
    table: Any,
    column: Any,
    values: Sequence[str],
    where: ColumnElement[bool] | None = None,
) -> dict[str, str]:
    found: dict[str, str] = {}
    for some in chunks(values):
        statement = select(column, table.id).where(table.user_id == arriving.user_id, column.in_(some))
        rows_found = session.execute(statement if where is None else statement.where(where)).all()
        found.update((value, row_id) for value, row_id in rows_found)
    return found


class Records(Repository):
    """Export and import of all rows as records."""

    async def export(self, user_id: str | None) -> AsyncGenerator[tuple[int, list[r.Line]], None]:
        """Yield all records of one user, or of everybody, from one snapshot, each time with the total number of
        memories and messages."""

        def pages(session: Session) -> Iterator[tuple[int, list[r.Line]]]:
            whole = size(session, user_id)
            for some in lines(session, user_id):
                yield whole, some

        async with aclosing(self._database.pages(user_id, pages)) as found:
            async for page in found:
                yield page

    @writes
    def add(self, session: Session, arriving: Arriving, some: Sequence[r.Line], indexed: Sequence[IndexEntry]) -> None:
        """Write records of one kind of one user, those that are not known."""
        take_in(session, arriving, some, indexed)
