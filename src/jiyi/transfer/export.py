"""A store as a file of JSON lines, and back. The same memories are the same bytes, on every database."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pydantic import ValidationError

from ..errors import InvalidInput
from ..store.contract import IndexEntry
from ..store.importing import Arriving
from ..store.records import EXPORT, LINE, VERSION, Line, MemoryRecord, MessageRecord
from ..write.index import KeywordRules, index_entry
from .atomic_file import written
from .chats.files import Source, failures, opened

if TYPE_CHECKING:
    from ..store.base import Store

Advance = Callable[[str, int, int], None]  # what is done, how much of it, of how much
AT_ONCE = 200  # records in one transaction
JOBS_AT_ONCE = 5  # each may have led to a thousand memories


async def export_lines(store: Store, path: Path, user_id: str | None, advance: Advance) -> dict[str, int]:
    """→ how many records of each kind there are"""
    counted: Counter[str] = Counter()
    done = 0
    header = {"kind": EXPORT, "version": VERSION, "user_id": user_id}
    with written(path) as file:
        file.write(json.dumps(header).encode() + b"\n")
        async with aclosing(store.export(user_id)) as batches:  # after an error too, the snapshot is let go at once
            async for whole, some in batches:
                await asyncio.to_thread(_write, file, some)
                counted.update(record.kind for record in some)
                done += sum(isinstance(record, (MemoryRecord, MessageRecord)) for record in some)
                advance("exporting", done, whole)
        file.write(json.dumps({"kind": "end", "records": counted.total()}).encode() + b"\n")
    return dict(counted)


def _write(file: IO[bytes], some: Sequence[Line]) -> None:
    file.writelines(line_of(record) for record in some)


def line_of(record: Line) -> bytes:
    """Every field in the order of its name, whatever the order in which a database gives them back."""
    values = record.model_dump(mode="json")
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"


# -- and back -------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class TakenIn:
    read: Counter[str] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


async def import_lines(store: Store, path: Path, user_id: str | None, rules: KeywordRules, advance: Advance) -> TakenIn:
    """All is read and checked before anything is written. What is known already is not written again, so this can be
    stopped and goes on when it is called again. With a user, only what is that user's is taken in."""
    whole = await asyncio.to_thread(_check, path, advance)
    taken = TakenIn()
    arriving: Arriving | None = None
    done = 0
    async for some in _in_threads(_batches(path, user_id)):
        if arriving is None or arriving.user_id != some[0].user_id:
            arriving = Arriving(user_id=some[0].user_id)
        before = arriving.new
        indexed = await asyncio.to_thread(_indexed, some, rules)
        await store.take_in(arriving, some, indexed)
        taken.read[some[0].kind] += len(some)
        taken.new[some[0].kind] += arriving.new - before
        taken.left_out.update(arriving.left_out)
        arriving.left_out.clear()
        done += len(some)
        advance("importing", done, whole)
    return taken


def _check(path: Path, advance: Advance) -> int:
    """Read all of it once. → how many records there are"""
    count = 0
    for _ in read_lines(path):
        count += 1
        if count % 1000 == 0:
            advance("checking", count, 0)
    return count


def _batches(path: Path, user_id: str | None) -> Iterator[list[Line]]:
    """Records of one user and one kind, some at a time."""
    some: list[Line] = []
    for record in read_lines(path):
        if user_id is not None and record.user_id != user_id:
            continue
        most = JOBS_AT_ONCE if record.kind == "job" else AT_ONCE
        if some and (len(some) >= most or (record.kind, record.user_id) != (some[0].kind, some[0].user_id)):
            yield some
            some = []
        some.append(record)
    if some:
        yield some


async def _in_threads(values: Iterator[list[Line]]) -> AsyncIterator[list[Line]]:
    while (value := await asyncio.to_thread(next, values, None)) is not None:
        yield value


def _indexed(some: Sequence[Line], rules: KeywordRules) -> list[IndexEntry]:
    """What memories are found by, worked out as it is today, with the keywords that they had."""
    return [
        replace(
            index_entry(record.content, record.summary, record.tags, record.data, rules),
            keywords=tuple(sorted(_keywords(record), key=lambda one: (-one[1], one[0]))),
        )
        for record in some
        if isinstance(record, MemoryRecord)
    ]


def _keywords(record: MemoryRecord) -> Iterable[tuple[str, float, str]]:
    return {one.keyword: (one.keyword, one.weight, one.source) for one in record.keywords}.values()


def read_lines(path: Path) -> Iterator[Line]:
    """The records of an export, each checked. An error names the line."""
    name = str(path)
    with failures(name), opened(Source(path=path)) as stream, _readable(name):
        lines = enumerate(stream, 1)
        _header(name, next(lines, (0, ""))[1])
        count, end = 0, None
        for number, text in lines:
            place = f"{name}, line {number:,}"
            value = _object(place, text)
            if end is not None:
                raise InvalidInput(place, "follows after the line that says where the export ends")
            if value.get("kind") == "end":
                end = value.get("records")
                continue
            count += 1
            yield _record(place, value)
        if end is None:
            raise InvalidInput(name, "is cut short: its last line, which says that it is whole, is missing")
        if end != count:
            raise InvalidInput(name, f"has {count:,} records, and its last line says {end}: it was cut or edited")


def is_export(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == EXPORT


def _header(name: str, text: str) -> None:
    header = _object(f"{name}, line 1", text)
    if not is_export(header):
        raise InvalidInput(name, "is no export of Jiyi")
    if header.get("version") != VERSION:
        raise InvalidInput(name, f"is an export of version {header.get('version')}; this Jiyi knows {VERSION}: upgrade")


def _object(place: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(place, f"is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidInput(place, "is no JSON object")
    return value


def _record(place: str, value: dict[str, Any]) -> Line:
    try:
        return LINE.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        said = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(place, f"{where}: {said}" if where else said) from None


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidInput(name, f"is not UTF-8: {error.reason}") from None
