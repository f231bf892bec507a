"""What is measured on: sets of stores, each one user's messages and the questions about them, read from files."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from ..errors import InvalidInput

SUFFIXES = (".json", ".json.gz")
KNOWN = "is none of LoCoMo's, LongMemEval's and the {\"stores\": […]} shape (docs/evaluation.md)"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchMessage:
    id: str
    session: str | None
    speaker: str | None
    role: str
    text: str
    sent_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchQuery:
    """A question; `gold` are the messages that hold the evidence, none if it cannot be answered."""

    id: str
    text: str
    gold: tuple[str, ...]
    category: str
    asked_at: datetime | None
    apart: bool  # not counted in the figures over all categories


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchStore:
    """One user's memory."""

    id: str
    messages: tuple[BenchMessage, ...]
    queries: tuple[BenchQuery, ...]

    @property
    def last_at(self) -> datetime | None:
        """When its last message was sent: the moment of a question that has none of its own."""
        return max((message.sent_at for message in self.messages if message.sent_at is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSet:
    """What one file holds."""

    name: str
    digest: str
    stores: tuple[BenchStore, ...]
    left_out: int  # questions whose evidence the file does not name


class UnknownShape(InvalidInput):
    """The file is JSON, but no benchmark that is known here."""


def load(paths: Sequence[Path], *, limit_stores: int | None = None) -> tuple[tuple[BenchSet, ...], tuple[str, ...]]:
    """The sets in these files and folders, and notes on what was passed over.

    A file that is named must be right. In a folder, JSON of another shape is passed over.
    """
    sets: list[BenchSet] = []
    notes: list[str] = []
    for path in paths:
        if not path.is_dir():
            sets.append(read_set(path))
            continue
        inside = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES) and file.is_file())
        before = len(sets)
        for file in inside:
            try:
                sets.append(read_set(file))
            except UnknownShape as error:
                notes.append(f"passed over: {error}")
        if len(sets) == before:
            raise InvalidInput("--data", f"{path} holds no benchmark: no .json or .json.gz of a known shape")
    if limit_stores is not None:
        sets = [replace(one, stores=one.stores[:limit_stores]) for one in sets]
    _check_names(sets)
    return tuple(sets), tuple(notes)


def read_set(path: Path) -> BenchSet:
    """One file, its shape recognised by its content."""
    from . import shapes

    data = _bytes(path)
    found = _json(path, data)
    if isinstance(found, dict) and isinstance(found.get("stores"), list):
        stores, left_out = shapes.own(path.name, found)
    elif isinstance(found, list) and found and isinstance(found[0], dict) and {"conversation", "qa"} <= found[0].keys():
        stores, left_out = shapes.locomo(path.name, found)
    elif isinstance(found, list) and found and isinstance(found[0], dict) and "haystack_sessions" in found[0]:
        stores, left_out = shapes.longmemeval(path.name, found)
    else:
        raise UnknownShape(str(path), KNOWN)
    if not any(store.queries for store in stores):
        raise InvalidInput(str(path), "asks no question that has evidence")
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return BenchSet(name=name, digest=sha256(data).hexdigest(), stores=stores, left_out=left_out)


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(str(path), f"is damaged: {error}") from error
    except OSError as error:
        raise InvalidInput("--data", f"{path} cannot be read: {error.strerror}") from error


def _json(path: Path, data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"is not UTF-8 (byte {error.start:,})") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(str(path), f"is not JSON: {error}") from None


def _check_names(sets: Sequence[BenchSet]) -> None:
    """Rankings name a question by its id alone, and stores are told apart by the set's and their own name."""
    _unique("--data", "two files are called", (one.name for one in sets))
    asked: dict[str, str] = {}
    for one in sets:
        _unique(one.name, "two stores have the id", (store.id for store in one.stores))
        _unique(one.name, "two questions have the id", (query.id for store in one.stores for query in store.queries))
        for store in one.stores:
            _unique(f"{one.name}, store {store.id}", "two messages have the id", (said.id for said in store.messages))
            for query in store.queries:
                if query.id in asked:
                    both = f"{asked[query.id]} and {one.name} both ask question {query.id!r}"
                    raise InvalidInput("--data", f"{both}: run them one by one, each with an --out of its own")
                asked[query.id] = one.name


def _unique(argument: str, problem: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(argument, f"{problem} {name!r}")
        seen.add(name)
