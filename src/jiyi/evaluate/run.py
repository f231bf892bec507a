"""One run: take the messages in, ask the questions. What was done already, by the same code, is not done again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from ..memory import Memory
from ..models import MemoryItem, SearchMode
from ..read.interpret import scope
from ..text.budget import token_bound
from .data import BenchMessage, BenchQuery, BenchSet, BenchStore
from .journal import Answer, Journal

HITS = 50
AT_ONCE = 500  # messages in one `add`
NO_SUCH_TYPE = "bench-warm-up"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and where it was asked. `own`: it belongs to this store."""

    store: BenchStore
    query: BenchQuery
    own: bool
    answer: Answer


async def fill(memory: Memory, one: BenchSet, progress: Progress) -> None:
    """Take in all messages of a set. A part that is there already is known by its idempotency key, before any of it
    is embedded."""
    whole = sum(len(store.messages) for store in one.stores)
    done = 0
    progress(f"{one.name}: taking in", done, whole)
    for store in one.stores:
        for session, part in _parts(store.messages):
            await memory.add(
                [_as_given(message) for message in part],
                user_id=user_of(one, store),
                session_id=session,
                idempotency_key=sha256(repr(part).encode()).hexdigest(),
            )
            done += len(part)
            progress(f"{one.name}: taking in", done, whole)


def user_of(one: BenchSet, store: BenchStore) -> str:
    return f"{one.name}/{store.id}"


def _parts(messages: Iterable[BenchMessage]) -> Iterable[tuple[str | None, Sequence[BenchMessage]]]:
    for session, said in groupby(messages, key=lambda message: message.session):
        whole = list(said)
        for start in range(0, len(whole), AT_ONCE):
            yield session, whole[start : start + AT_ONCE]


def _as_given(message: BenchMessage) -> dict[str, object]:
    return {
        "id": message.id,
        "role": message.role,
        "speaker": message.speaker,
        "text": message.text,
        "sent_at": message.sent_at,
    }


async def ask(
    memory: Memory, one: BenchSet, *, mode: SearchMode, is_it_in_there: bool, journal: Journal, progress: Progress
) -> list[Asked]:
    """Ask each store its own questions and, to see whether it knows what it does not know, the next store's."""
    run = await fingerprint(memory, one, mode)
    todo = list(_questions(one, is_it_in_there))
    found = []
    warm = None
    for done, (store, query, own) in enumerate(todo):
        progress(f"{one.name}: asking", done, len(todo))
        answer = journal.get(run, store.id, query.id)
        if answer is None:
            if warm is not store:
                await _warm_up(memory, user_of(one, store), mode)
                warm = store
            answer = journal.keep(await _answer(memory, run, one, store, query, mode, own=own))
        found.append(Asked(store=store, query=query, own=own, answer=answer))
    progress(f"{one.name}: asking", len(todo), len(todo))
    return found


def _questions(one: BenchSet, is_it_in_there: bool) -> Iterable[tuple[BenchStore, BenchQuery, bool]]:
    for at, store in enumerate(one.stores):
        yield from ((store, query, True) for query in store.queries)
        following = one.stores[(at + 1) % len(one.stores)]
        if is_it_in_there and following is not store:
            yield from ((store, query, False) for query in following.queries if not query.apart)


async def _warm_up(memory: Memory, user_id: str, mode: SearchMode) -> None:
    """Load the model and this user's index, and find nothing, so that no memory counts as looked at."""
    await memory.search("warm up", user_id=user_id, search_mode=mode, memory_types=[NO_SUCH_TYPE], limit=1)


async def _answer(
    memory: Memory, run: str, one: BenchSet, store: BenchStore, query: BenchQuery, mode: SearchMode, *, own: bool
) -> Answer:
    """A foreign question is asked when this store was complete: its own moment may lie before anything here."""
    asked_at = (query.asked_at if own else None) or store.last_at
    began = time.perf_counter()
    found = await memory.search(
        query.text,
        user_id=user_of(one, store),
        search_mode=mode,
        limit=HITS,
        asked_at=asked_at,
    )
    took = time.perf_counter() - began
    ids = [hit.id for hit in found.hits] if own else []
    items = await memory.get_many(ids, user_id=user_of(one, store)) if ids else ()
    return Answer(
        run=run,
        store=store.id,
        query=query.id,
        top=found.hits[0].relevance_score if found.hits else 0.0,
        took_ms=1000 * took,
        hits=_priced(items),
        short=_priced(await memory._in_short(items, scope(user_id=user_of(one, store), asked_at=asked_at))),
        degraded=found.degraded,
    )


def _priced(items: Sequence[MemoryItem]) -> tuple[tuple[tuple[str, ...], int], ...]:
    return tuple((item.source_ids, token_bound(item.content)) for item in items)


# -- what an answer hangs on ----------------------------------------------------------------------------------------


async def fingerprint(memory: Memory, one: BenchSet, mode: SearchMode) -> str:
    """A name for the code, the settings, the model, the mode and the data: answers of another are not reused."""
    settings = memory.settings.model_dump_json(exclude={"url", "user"})
    embedder = (await memory.stats()).embedder
    parts = (code_digest(), settings, embedder, mode, HITS, one.name, one.digest)
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


@cache
def code_digest() -> str:
    """A digest of the engine's files; how results are measured and shown is not among them."""
    root = Path(__file__).parent.parent
    digest = sha256()
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.is_file() and inside.parts[0] not in ("evaluate", "cli") and "__pycache__" not in inside.parts:
            digest.update(f"{inside.as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()
