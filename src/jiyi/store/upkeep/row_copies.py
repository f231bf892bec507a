"""Copy all rows of a store into another one, and compare both. Rows are copied table by table in the order of their
primary keys, so an interrupted copy continues after the last row that exists."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Table, and_, delete, func, insert, not_, select, tuple_
from sqlalchemy.orm import Session

from ...errors import InvalidInput, StoreError
from ...models import Migration, to_micros, utc_now
from ..database import Database
from ..schema.columns import METADATA
from ..schema.tables import SHARED, FileRow, PackedIndexRow
from ..secrets import SecretRow
from ..sqlite import SqliteDatabase
from ..write_set import Advance

AT_ONCE = 500  # rows in RAM
MARK = "jiyi migrate-store"  # path of a file row that marks an unfinished copy


async def migrate(source: Database, target: Database, advance: Advance) -> Migration:
    """Copy every row, compare both stores, then mark the copy as finished."""
    began = await _claim(source, target)
    counts = {table.name: await _count(source, table) for table in TABLES}
    whole = sum(counts.values())
    done = copied = 0
    for table in TABLES:
        there = 0 if began else await _count(target, table)
        advance(f"copying {table.name}", done + there, whole)
        last = None if began else await _last(target, table)
        async for rows in _chunks(source, table, last):
            users = sorted({row["user_id"] for row in rows}) if "user_id" in table.columns else []
            await target.write(users, partial(_insert, table=table, rows=rows))
            there += len(rows)
            copied += len(rows)
            advance(f"copying {table.name}", done + there, whole)
        done += counts[table.name]
    equal = await _compare(source, target, advance, whole)
    await target.finish_copy()
    await target.write([SHARED], lambda session: session.execute(delete(FileRow).where(_is_mark())))
    return Migration(
        rows={name: count for name, (count, _) in equal.items()},
        checksums={name: checksum for name, (_, checksum) in equal.items()},
        copied=copied,
    )


async def _claim(source: Database, target: Database) -> bool:
    """Mark the target as an unfinished copy of this source; return False if it was marked before."""
    origin = sha256((await source.info()).url.encode()).hexdigest()
    if await _mark(source) is not None:
        raise InvalidInput("source", "is itself a copy that is not finished: finish that one first")
    mark = await _mark(target)
    if mark is not None and mark != origin:
        raise InvalidInput("target", "is the unfinished copy of another store: finish that one, or name an empty one")
    if mark is not None:
        return False
    for table in TABLES:
        if await _count(target, table):
            raise InvalidInput("target", f"is not empty, it has rows in {table.name}: name a new file or database")
    mark_row = {"user_id": SHARED, "path": MARK, "checksum": origin, "synced_at": utc_now()}
    await target.write([SHARED], partial(_insert, table=FileRow.__table__, rows=[mark_row]))
    return True


def _insert(session: Session, table: Table, rows: list[dict[str, Any]]) -> None:
    session.execute(insert(table), rows)


async def _mark(store: Database) -> str | None:
    return await store.read(None, lambda session: session.scalar(select(FileRow.checksum).where(_is_mark())))


def _is_mark() -> ColumnElement[bool]:
    return and_(FileRow.user_id == SHARED, FileRow.path == MARK)


# Parents first. Packed indexes are made anew where they are needed, and each store has its own secrets.
NOT_COPIED = {PackedIndexRow.__tablename__, SecretRow.__tablename__}
TABLES: Sequence[Table] = [table for table in METADATA.sorted_tables if table.name not in NOT_COPIED]


def _rows_of(table: Table) -> ColumnElement[bool] | None:
    return not_(_is_mark()) if table.name == FileRow.__tablename__ else None


async def _count(store: Database, table: Table) -> int:
    statement = select(func.count()).select_from(table)
    kept = _rows_of(table)
    counting = statement if kept is None else statement.where(kept)
    return await store.read(None, lambda session: session.scalar(counting)) or 0


async def _last(store: Database, table: Table) -> tuple[Any, ...] | None:
    """Return the primary key of the last row that was copied."""
    key = table.primary_key.columns
    statement = select(*key).order_by(*(column.desc() for column in key)).limit(1)
    kept = _rows_of(table)
    newest = statement if kept is None else statement.where(kept)
    row = await store.read(None, lambda session: session.execute(newest).first())
    return None if row is None else tuple(row)


async def _chunks(store: Database, table: Table, last: tuple[Any, ...] | None) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield the rows after a primary key in chunks. Each is read on its own, because a large copy may take hours."""
    while rows := await store.read(None, partial(_chunk, table=table, last=last)):
        yield rows
        last = _key_of(table, rows[-1])


