"""Stories in one shape for training and validation.

A story is {id, source, language, asked_at, messages: [{speaker, text, previous, at}], questions: [{text, kind,
positive, ignored, stale, hard, scores}]}; `at` and `asked_at` are days, `previous` is the index of the message before
it in its session or -1, and the lists of a question hold message indexes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jiyi.languages.terms import tokens

from .held_out import read_json

Story = dict[str, Any]
SECONDS_PER_DAY = 86_400


def days(moment: str | None) -> float:
    """Return days since 1970 of a date such as "2024-04-01T08:30" or "2024年04月01日 周一 08:30", else 0."""
    found = re.search(r"(\d{4})\D(\d{1,2})\D(\d{1,2})(?:\D+(\d{1,2}):(\d\d))?", moment or "")
    if not found:
        return 0.0
    return datetime(*(int(part or 0) for part in found.groups()), tzinfo=UTC).timestamp() / SECONDS_PER_DAY


def everyday(path: Path, memories: Path | None = None) -> list[Story]:
    extracted = read_json(memories)["stories"] if memories else {}
    return [_everyday_story(raw, extracted.get(raw["id"])) for raw in read_json(path)["stories"]]


def made(raws: Sequence[Any], source: str) -> list[Story]:
    """Return stories of `bench.plain_stories` or `bench.indirect_stories`."""
    return [_everyday_story(raw, None) | {"source": source} for raw in raws]


def _everyday_story(raw: Any, extracted: Any) -> Story:
    messages, place = [], {}
    for number, session in enumerate(raw["sessions"]):
        for at, message in enumerate(session["messages"]):
            place[number, at] = len(messages)
            speaker = message.get("name") or (raw["user"] if message["role"] == "user" else "assistant")
            messages.append(
                {
                    "speaker": speaker,
                    "text": message["text"],
                    "previous": len(messages) - 1 if at else -1,
                    "at": days(session["at"]) + at * 40 / SECONDS_PER_DAY,
                    "kind": message.get("kind", ""),
                }
            )
    questions = [_everyday_question(question, messages, place, extracted) for question in raw["questions"]]
    return {
        "id": raw["id"],
        "source": "everyday",
        "language": raw["language"],
        "user": raw["user"],
        "asked_at": days(raw["asked_at"]),
        "messages": messages,
        "questions": questions,
    }


def _everyday_question(question: Any, messages: list[Any], place: dict[tuple[int, int], int], extracted: Any) -> Any:
    said = [f"{message['speaker']}: {message['text']}" for message in messages]
    holds = [any(_all_match(way, text) for way in question["must"]) for text in said]
    stale = [any(re.search(pattern, text, re.I) for pattern in question.get("never", ())) for text in said]
    if "gold" in question:
        positive = [place[tuple(where)] for where in question["gold"]]
    else:
        positive = [at for at, held in enumerate(holds) if held] or _sources(question, extracted, place)
    related = {place[tuple(where)] for where in question.get("related", ())}
    return {
        "text": question["q"],
        "kind": question["kind"],
        "answerable": bool(question["must"]),
        "positive": positive,
        "ignored": [at for at, held in enumerate(holds) if (held or at in related) and at not in positive],
        "stale": [at for at, never in enumerate(stale) if never and at not in positive],
    }


def _sources(question: Any, extracted: Any, place: dict[tuple[int, int], int]) -> list[int]:
    """Return the messages behind extracted memories that match: a date may be derived, so that no message names it."""
    return [
        place[session["session"], at]
        for session in extracted or ()
        for memory in session["memories"]
        if any(_all_match(way, f"{memory['text']} {memory.get('occurred_at') or ''}") for way in question["must"])
        for at in memory["messages"]
        if (session["session"], at) in place
    ]


def _all_match(patterns: Sequence[str], text: str) -> bool:
    return all(re.search(pattern, text, re.I) for pattern in patterns)


def public_groups(path: Path) -> list[Story]:
    """Read question groups of public data sets, each as a story with one question."""
    return [_public_story(number, group) for number, group in enumerate(read_json(path))]


def _public_story(number: int, group: Any) -> Story:
    chat = group["source"] == "molweni"
    messages = []
    for at, text in enumerate(group["texts"]):
        speaker, _, rest = text.partition(": ") if chat else ("", "", text)
        messages.append({"speaker": speaker, "text": rest or text, "previous": at - 1, "at": 0.0})
    positive = [at for at, label in enumerate(group["labels"]) if label]
    question = {
        "text": group["question"],
        "kind": "public",
        "answerable": bool(positive),
        "positive": positive,
        "ignored": [],
        "stale": [],
    }
    return {
        "id": f"{group['source']}-{number}",
        "source": group["source"],
        "language": group["language"],
        "user": "",
        "asked_at": 0.0,
        "messages": messages,
        "questions": [question],
    }


def add_candidates(story: Story, count: int, embedded: Callable[[Sequence[str]], NDArray[Any]]) -> None:
    """Set `hard` of each question, the best messages by ½ BM25 + ½ dense, and `scores`, both scores of each."""
    named = story["source"] == "locomo-dev"  # its questions name the speaker
    texts = [f"{m['speaker']}: {m['text']}" if named else m["text"] for m in story["messages"]]
    vectors = embedded(texts)
    counts = [Counter(tokens(text)) for text in texts]
    asked = embedded([question["text"] for question in story["questions"]])
    for question, vector in zip(story["questions"], asked, strict=True):
        words, meaning = scaled(bm25(tokens(question["text"]), counts)), vectors @ vector
        best = np.argsort(-(words + scaled(meaning)))[:count]
        question["hard"] = best.tolist()
        question["scores"] = [[round(float(words[at]), 3), round(float(meaning[at]), 3)] for at in best]


def add_neighbours(story: Story, count: int, embedded: Callable[[Sequence[str]], NDArray[Any]]) -> None:
    """Set `near`: for each message the most similar older ones by ½ BM25 + ½ dense."""
    texts = [message["text"] for message in story["messages"]]
    vectors, counts = embedded(texts), [Counter(tokens(text)) for text in texts]
    story["near"] = [[]]
    for at in range(1, len(texts)):
        words, meaning = scaled(bm25(tokens(texts[at]), counts[:at])), vectors[:at] @ vectors[at]
        story["near"].append(np.argsort(-(words + scaled(meaning)))[:count].tolist())


def bm25(query: Sequence[str], counts: Sequence[Counter[str]], k1: float = 1.2, b: float = 0.75) -> NDArray[np.float64]:
    lengths = np.array([sum(bag.values()) for bag in counts], float)
    scores = np.zeros(len(counts))
    for term in set(query):
        found = np.array([bag.get(term, 0) for bag in counts], float)
        document_count = (found > 0).sum()
        if document_count:
            rarity = np.log(1 + (len(counts) - document_count + 0.5) / (document_count + 0.5))
            scores += rarity * found * (k1 + 1) / (found + k1 * (1 - b + b * lengths / lengths.mean()))
    return scores


def scaled(scores: NDArray[Any]) -> NDArray[Any]:
    spread = scores.max() - scores.min()
    return (scores - scores.min()) / spread if spread else np.zeros_like(scores)
