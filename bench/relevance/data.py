"""Questions with the evidence of every message in their store, built with the code that a search runs."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from jiyi.embed import BuiltinEmbedder
from jiyi.index.legs import IndexRow
from jiyi.index.query import Evidence
from jiyi.index.user_index import UserIndex
from jiyi.languages.words import normalise
from jiyi.models import to_micros
from jiyi.read.presets import PRESETS, Ranking
from jiyi.read.query import build_index_query, interpret, query_texts
from jiyi.read.relevance import candidate_features, query_features
from jiyi.scope import Filter
from jiyi.store.contract import SearchSnapshot
from jiyi.write.index import KeywordRules, index_entry

RULES = KeywordRules(most=12, lightest=0.1)
RANKING = Ranking(preset="measured", weights=PRESETS["measured"], priorities={})
MODEL = BuiltinEmbedder.id


@dataclass
class Question:
    """One question with the evidence of every message in its store."""

    rows: np.ndarray  # features of candidates and query
    query: np.ndarray
    vectors: np.ndarray
    previous: np.ndarray
    gold: np.ndarray
    ignored: np.ndarray  # also hold the answer, without being named
    story: str
    language: str = ""
    must: set[int] = field(default_factory=set)
    never: set[int] = field(default_factory=set)
    weight: float = 1.0


class Embeddings:
    """Vectors by text, embedded once and kept in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, np.ndarray] = {}
        if path.exists():
            with np.load(path, allow_pickle=True) as stored:
                self._known = dict(zip(stored["texts"], stored["vectors"], strict=True))

    def __getitem__(self, text: str) -> np.ndarray:
        return self._known[text]

    def add(self, texts: list[str]) -> None:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        for at in range(0, len(missing), 256):
            some = missing[at : at + 256]
            vectors = np.asarray(asyncio.run(BuiltinEmbedder().embed_documents(some)))
            self._known |= dict(zip(some, vectors, strict=True))

    def save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        texts = list(self._known)
        np.savez(self._path, texts=np.array(texts, object), vectors=np.stack([self._known[text] for text in texts]))


def build(messages: list[dict[str, Any]], embeddings: Embeddings) -> UserIndex:
    """Index messages the way a store does."""
    rows = []
    for at, message in enumerate(messages):
        data = {"speaker": str(message["speaker"] or ""), "role": message["role"]}
        entry = index_entry(message["text"], message["text"], (), data, RULES)
        sent = to_micros(message["at"])
        rows.append(
            IndexRow(
                id=f"{at:06d}",
                memory_type="message",
                layer="episodic",
                session_id=message["session"],
                agent_id=None,
                group_id=None,
                speaker=normalise(str(message["speaker"] or "")),
                assistant=message["role"] == "assistant",
                derived=False,
                tags=(),
                occurred_at=sent,
                valid_from=sent,
                valid_to=None,
                expires_at=None,
                last_accessed_at=None,
                access_count=0,
                importance=0.5,
                trust=1.0,
                length=entry.length,
                asks=entry.asks,
                kind="",
                salience=1.0,
                hashes=entry.hashes.tobytes(),
                counts=entry.counts.tobytes(),
                keyword_hashes=b"",
                keyword_weights=b"",
                vector=embeddings[message["text"]].astype(np.float32).tobytes(),
                dimension=512,
            )
        )
    index = UserIndex(MODEL, 512, seen=0)
    index.put(rows)
    return index


def ask(
    index: UserIndex, text: str, asked_at: datetime, embeddings: Embeddings
) -> tuple[np.ndarray, np.ndarray, Evidence]:
    query = interpret(
        text,
        Filter.parse(user_id="u", asked_at=asked_at),
        mode="hybrid",
        keywords=None,
        min_score=0,
        limit=5,
        explain=False,
        with_synonyms=False,
    )
    people = index.people
    texts = query_texts(query, people)
    embeddings.add(texts)
    asked = build_index_query(
        query, people, [embeddings[one] for one in texts], SearchSnapshot(None, {}), MODEL, RANKING
    )
    candidates = index.gather(asked)
    evidence = candidates.evidence(np.arange(len(candidates)))
    return query_features(query, asked), embeddings[texts[0]], evidence


def question(index: UserIndex, text: str, asked_at: datetime, embeddings: Embeddings, **labels: Any) -> Question:
    row, vector, evidence = ask(index, text, asked_at, embeddings)
    rows = np.hstack([candidate_features(evidence), np.tile(row, (len(evidence.vectors), 1))]).astype(np.float32)
    return Question(rows=rows, query=vector, vectors=evidence.vectors, previous=evidence.previous_vectors, **labels)


