"""Retrieval benchmark files: stores of messages and the questions about them.

Three formats are recognised by their content: `{"stores": [...]}`, LoCoMo and LongMemEval.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from jiyi import validation
from jiyi.errors import InvalidInput
from jiyi.transfer.records import ForeignModel, ForeignName, ForeignTime, Turn, validate_as

from .readers import Haystack, LocomoSample, locomo_turns, longmemeval_turns

SUFFIXES = (".json", ".json.gz")
UNANSWERABLE = "unanswerable"  # category of questions without evidence
UNKNOWN = "is not in LoCoMo's, LongMemEval's or the {\"stores\": […]} format (docs/internals/evaluation.md)"


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
    """A question; `gold` are the messages that hold the evidence, empty if it cannot be answered."""

    id: str
    text: str
    gold: tuple[str, ...]
    category: str
    asked_at: datetime | None
    separate: bool  # excluded from the figures over all categories


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchStore:
    """One user's messages and the questions about them."""

    id: str
    messages: tuple[BenchMessage, ...]
    queries: tuple[BenchQuery, ...]

    @property
    def last_at(self) -> datetime | None:
        """Time of the last message: the default time of a question."""
        return max((message.sent_at for message in self.messages if message.sent_at is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSet:
    """The content of one file."""

    name: str
    digest: str
    stores: tuple[BenchStore, ...]
    skipped: int  # questions without named evidence


class UnknownFormat(InvalidInput):
    """The file is JSON, but not a known benchmark."""


def load(paths: Sequence[Path], *, limit_stores: int | None = None) -> tuple[tuple[BenchSet, ...], tuple[str, ...]]:
    """Read files and folders; return the sets and notes on skipped files.

    A file given by name must be valid. In a folder, JSON in another format is skipped.
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
            except UnknownFormat as error:
                notes.append(f"skipped: {error}")
        if len(sets) == before:
            raise InvalidInput("--data", f"{path} contains no benchmark: no .json or .json.gz in a known format")
    if limit_stores is not None:
        sets = [replace(one, stores=one.stores[:limit_stores]) for one in sets]
    _check_names(sets)
    return tuple(sets), tuple(notes)


def read_set(path: Path) -> BenchSet:
    """Read one file, recognising its format by its content."""
    data = _read_bytes(path)
    found = _parse_json(path, data)
    if isinstance(found, dict) and isinstance(found.get("stores"), list):
        stores, skipped = _stores(path.name, found)
    elif isinstance(found, list) and found and isinstance(found[0], dict) and {"conversation", "qa"} <= found[0].keys():
        stores, skipped = _locomo(path.name, found)
    elif isinstance(found, list) and found and isinstance(found[0], dict) and "haystack_sessions" in found[0]:
        stores, skipped = _longmemeval(path.name, found)
    else:
        raise UnknownFormat(str(path), UNKNOWN)
    if not any(store.queries for store in stores):
        raise InvalidInput(str(path), "contains no question with evidence")
    name = path.name.removesuffix(".gz").removesuffix(".json")
    return BenchSet(name=name, digest=sha256(data).hexdigest(), stores=stores, skipped=skipped)


def _read_bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(str(path), f"is damaged: {error}") from error
    except OSError as error:
        raise InvalidInput("--data", f"{path} cannot be read: {error.strerror}") from error


def _parse_json(path: Path, data: bytes) -> object:
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"is not UTF-8 (byte {error.start:,})") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(str(path), f"is not JSON: {error}") from None


def _check_names(sets: Sequence[BenchSet]) -> None:
    """Rankings identify a question by its id alone, and stores by the set's name and their own."""
    _unique("--data", "two files are called", (one.name for one in sets))
    asked: dict[str, str] = {}
    for one in sets:
        _unique(one.name, "two stores have the id", (store.id for store in one.stores))
        _unique(one.name, "two questions have the id", (query.id for store in one.stores for query in store.queries))
        for store in one.stores:
            ids = (message.id for message in store.messages)
            _unique(f"{one.name}, store {store.id}", "two messages have the id", ids)
            for query in store.queries:
                if query.id in asked:
                    both = f"{asked[query.id]} and {one.name} both contain question {query.id!r}"
                    raise InvalidInput("--data", f"{both}: run them separately, each with its own --out")
                asked[query.id] = one.name


def _unique(argument: str, problem: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput(argument, f"{problem} {name!r}")
        seen.add(name)


Stores = tuple[tuple[BenchStore, ...], int]


def _message(turn: Turn) -> BenchMessage:
    return BenchMessage(
        id=validation.name(f"{turn.place}.id", turn.id),
        text=validation.text(f"{turn.place}.text", turn.text),
        session=validation.optional_name(f"{turn.place}.session", turn.session),
        speaker=validation.optional_name(f"{turn.place}.speaker", turn.speaker),
        role=validation.memory_type(f"{turn.place}.role", turn.role),
        sent_at=turn.sent_at,
    )


def _query_text(place: str, text: str) -> str:
    return validation.text(place, text, longest=validation.MAX_QUERY)


# -- {"stores": [...]} ----------------------------------------------------------------------------------------------


class StoreMessage(ForeignModel):
    id: ForeignName
    text: str
    session: ForeignName | None = None
    speaker: ForeignName | None = None
    role: str = "user"
    sent_at: ForeignTime | None = None


class StoreQuery(ForeignModel):
    id: ForeignName
    text: str
    gold: tuple[ForeignName, ...]
    category: ForeignName = "questions"
    asked_at: ForeignTime | None = None


class StoreEntry(ForeignModel):
    id: ForeignName
    messages: tuple[StoreMessage, ...]
    queries: tuple[StoreQuery, ...] = ()


def _stores(file: str, found: Mapping[str, Any]) -> Stores:
    """Read `{"stores": [{"id", "messages": [...], "queries": [...]}]}`."""
    return tuple(_store(f"{file}, stores[{at}]", value) for at, value in enumerate(found["stores"])), 0


def _store(place: str, value: object) -> BenchStore:
    store = validate_as(place, StoreEntry, value)
    messages = [
        _message(
            Turn(
                place=f"{place}.messages[{at}]",
                id=message.id,
                text=message.text,
                session=message.session,
                speaker=message.speaker,
                role=message.role,
                sent_at=message.sent_at,
            )
        )
        for at, message in enumerate(store.messages)
    ]
    known = {message.id for message in messages}
    queries = []
    for at, query in enumerate(store.queries):
        there = f"{place}.queries[{at}]"
        unknown = [gold for gold in query.gold if gold not in known]
        if unknown:
            raise InvalidInput(f"{there}.gold", f"{unknown[0]!r} is not a message of this store")
        queries.append(
            BenchQuery(
                id=query.id,
                text=_query_text(f"{there}.text", query.text),
                gold=tuple(dict.fromkeys(query.gold)),
                category=query.category if query.gold else UNANSWERABLE,
                asked_at=query.asked_at,
                separate=not query.gold or query.category.startswith("5-"),
            )
        )
    return BenchStore(id=store.id, messages=tuple(messages), queries=tuple(queries))


# -- LoCoMo ---------------------------------------------------------------------------------------------------------

LOCOMO_CATEGORIES = {1: "1-multi-hop", 2: "2-temporal", 3: "3-open-domain", 4: "4-single-hop", 5: "5-adversarial"}
LOCOMO_EVIDENCE = re.compile(r"D:?0*(\d+):0*(\d+)")  # also matches the misspelled "D:11:26"


class LocomoQuestion(ForeignModel):
    question: str
    category: int
    evidence: tuple[str, ...] = ()


class LocomoAsked(LocomoSample):
    qa: tuple[LocomoQuestion, ...]


def _locomo(file: str, found: Sequence[object]) -> Stores:
    """Read LoCoMo's `locomo10.json`. Adversarial questions (category 5) are counted separately."""
    stores = []
    skipped = 0
    for at, value in enumerate(found):
        place = f"{file}, [{at}]"
        sample = validate_as(place, LocomoAsked, value)
        messages = tuple(map(_message, locomo_turns(place, sample)))
        known = {message.id for message in messages}
        queries = [_locomo_query(f"{place}.qa[{n}]", sample, n, known) for n in range(len(sample.qa))]
        asked = tuple(query for query in queries if query.gold)
        skipped += len(queries) - len(asked)
        stores.append(BenchStore(id=sample.sample_id, messages=messages, queries=asked))
    return tuple(stores), skipped


def _locomo_query(place: str, sample: LocomoAsked, number: int, known: set[str]) -> BenchQuery:
    asked = sample.qa[number]
    if asked.category not in LOCOMO_CATEGORIES:
        raise InvalidInput(f"{place}.category", f"must be 1 to 5, not {asked.category}")
    named = [f"{sample.sample_id}/D{a}:{b}" for entry in asked.evidence for a, b in LOCOMO_EVIDENCE.findall(entry)]
    return BenchQuery(
        id=f"{sample.sample_id}/q{number}",
        text=_query_text(f"{place}.question", asked.question),
        gold=tuple(message_id for message_id in dict.fromkeys(named) if message_id in known),
        category=LOCOMO_CATEGORIES[asked.category],
        asked_at=None,
        separate=asked.category == 5,
    )


# -- LongMemEval ----------------------------------------------------------------------------------------------------


class LongMemEvalQuestion(Haystack):
    question_id: ForeignName
    question_type: str
    question: str
    question_date: ForeignTime | None = None
    answer_session_ids: tuple[ForeignName, ...] = ()


def _longmemeval(file: str, found: Sequence[object]) -> Stores:
    """Read LongMemEval's files, in which each question has its own store."""
    stores = [_longmemeval_store(f"{file}, [{at}]", value) for at, value in enumerate(found)]
    return tuple(stores), sum(not store.queries for store in stores)


def _longmemeval_store(place: str, value: object) -> BenchStore:
    asked = validate_as(place, LongMemEvalQuestion, value)
    messages: list[BenchMessage] = []
    marked: list[str] = []
    of_answers: list[str] = []
    for turn, session, has_answer in longmemeval_turns(place, asked):
        messages.append(_message(turn))
        if has_answer:
            marked.append(turn.id)
        if session in asked.answer_session_ids:
            of_answers.append(turn.id)
    unanswerable = asked.question_id.endswith("_abs")
    query = BenchQuery(
        id=asked.question_id,
        text=_query_text(f"{place}.question", asked.question),
        gold=() if unanswerable else tuple(marked or of_answers),
        category=UNANSWERABLE if unanswerable else asked.question_type,
        asked_at=asked.question_date,
        separate=unanswerable,
    )
    queries = (query,) if query.gold or unanswerable else ()
    return BenchStore(id=asked.question_id, messages=tuple(messages), queries=queries)
