"""Write the memories of a store to a file: JSON lines without loss, or Markdown for reading."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from pydantic import Field

from ..durable import flush
from ..errors import InvalidInput
from ..ids import new_id
from ..languages.words import normalise
from ..models import MemoryItem, Value, utc_now
from ..scope import Filter
from ..store.store import Store
from ..store.upkeep.export_records import EXPORT, VERSION, Line, MemoryRecord, MessageRecord

Progress = Callable[[str, int, int], None]  # step, done, total


def no_progress(step: str, done: int, total: int) -> None:
    """Ignore progress."""


def check_target(argument: str, path: Path, *, overwrite: bool) -> Path:
    """Return the path if a file may be written there."""
    path = path.expanduser()
    if path.is_dir():
        raise InvalidInput(argument, f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InvalidInput(argument, f"the folder {path.parent} does not exist")
    if path.exists() and not overwrite:
        raise InvalidInput(argument, f"{path} exists already: name another file, or pass overwrite=True")
    return path


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path, private to its owner, that replaces `path` at the end or is removed after an error."""
    part = path.with_name(f".{path.name}.{new_id()}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        yield part
        flush(part)
        part.replace(path)
        flush(path.parent)
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):  # the error above says what happened
            part.unlink(missing_ok=True)


@contextmanager
def open_new(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file for writing, gzipped if its name ends in .gz. Equal contents give equal bytes."""
    with replace_file(path) as part, part.open("wb") as file:
        if path.name.endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield cast(IO[bytes], packed)
        else:
            yield file


PAGE = 200
FRONT_MATTER = b"---\ngenerator: jiyi\n---\n"  # tells the import that the lines are complete statements
_NOT_IN_TAGS = re.compile(r"[^\w-]+")


class ExportReport(Value):
    """Result of an export."""

    path: str
    format: str
    records: dict[str, int] = Field(description="records by kind; in Markdown, memories by type")
    size_bytes: int


async def export_jsonl(store: Store, path: Path, user_id: str | None, progress: Progress) -> dict[str, int]:
    """Write all records of one user or of all; return their number by kind. Equal memories give equal bytes."""
    counts: Counter[str] = Counter()
    done = 0
    with open_new(path) as file:
        file.write(json.dumps({"kind": EXPORT, "version": VERSION, "user_id": user_id}).encode() + b"\n")
        async with aclosing(store.records.export(user_id)) as batches:  # releases the snapshot after an error too
            async for total, batch in batches:
                await asyncio.to_thread(file.writelines, map(to_line, batch))
                counts.update(record.kind for record in batch)
                done += sum(isinstance(record, (MemoryRecord, MessageRecord)) for record in batch)
                progress("exporting", done, total)
        file.write(json.dumps({"kind": "end", "records": counts.total()}).encode() + b"\n")
    return dict(counts)


def to_line(record: Line) -> bytes:
    """Encode a record with sorted fields, so that all databases give the same bytes."""
    values = record.model_dump(mode="json")
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"


async def export_markdown(store: Store, path: Path, user_id: str | None, progress: Progress) -> dict[str, int]:
    """Write current memories by user and type, without messages; return their number by type."""
    users = [user_id] if user_id is not None else await store.memories.users()
    counts: Counter[str] = Counter()
    with open_new(path) as file:
        file.write(FRONT_MATTER)
        for user in users:
            await _write_user(store, file, user, counts, progress)
    return dict(counts)


async def _write_user(store: Store, file: IO[bytes], user_id: str, counts: Counter[str], progress: Progress) -> None:
    types = dict((await store.statistics.stats("", user_id)).by_type)
    types.pop("message", None)
    total = sum(types.values())
    file.write(f"\n# {_one_line(user_id)}\n".encode())
    done = 0
    for memory_type in sorted(types):
        matching = Filter(user_id=user_id, memory_types=(memory_type,), now=utc_now())
        file.write(f"\n## {_one_line(memory_type)}\n\n".encode())
        cursor = None
        while True:
            page = await store.memories.page(matching, cursor=cursor, limit=PAGE)
            await asyncio.to_thread(file.writelines, [to_markdown(item).encode() for item in page.items])
            counts[memory_type] += len(page.items)
            done += len(page.items)
            progress("exporting", done, total)
            cursor = page.next_cursor
            if cursor is None:
                break


def to_markdown(item: MemoryItem) -> str:
    """Format as the Markdown reader expects it: `- [type] text #tag (day)`."""
    tags = "".join(f" #{tag}" for tag in dict.fromkeys(_NOT_IN_TAGS.sub("-", normalise(tag)) for tag in item.tags))
    return f"- [{_one_line(item.memory_type)}] {_one_line(item.content)}{tags} ({item.occurred_at:%Y-%m-%d})\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())
