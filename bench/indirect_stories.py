"""Stories of facts, with requests that they bear on without sharing words, in the shape of everyday-train.

    python -m bench.indirect_stories --out FILE.json.gz [--count 200] [--seed 0]

"Find me a Thai place" needs "Peanuts put me in hospital twice". Facts and requests are written by hand
(data/indirect_train_*.toml); a story draws some of the facts and asks a few of their requests, some for which several
facts matter, and some for which none does. Facts that share a topic with a request are `related`: no negatives.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .plain_stories import LANGUAGES, TEMPLATES, USERS, day, sometimes_wrapped, write

DATA = Path(__file__).parent / "data"
COUNT = 200
MIXED = 0.2  # share of stories with facts in both languages
FACTS = (25, 60)
ASKED = (5, 8)  # requests about a fact of the story
MISSING = 2  # requests about facts that are not in the story, nor any with their topics
ACROSS = 0.5  # share of requests in the other language, where the fact has one
REPLIED = 0.35  # share of facts that the assistant acknowledges
CHATTER = 0.25  # share of facts after small talk
REQUESTED = 0.15  # share of facts after an earlier request

Place = list[int]  # session and message


@dataclass(frozen=True)
class Request:
    text: str
    topics: frozenset[str]


@dataclass(frozen=True)
class Fact:
    text: str
    language: str
    kind: str
    topics: frozenset[str]
    one_of: str
    requests: tuple[Request, ...]
    across: tuple[Request, ...]  # in the other language


@dataclass(frozen=True)
class Common:
    """Requests for which all facts with a topic matter."""

    topic: str
    language: str
    requests: tuple[Request, ...]


@dataclass(frozen=True)
class Material:
    facts: tuple[Fact, ...]
    common: tuple[Common, ...]
    absent: dict[str, tuple[Request, ...]]
    replies: dict[str, list[str]]


@cache
def material() -> Material:
    """Read the facts and requests of both languages."""
    facts, common, absent, replies = [], [], {}, {}
    for language in LANGUAGES:
        raw = tomllib.loads((DATA / f"indirect_train_{language}.toml").read_text("utf-8"))
        facts += [_fact(one, language) for one in raw["fact"]]
        common += [
            Common(one["topic"], language, _requests(one["requests"], [one["topic"], *one["ignored"]]))
            for one in raw["common"]
        ]
        absent[language] = tuple(
            request for one in raw["absent"] for request in _requests(one["requests"], one["topics"])
        )
        replies[language] = raw["replies"]
    return Material(tuple(facts), tuple(common), absent, replies)


def _fact(raw: Any, language: str) -> Fact:
    requests, across = (_requests(raw.get(key, ()), raw["topics"]) for key in ("requests", "across"))
    kind, topics = raw.get("kind", "fact"), frozenset(raw["topics"])
    return Fact(raw["text"], language, kind, topics, raw.get("one_of", ""), requests, across)


def _requests(raws: Iterable[str | list[str]], topics: Sequence[str]) -> tuple[Request, ...]:
    """Return requests with these topics; a list is a text with further topics."""
    pairs = [(raw, []) if isinstance(raw, str) else (raw[0], raw[1:]) for raw in raws]
    return tuple(Request(text, frozenset([*topics, *further])) for text, further in pairs)


class Writer:
    """Writes one story."""

    def __init__(self, templates: dict[str, Any], name: str, seed: int) -> None:
        self._chance = random.Random(seed)
        self._chatter, self._around = templates["chatter"], templates["around"]
        self._language = "mixed" if self._chance.random() < MIXED else self._chance.choice(LANGUAGES)
        self._name = name

    def story(self) -> dict[str, Any]:
        pool = [fact for fact in material().facts if self._speaks(fact.language)]
        missing = self._chance.sample(pool, MISSING)
        facts = self._drawn(pool, missing)
        sessions, places = [], {}
        for number, fact in enumerate(facts):
            messages = self._session(fact, pool)
            places[fact] = [number, next(at for at, one in enumerate(messages) if one["about"] == "self")]
            sessions.append({"at": day(number), "messages": messages})
        return {
            "id": self._name,
            "language": self._language,
            "user": self._chance.choice(USERS),
            "asked_at": day(len(facts), later=5),
            "sessions": sessions,
            "questions": [*self._about(places), *self._common(places), *self._absent(places, missing)],
            "junk": self._chatter,
        }

    def _speaks(self, language: str) -> bool:
        return self._language in (language, "mixed")

    def _drawn(self, pool: list[Fact], missing: list[Fact]) -> list[Fact]:
        """Sample facts that don't contradict each other and share no topic with the missing ones."""
        barred = {topic for fact in missing for request in fact.requests for topic in request.topics}
        available = [fact for fact in pool if barred.isdisjoint(fact.topics)]
        wanted, found, taken = self._chance.randint(*FACTS), list[Fact](), set[str]()
        for fact in self._chance.sample(available, len(available)):
            if len(found) < wanted and fact.one_of not in taken:
                found.append(fact)
                taken |= {fact.one_of} - {""}
        return found

    def _session(self, fact: Fact, pool: list[Fact]) -> list[dict[str, str]]:
        chance = self._chance
        text = sometimes_wrapped(fact.text, self._around, chance)
        messages = [{"role": "user", "text": text, "kind": fact.kind, "about": "self"}]
        reply = {"role": "assistant", "kind": "smalltalk", "about": "none"}
        if chance.random() < CHATTER:
            messages.insert(0, reply | {"role": "user", "text": chance.choice(self._chatter)})
        if chance.random() < REQUESTED:
            earlier = chance.choice(chance.choice(pool).requests).text
            messages.insert(0, {"role": "user", "text": earlier, "kind": "request", "about": "none"})
        if chance.random() < REPLIED:
            messages.append(reply | {"text": chance.choice(material().replies[fact.language])})
        return messages

    def _about(self, places: dict[Fact, Place]) -> list[dict[str, Any]]:
        asked = self._chance.sample(list(places), self._chance.randint(*ASKED))
        return [
            _question(self._request(fact), [fact], places, "instruction" if fact.kind == "instruction" else "task")
            for fact in asked
        ]

    def _request(self, fact: Fact) -> Request:
        across = fact.across and self._chance.random() < ACROSS
        return self._chance.choice(fact.across if across else fact.requests)

    def _common(self, places: dict[Fact, Place]) -> list[dict[str, Any]]:
        """Ask a request for which several facts may matter, if one of them is in the story."""
        found = {
            one: [fact for fact in places if one.topic in fact.topics]
            for one in material().common
            if self._speaks(one.language)
        }
        known = [one for one, facts in found.items() if facts]
        return [
            _question(self._chance.choice(one.requests), found[one], places, "task")
            for one in self._chance.sample(known, min(1, len(known)))
        ]

    def _absent(self, places: dict[Fact, Place], missing: list[Fact]) -> list[dict[str, Any]]:
        languages = [language for language in LANGUAGES if self._speaks(language)]
        asked = [self._chance.choice(material().absent[self._chance.choice(languages)])]
        asked += [self._request(fact) for fact in missing]
        return [_question(request, [], places, "absent") for request in asked]


def _question(request: Request, facts: list[Fact], places: dict[Fact, Place], kind: str) -> dict[str, Any]:
    related = [fact for fact in places if fact not in facts and not request.topics.isdisjoint(fact.topics)]
    return {
        "q": request.text,
        "gold": [places[fact] for fact in facts],
        "related": [places[fact] for fact in related],
        "must": [[re.escape(fact.text)] for fact in facts],
        "never": [],
        "kind": kind,
    }


def stories(count: int = COUNT, seed: int = 0) -> list[dict[str, Any]]:
    templates = tomllib.loads(TEMPLATES.read_text("utf-8"))
    return [Writer(templates, f"indirect-{number}", 1000 * seed + number).story() for number in range(count)]


if __name__ == "__main__":
    write("indirect_stories", __doc__, stories, COUNT)