def read_stories(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        told: list[dict[str, Any]] = json.load(file)["stories"]
    return told


def stories(
    path: Path, embeddings: Embeddings, *, asked_before: float = 0.0, weight: float = 1.0, seed: int = 0
) -> list[Question]:
    told = read_stories(path)
    found, rng = [], np.random.default_rng(seed)
    for story in told:
        messages, place = [], {}
        for number, session in enumerate(story["sessions"]):
            began = datetime.fromisoformat(session["at"])
            for at, message in enumerate(session["messages"]):
                place[number, at] = len(messages)
                speaker = message.get("name") or (story["user"] if message["role"] == "user" else None)
                messages.append(
                    {
                        "role": message["role"],
                        "speaker": speaker,
                        "text": message["text"],
                        "session": str(number),
                        "at": began + timedelta(seconds=40 * at),
                    }
                )
        began += timedelta(days=2)
        for one in story["questions"]:
            if rng.random() < asked_before:
                replies = NON_ANSWERS["zh" if re.search("[\u4e00-\u9fff]", one["q"]) else "en"]
                began += timedelta(hours=5)
                messages.append(_message("user", one["q"], began, 0) | {"speaker": story["user"]})
                messages.append(_message("assistant", str(rng.choice(replies)), began, 1))
        embeddings.add([message["text"] for message in messages])
        embeddings.add([one["q"] for one in story["questions"]])
        index = build(messages, embeddings)
        asked_at = datetime.fromisoformat(story["asked_at"].split()[-1])
        texts = [f"{message['speaker'] or ''}: {message['text']}" for message in messages]
        for one in story["questions"]:
            gold = [place[tuple(where)] for where in one.get("gold", [])]
            must = {at for at, text in enumerate(texts) if any(_matches(some, text) for some in one["must"])}
            never = {at for at, text in enumerate(texts) if any(re.search(p, text, re.I) for p in one.get("never", []))}
            labels, ignored = np.zeros(len(messages), np.float32), np.zeros(len(messages), bool)
            labels[gold or sorted(must)] = 1
            ignored[[at for at in must if not labels[at]]] = True
            found.append(
                question(
                    index,
                    one["q"],
                    asked_at,
                    embeddings,
                    gold=labels,
                    ignored=ignored,
                    story=story["id"],
                    language=story["language"],
                    must=must,
                    never=never,
                    weight=weight,
                )
            )
    return found


NON_ANSWERS = {
    "en": ("I'm not sure, I don't think you told me.", "I don't know that yet.", "I'm not sure about that."),
    "zh": ("我不太清楚，你好像没告诉过我。", "这个我还不知道。", "不确定，你没提过。"),
}


def plain_facts(
    path: Path, embeddings: Embeddings, stores: int = 400, weight: float = 1.0, seed: int = 0
) -> list[Question]:
    """Make small stores of plain facts: a few statements in either language, some asked about before, some absent."""
    rng = np.random.default_rng(seed)
    facts = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    embeddings.add([text for fact in facts for text in fact] + [text for some in NON_ANSWERS.values() for text in some])
    found = []
    for number in range(stores):
        chosen = rng.choice(len(facts), rng.integers(2, 14), replace=False)
        began = datetime(2025, 1, 6, 9, tzinfo=UTC)
        messages: list[dict[str, Any]] = []
        place: dict[int, int] = {}
        language = [0 if rng.random() < 0.5 else 2 for _ in chosen]
        for fact, side in zip(chosen, language, strict=True):
            if rng.random() < 0.6:
                began += timedelta(days=int(rng.integers(1, 20)))
            place[int(fact)] = len(messages)
            messages.append(_message("user", facts[fact][side], began, len(messages)))
        asked = [int(fact) for fact in chosen if rng.random() < 0.3]
        for fact in asked:
            side = 0 if rng.random() < 0.5 else 2
            began += timedelta(days=3)
            messages.append(_message("user", facts[fact][side + 1], began, len(messages)))
            replies = NON_ANSWERS["en" if side == 0 else "zh"]
            messages.append(_message("assistant", str(rng.choice(replies)), began, len(messages)))
        index = build(messages, embeddings)
        others = [fact for fact in range(len(facts)) if fact not in place]
        for fact in [*rng.choice(chosen, min(3, len(chosen)), replace=False), *rng.choice(others, 2, replace=False)]:
            gold = np.zeros(len(messages), np.float32)
            if int(fact) in place:
                gold[place[int(fact)]] = 1
            text = facts[fact][1 if rng.random() < 0.5 else 3]
            nothing = np.zeros(len(messages), bool)
            must = set(np.flatnonzero(gold).tolist())
            asked_at = began + timedelta(days=int(rng.integers(0, 60)))
            found.append(
                question(
                    index, text, asked_at, embeddings, gold=gold, ignored=nothing, story=f"plain-{number}", must=must
                )
            )
    return found


def _message(role: str, text: str, began: datetime, at: int) -> dict[str, Any]:
    return {
        "role": role,
        "speaker": "u" if role == "user" else None,
        "text": text,
        "session": str(began.date()),
        "at": began + timedelta(seconds=40 * at),
    }


def _matches(patterns: list[str], text: str) -> bool:
    return all(re.search(pattern, text, re.I) for pattern in patterns)


def retrieval(path: Path, embeddings: Embeddings, weight: float) -> list[Question]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        stores = json.load(file)["stores"]
    found = []
    for store in stores:
        place = {message["id"]: at for at, message in enumerate(store["messages"])}
        messages = [
            {
                "role": one["role"],
                "speaker": one["speaker"],
                "text": one["text"],
                "session": str(one["session"]),
                "at": _time(one["sent_at"]),
            }
            for one in store["messages"]
        ]
        embeddings.add([message["text"] for message in messages])
        index = build(messages, embeddings)
        last = max(message["at"] for message in messages) + timedelta(days=1)
        asked = [(one["text"], one["gold"], one.get("asked_at")) for one in store["queries"]]
        asked = [one for one in asked if any(name in place for name in one[1])]
        for text, names, when in asked:
            gold = np.zeros(len(messages), np.float32)
            gold[[place[name] for name in names if name in place]] = 1
            labels = {"gold": gold, "ignored": np.zeros(len(messages), bool), "story": f"{path.name}:{store['id']}"}
            one = question(index, text, _time(when) if when else last, embeddings, weight=weight, **labels)
            one.vectors, one.previous = one.vectors.astype(np.float16), one.previous.astype(np.float16)
            found.append(one)
    return found


def _time(written: str | None) -> datetime:
    if not written:
        return datetime(2024, 1, 1, tzinfo=UTC)
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        year, month, day, hour, minute = (int(number) for number in re.findall(r"\d+", written)[:5])
        at = datetime(year, month, day, hour, minute, tzinfo=UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