def _chunk(session: Session, table: Table, last: tuple[Any, ...] | None) -> list[dict[str, Any]]:
    key = list(table.primary_key.columns)
    statement = select(table).order_by(*key).limit(AT_ONCE)
    kept = _rows_of(table)
    if kept is not None:
        statement = statement.where(kept)
    if last is not None:
        statement = statement.where(tuple_(*key) > tuple_(*last) if len(key) > 1 else key[0] > last[0])
    return [dict(zip(table.columns.keys(), row, strict=True)) for row in session.execute(statement)]


def _key_of(table: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column.name] for column in table.primary_key.columns)


def _all_chunks(session: Session) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
    for table in TABLES:
        last = None
        while rows := _chunk(session, table, last):
            yield table, rows
            last = _key_of(table, rows[-1])


async def copy(source: Database, target: Database, advance: Advance) -> dict[str, int]:
    """Copy a snapshot of all rows into an empty store that nobody else uses; return the number by table."""
    whole = sum([await _count(source, table) for table in TABLES])
    counted = {table.name: 0 for table in TABLES}
    async with aclosing(source.pages(None, _all_chunks)) as pages:
        async for table, rows in pages:
            await target.write([SHARED], partial(_insert, table=table, rows=rows))
            counted[table.name] += len(rows)
            done = sum(counted.values())
            advance(f"copying {table.name}", done, max(done, whole))
    await target.finish_copy()
    return counted


async def replace(source: SqliteDatabase, target: Database, advance: Advance) -> dict[str, int]:
    """Replace the rows of a store by those of a file in one transaction; return the number by table."""
    counts = {table.name: await _count(source, table) for table in TABLES}

    def work(session: Session) -> None:
        for table in (PackedIndexRow.__table__, *reversed(TABLES)):
            session.execute(delete(table))
        done = 0
        with source.session() as reading:
            for table, rows in _all_chunks(reading):
                _insert(session, table, rows)
                done += len(rows)
                advance(f"restoring {table.name}", done, sum(counts.values()))

    await target.write([SHARED], work)
    await target.finish_copy()
    return counts


async def is_empty(store: Database) -> bool:
    return not any([await _count(store, table) for table in TABLES])


async def _compare(source: Database, target: Database, advance: Advance, whole: int) -> dict[str, tuple[int, str]]:
    """Return count and checksum of each table, or raise an error that names the tables that differ."""
    equal: dict[str, tuple[int, str]] = {}
    differing = []
    done = 0
    for table in TABLES:
        theirs = await digest(source, table)
        equal[table.name], ours = theirs, await digest(target, table)
        if theirs != ours:
            differing.append(f"{table.name} ({theirs[0]:,} rows there, {ours[0]:,} in the copy)")
        done += theirs[0]
        advance("comparing", min(done, whole), whole)
    if differing:
        raise StoreError(
            f"the copy differs from its source in {', '.join(differing)}: was something written meanwhile?"
            " Stop whoever writes, and copy into a new file or database"
        )
    return equal


async def digest(store: Database, table: Table) -> tuple[int, str]:
    """Return the number of rows of a table, and a checksum over all of them that does not depend on their order."""
    count = total = 0
    async for rows in _chunks(store, table, None):
        for row in rows:
            total += int.from_bytes(sha256(canonical(row).encode()).digest())
        count += len(rows)
    return count, f"{total % 2**256:064x}"


def canonical(row: Mapping[str, Any]) -> str:
    """Return a row as text that is the same on every database."""
    return json.dumps(row, default=_plain, sort_keys=True, ensure_ascii=True)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_micros(value)
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.tobytes().hex()]
    raise TypeError(f"a row holds {type(value).__name__}")
