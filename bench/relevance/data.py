"""Questions with the evidence of every candidate in their store: stories are added to a memory as a user would, and
the evidence is that of a search."""

from __future__ import annotations

import gzip
import json
import random
import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from jiyi import Memory, MemoryItem
from jiyi.embed import BuiltinEmbedder
from jiyi.read.query import build_index_query, interpret, query_texts
from jiyi.read.relevance import candidate_features, query_features
from jiyi.scope import Filter
from jiyi.store.write_set import SearchSnapshot
from jiyi.text_cache import clear_text_caches
from jiyi.write import classify

from .. import sentences

USER = "u"
MODEL = BuiltinEmbedder.id
KEPT = 300  # candidates of a question in a large store: the answers and the most similar others
MOST = 96  # of them in a batch: the answers, the hardest others, and some at random
HARDEST = 55
NON_ANSWERS = {
    "en": ("I'm not sure, I don't think you told me.", "I don't know that yet.", "I'm not sure about that."),
    "zh": ("我不太清楚，你好像没告诉过我。", "这个我还不知道。", "不确定，你没提过。"),
}


@dataclass
class Question:
    """One question with its candidates."""

    text: str
    story: str
    rows: np.ndarray  # features of candidate and query
    query: np.ndarray
    vectors: np.ndarray
    previous: np.ndarray
    statement: np.ndarray
    successions: tuple[np.ndarray, np.ndarray]
    gold: np.ndarray  # answers
    ignored: np.ndarray  # hold the answer too, without being named
    stale: np.ndarray  # say what is false or no longer so
    answerable: bool
    weight: float = 1.0


def hardest(question: Question, rng: np.random.Generator) -> np.ndarray:
    """Return the places of candidates to train on."""
    size = len(question.rows)
    if size <= MOST:
        return np.arange(size)
    similar = np.argsort(-(2 * question.rows[:, 0] + question.rows[:, 4]))[:HARDEST]
    answers, stale = np.flatnonzero(question.gold)[:20], np.flatnonzero(question.stale)[:10]
    order = [*answers, *stale, *similar, *rng.choice(size, MOST, replace=False)]
    return np.array(list(dict.fromkeys(order))[:MOST])


class CachedEmbedder:
    """The built-in embedder with vectors kept in a file."""

    id = MODEL

    def __init__(self, path: Path) -> None:
        self._path, self._known = path, dict[str, np.ndarray]()
        if path.exists():
            with np.load(path, allow_pickle=True) as stored:
                self._known = dict(zip(stored["texts"], stored["vectors"], strict=True))

    async def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        if missing:
            vectors = await BuiltinEmbedder().embed_documents(missing)
            self._known |= dict(zip(missing, vectors, strict=True))
        return np.stack([np.asarray(self._known[text], np.float32) for text in texts])

    async def embed_query(self, text: str) -> np.ndarray:
        vector: np.ndarray = (await self.embed_documents([text]))[0]
        return vector

    def save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        texts = list(self._known)
        np.savez(self._path, texts=np.array(texts, object), vectors=np.stack([self._known[text] for text in texts]))


