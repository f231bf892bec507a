"""Fill a store with a benchmark's messages and ask its questions; both resume where a stopped run ended."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import jiyi
from jiyi import Memory
from jiyi.engine import runtime
from jiyi.models import SearchMode
from jiyi.text.budget import token_bound

from . import measures
from .console import Report
from .datasets import BenchMessage, BenchQuery, BenchSet, BenchStore

HITS = 50
BATCH = 500  # messages per `add`
NO_SUCH_TYPE = "bench-warm-up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A store's answer to one of its own questions or a foreign one."""

    run: str
    store: str
    query: str
    top: float  # score of the best hit
    took_ms: float
    hits: tuple[tuple[tuple[str, ...], int], ...]  # source message ids and token count of each hit, best first
    degraded: tuple[str, ...]

    @property
    def ranking(self) -> list[str]:
        return measures.ranking(source_ids for source_ids, _ in self.hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    store: BenchStore
    query: BenchQuery
    own: bool  # the question belongs to this store
    answer: Answer


class Journal:
    """Answers so far, one JSON line each, keyed by run, store and question."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {(kept.run, kept.store, kept.query): kept for kept in _read_answers(path)}

    def get(self, run: str, store: str, query: str) -> Answer | None:
        return self._known.get((run, store, query))

    def add(self, answer: Answer) -> Answer:
        self._known[answer.run, answer.store, answer.query] = answer
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(answer), ensure_ascii=False) + "\n")
        return answer


def _read_answers(path: Path) -> Iterator[Answer]:
    """Yield the complete lines; the last one may be cut off by an interrupted run."""
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    if text and not text.endswith("\n"):  # start the next answer on a new line
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    for line in text.splitlines():
        try:
            found = json.loads(line)
            hits = tuple((tuple(source_ids), tokens) for source_ids, tokens in found["hits"])
            yield Answer(**{**found, "hits": hits, "degraded": tuple(found["degraded"])})
        except (ValueError, TypeError, KeyError):
            continue


async def fill(memory: Memory, one: BenchSet, report: Report) -> None:
    """Add all messages of a set. Batches added by an earlier run are skipped by their idempotency key."""
    total = sum(len(store.messages) for store in one.stores)
    done = 0
    report(f"{one.name}: adding", done, total)
    for store in one.stores:
        for session, batch in _batches(store.messages):
            await memory.add(
                [_as_input(message) for message in batch],
                user_id=user_of(one, store),
                session_id=session,
                idempotency_key=sha256(repr(batch).encode()).hexdigest(),
            )
            done += len(batch)
            report(f"{one.name}: adding", done, total)


def user_of(one: BenchSet, store: BenchStore) -> str:
    return f"{one.name}/{store.id}"


def _batches(messages: Iterable[BenchMessage]) -> Iterable[tuple[str | None, Sequence[BenchMessage]]]:
    for session, group in groupby(messages, key=lambda message: message.session):
        whole = list(group)
        for start in range(0, len(whole), BATCH):
            yield session, whole[start : start + BATCH]


def _as_input(message: BenchMessage) -> dict[str, object]:
    return {
        "id": message.id,
        "role": message.role,
        "speaker": message.speaker,
        "text": message.text,
        "sent_at": message.sent_at,
    }


async def ask(
    memory: Memory, one: BenchSet, *, mode: SearchMode, answerability: bool, journal: Journal, report: Report
) -> list[Asked]:
    """Ask each store its own questions and, with `answerability`, those of the next store."""
    run = await fingerprint(memory, one, mode)
    todo = list(_questions(one, answerability))
    found = []
    warm = None
    for done, (store, query, own) in enumerate(todo):
        report(f"{one.name}: asking", done, len(todo))
        answer = journal.get(run, store.id, query.id)
        if answer is None:
            if warm is not store:
                await _warm_up(memory, user_of(one, store), mode)
                warm = store
            answer = journal.add(await _answer(memory, run, one, store, query, mode, own=own))
        found.append(Asked(store=store, query=query, own=own, answer=answer))
    report(f"{one.name}: asking", len(todo), len(todo))
    return found


def _questions(one: BenchSet, answerability: bool) -> Iterable[tuple[BenchStore, BenchQuery, bool]]:
    for at, store in enumerate(one.stores):
        yield from ((store, query, True) for query in store.queries)
        following = one.stores[(at + 1) % len(one.stores)]
        if answerability and following is not store:
            yield from ((store, query, False) for query in following.queries if not query.separate)


async def _warm_up(memory: Memory, user_id: str, mode: SearchMode) -> None:
    """Load the model and this user's index with a search that matches nothing."""
    await memory.search("warm up", user_id=user_id, search_mode=mode, memory_types=[NO_SUCH_TYPE], limit=1)


async def _answer(
    memory: Memory, run: str, one: BenchSet, store: BenchStore, query: BenchQuery, mode: SearchMode, *, own: bool
) -> Answer:
    user_id = user_of(one, store)
    # A foreign question's own time may be earlier than everything in this store.
    asked_at = (query.asked_at if own else None) or store.last_at
    began = time.perf_counter()
    found = await memory.search(query.text, user_id=user_id, search_mode=mode, limit=HITS, asked_at=asked_at)
    took = time.perf_counter() - began
    ids = [hit.id for hit in found.hits] if own else []
    items = await memory.get_many(ids, user_id=user_id) if ids else ()
    return Answer(
        run=run,
        store=store.id,
        query=query.id,
        top=found.hits[0].relevance_score if found.hits else 0.0,
        took_ms=1000 * took,
        hits=tuple((item.source_ids, token_bound(item.content)) for item in items),
        degraded=found.degraded,
    )


async def fingerprint(memory: Memory, one: BenchSet, mode: SearchMode) -> str:
    """Digest of everything an answer depends on: code, settings, embedder, reader, mode and data."""
    settings = runtime(memory).settings.model_dump_json(exclude={"url", "user"})
    stats = await memory.stats()
    parts = (code_digest(), settings, stats.embedder, stats.reader, mode, HITS, one.name, one.digest)
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


@cache
def code_digest() -> str:
    """Digest of the engine's source files, without the command line."""
    root = Path(jiyi.__file__).parent
    digest = sha256()
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and inside.parts[0] != "cli" and "__pycache__" not in inside.parts:
            digest.update(f"{inside.as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()