def read(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


async def stories(
    path: Path, embedder: CachedEmbedder, *, asked_before: float = 0.0, held_out: bool = True, weight: float = 1.0
) -> list[Question]:
    """Ask the questions of stories, some of which were asked before and not answered.

    `held_out`: sentences are classified by a model that has not seen their story, as in use.
    """
    told, found = read(path)["stories"], list[Question]()
    names = sorted(story["id"] for story in told)
    random.Random(7).shuffle(names)
    fold = {name: at % 5 for at, name in enumerate(names)}
    examples = sentences.examples() if held_out else []
    for number in range(5):
        weights = sentences.fit([one for one in examples if fold.get(one.story) != number]) if held_out else None
        rng = np.random.default_rng(number)
        with patch.object(classify, "_weights", lambda: weights) if weights else nullcontext():  # noqa: B023
            clear_text_caches()
            for story in told:
                if fold[story["id"]] == number:
                    found += await _story(story, embedder, asked_before, rng, weight)
    clear_text_caches()
    return found


async def _story(
    story: dict[str, Any], embedder: CachedEmbedder, asked_before: float, rng: np.random.Generator, weight: float
) -> list[Question]:
    places: dict[tuple[str, str], set[tuple[int, int]]] = {}
    async with _memory(embedder) as memory:
        for number, session in enumerate(story["sessions"]):
            began, messages = datetime.fromisoformat(session["at"]), []
            for at, one in enumerate(session["messages"]):
                places.setdefault((str(number), one["text"]), set()).add((number, at))
                name = one.get("name") or (story["user"] if one["role"] == "user" else None)
                messages.append(_message(one["role"], one["text"], began + timedelta(seconds=40 * at), name))
            await memory.add(messages, user_id=USER, session_id=str(number))
        for number, one in enumerate(story["questions"]):
            if rng.random() < asked_before:
                began += timedelta(days=1)
                replies = NON_ANSWERS["zh" if re.search("[\u4e00-\u9fff]", one["q"]) else "en"]
                asked = [_message("user", one["q"], began, story["user"])]
                asked.append(_message("assistant", str(rng.choice(replies)), began + timedelta(seconds=40)))
                await memory.add(asked, user_id=USER, session_id=f"asked {number}")
        items = await _items(memory)
        origins = {
            one.id: places.get((one.session_id or "", one.content), set())
            for one in items.values()
            if one.memory_type == "message"
        }
        asked_at = datetime.fromisoformat(story["asked_at"].split()[-1])
        found = []
        for one in story["questions"]:
            named = {tuple(place) for place in one.get("gold", [])}
            question, ids = await _ask(memory, one["q"], asked_at)
            texts = [f"{items[name].data.get('speaker') or ''}: {items[name].content}" for name in ids]
            gold = np.array([bool(named & origins.get(name, set())) for name in ids])
            holds = np.array([any(_matches(some, text) for some in one["must"]) for text in texts])
            stale = [any(re.search(some, text, re.IGNORECASE) for some in one.get("never", [])) for text in texts]
            found.append(_labelled(question, gold, holds, np.array(stale), story["id"], weight, bool(one["must"])))
    return found


async def retrieval(path: Path, embedder: CachedEmbedder, weight: float = 1.0) -> list[Question]:
    """Ask the questions of a set in the shape of docs/internals/evaluation.md."""
    found = []
    for store in read(path)["stores"]:
        sessions: dict[str, list[dict[str, Any]]] = {}
        names: dict[tuple[str, str], set[str]] = {}
        for one in store["messages"]:
            speaker = str(one["speaker"]) if one["speaker"] and one["role"] == "user" else None
            message = _message(one["role"], one["text"], _time(one["sent_at"]), speaker)
            sessions.setdefault(str(one["session"]), []).append(message)
            names.setdefault((str(one["session"]), one["text"]), set()).add(one["id"])
        async with _memory(embedder) as memory:
            for session, messages in sessions.items():
                await memory.add(messages, user_id=USER, session_id=session)
            items = await _items(memory)
            last = max(_time(one["sent_at"]) for one in store["messages"]) + timedelta(days=1)
            for one in store["queries"]:
                asked_at = _time(one["asked_at"]) if one.get("asked_at") else last
                question, ids = await _ask(memory, one["text"], asked_at)
                known = (items.get(name) for name in ids)  # None: derived in the meantime
                gold = np.array(
                    [
                        item is not None
                        and item.memory_type == "message"
                        and bool(set(one["gold"]) & names.get((item.session_id or "", item.content), set()))
                        for item in known
                    ]
                )
                if gold.any():
                    nothing = np.zeros(len(gold), bool)
                    label = f"{path.name}:{store['id']}"
                    found.append(_labelled(question, gold, gold, nothing, label, weight, answerable=True))
    return found


async def plain_facts(
    path: Path, embedder: CachedEmbedder, stores: int = 300, weight: float = 1.0, seed: int = 0
) -> list[Question]:
    """Make small stores of plain facts: a few statements in either language, some asked about before, some absent."""
    rng = np.random.default_rng(seed)
    facts = _lines(path)
    found = []
    for number in range(stores):
        chosen = [int(fact) for fact in rng.choice(len(facts), rng.integers(2, 14), replace=False)]
        began, stated = datetime(2025, 1, 6, 9, tzinfo=UTC), dict[str, int]()
        async with _memory(embedder) as memory:
            for fact in chosen:
                if rng.random() < 0.6:
                    began += timedelta(days=int(rng.integers(1, 20)))
                text = facts[fact][0 if rng.random() < 0.5 else 2]
                stated[text] = fact
                began += timedelta(seconds=40)
                await memory.add([_message("user", text, began, USER)], user_id=USER, session_id=str(began.date()))
            for fact in chosen:
                if rng.random() < 0.3:
                    side, began = (0 if rng.random() < 0.5 else 2), began + timedelta(days=3)
                    reply = str(rng.choice(NON_ANSWERS["en" if side == 0 else "zh"]))
                    asked = [_message("user", facts[fact][side + 1], began, USER)]
                    asked.append(_message("assistant", reply, began + timedelta(seconds=40)))
                    await memory.add(asked, user_id=USER, session_id=str(began.date()))
            items = await _items(memory)
            others = [fact for fact in range(len(facts)) if fact not in chosen]
            for fact in [
                *rng.choice(chosen, min(3, len(chosen)), replace=False),
                *rng.choice(others, 2, replace=False),
            ]:
                text = facts[fact][1 if rng.random() < 0.5 else 3]
                question, ids = await _ask(memory, text, began + timedelta(days=int(rng.integers(0, 60))))
                gold = np.array(
                    [
                        items[name].memory_type == "message" and stated.get(items[name].content) == int(fact)
                        for name in ids
                    ]
                )
                nothing = np.zeros(len(gold), bool)
                label = f"plain-{number}"
                found.append(_labelled(question, gold, gold, nothing, label, weight, answerable=bool(gold.any())))
    return found


@asynccontextmanager
async def _memory(embedder: CachedEmbedder) -> AsyncIterator[Memory]:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder) / "memory.db", embedder=embedder) as memory:
            yield memory


def _lines(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def _message(role: str, text: str, at: datetime, name: str | None = None) -> dict[str, Any]:
    return {"role": role, "content": text, "sent_at": at} | ({"name": name} if name else {})


async def _items(memory: Memory) -> dict[str, MemoryItem]:
    store, found, cursor = memory._engine.store, dict[str, MemoryItem](), None
    while page := await store.memories.page(Filter.parse(user_id=USER), cursor=cursor, limit=500):
        found |= {one.id: one for one in page.items}
        if (cursor := page.next_cursor) is None:
            break
    return found


async def _ask(memory: Memory, text: str, asked_at: datetime) -> tuple[Question, list[str]]:
    engine = memory._engine
    where = Filter.parse(user_id=USER, asked_at=asked_at)
    query = interpret(
        text, where, mode="hybrid", keywords=None, min_score=0, limit=5, explain=False, with_synonyms=False
    )
    people = await engine.index.people(USER, engine.embedder.id)
    texts = query_texts(query, people)
    vectors = [await engine.embedder.embed_query(one) for one in texts]
    asked = build_index_query(
        query, people, texts, vectors, SearchSnapshot(None, {}), engine.embedder.id, engine.searcher._ranking
    )
    candidates = await engine.index.gather(asked)
    evidence, rows = candidate_features(candidates, np.arange(len(candidates)))
    previous = np.zeros_like(evidence.vectors) if evidence.previous_vectors is None else evidence.previous_vectors
    question = Question(
        text=text,
        story="",
        rows=np.hstack([rows, np.tile(query_features(query, asked), (len(rows), 1))]).astype(np.float32),
        query=vectors[0].astype(np.float16),
        vectors=evidence.vectors.astype(np.float16),
        previous=previous.astype(np.float16),
        statement=candidates.statement[:],
        successions=candidates.successions,
        gold=np.zeros(0),
        ignored=np.zeros(0),
        stale=np.zeros(0),
        answerable=False,
    )
    return question, list(candidates.ids)


def _labelled(
    question: Question,
    gold: np.ndarray,
    holds: np.ndarray,
    stale: np.ndarray,
    story: str,
    weight: float,
    answerable: bool,
) -> Question:
    """Count derived memories that hold the answer as answers, and leave out the other members of their statements."""
    member = np.isin(question.statement, question.statement[gold])
    answers = gold | (member & holds)
    question.gold, question.ignored = answers.astype(np.float32), ~answers & (holds | member)
    question.stale, question.story, question.weight, question.answerable = stale, story, weight, answerable
    return question


def _matches(patterns: list[str], text: str) -> bool:
    return all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _time(written: str | None) -> datetime:
    if not written:
        return datetime(2024, 1, 1, tzinfo=UTC)
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        year, month, day, hour, minute = (int(number) for number in re.findall(r"\d+", written)[:5])
        at = datetime(year, month, day, hour, minute, tzinfo=UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
