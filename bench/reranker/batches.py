"""Training lists: a question with its positives and a mix of hard, stale, random and made-up negatives."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

from jiyi_rerank.inputs import UNKNOWN_AGE, age_bucket, message_ids, newer_ids, question_ids, rank_buckets
from jiyi_rerank.wordpiece import WordPiece, is_han

NON_ANSWERS = {
    "en": (
        "I'm not sure about that.",
        "I don't know, you haven't told me.",
        "no idea tbh",
        "Let me check and get back to you.",
        "Good question! Could you tell me more?",
        "can't remember",
    ),
    "zh": (
        "这个我不太清楚。",
        "不知道诶",
        "你还没告诉过我呢。",
        "我也忘了",
        "好问题，能多说一点吗？",
        "我查一下再告诉你",
    ),
}


KINDS = (
    "fact",
    "preference",
    "plan",
    "event",
    "decision",
    "instruction",
    "change",
    "end",
    "correction",
    "question",
    "request",
    "smalltalk",
    "joke",
    "quote",
    "knowledge",
    "answer",
    "nonanswer",
)

MADE = ("plain", "indirect")  # sources of stories that are put together from parts
STATING_NOTHING = ("question", "request", "smalltalk", "joke", "nonanswer")


@dataclass(frozen=True)
class Mix:
    """Numbers of candidates of each kind in a list, and the chances of variations."""

    positives: int = 3
    stale: int = 4
    hard: int = 8
    near: int = 5  # others of the same story
    foreign: int = 4  # of other stories
    asked_before: float = 0.3
    non_answer: float = 0.2
    without_previous: float = 0.4
    without_speaker: float = 0.1
    without_age: float = 0.1
    renamed: float = 0.25  # speakers get other names
    plain_changes: float = 0.3  # of the lists of changes, share from plain stories
    switched: float = 0.15  # some words of the question are translated
    lengthened: float = 0.12  # a message stands between messages of another story
    dropped: float = 0.06  # of the tokens of questions and messages, chance of each


@dataclass
class Candidate:
    ids: list[int]
    label: float
    at: float | None = None
    age: int = UNKNOWN_AGE
    rank: int = UNKNOWN_AGE
    kind: int = -1  # index in KINDS, if known


@dataclass
class Sampler:
    stories: list[Any]
    pieces: WordPiece
    mix: Mix
    chance: random.Random
    switch: CodeSwitch
    by_source: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    peers: dict[str, list[int]] = field(default_factory=dict)
    changes: dict[str, list[Change]] = field(default_factory=dict)  # by source
    encoded: dict[tuple[str, str, str], list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, story in enumerate(self.stories):
            self.peers.setdefault(_peer_key(story), []).append(number)
            places = [(number, at) for at in range(len(story["questions"]))]
            self.by_source.setdefault(story["source"], []).extend(places)
            changes = [change for change in changes_of(story) if change.replaced or self.chance.random() < 0.3]
            self.changes.setdefault(story["source"], []).extend(changes)

    def list_of(self, source: str) -> tuple[list[int], list[Candidate]]:
        """Sample a question of a source; return its ids and candidates."""
        number, at = self.chance.choice(self.by_source[source])
        story = self.stories[number]
        question = story["questions"][at]
        rename = self._renaming(story) if self.chance.random() < self.mix.renamed else {}
        asked = renamed(question["text"], rename)
        if self.chance.random() < self.mix.switched:
            asked = self.switch.some_words(asked, self.chance)
        found = [self._candidate(story, index, label, rename) for index, label in self._choices(story, question)]
        found += [self._foreign(story) for _ in range(self.mix.foreign)]
        found += self._made_up(story, asked)
        self._set_ages(story, found)
        return self._noisy(question_ids(self.pieces, asked)), found

    def _noisy(self, ids: list[int]) -> list[int]:
        """Replace some tokens by an unknown one."""
        if not self.mix.dropped:
            return ids
        return [
            self.pieces.unk if at and self.chance.random() < self.mix.dropped else one for at, one in enumerate(ids)
        ]

    def replaced_list(self) -> tuple[list[int], list[Candidate]]:
        """Sample a message; return its ids as a newer one, and older messages with label 1 if it replaces them."""
        source = "plain" if self.chance.random() < self.mix.plain_changes else "everyday"
        change = self.chance.choice(self.changes[source])
        story = change.story
        rename = self._renaming(story) if self.chance.random() < self.mix.renamed else {}
        newer = story["messages"][change.newer]
        others = [at for at in range(change.newer) if at not in change.known]
        chosen = [(at, 1.0) for at in change.replaced[: self.mix.positives]]
        chosen += [(at, 0.0) for at in change.near[: self.mix.hard]]
        chosen += [(at, 0.0) for at in self.chance.sample(others, min(self.mix.near, len(others)))]
        found = [self._candidate(story, index, label, rename) for index, label in chosen]
        if self.chance.random() >= self.mix.without_age:
            for candidate in found:
                candidate.age = age_bucket(newer["at"] - (candidate.at or 0.0))
        return self._noisy(newer_ids(self.pieces, renamed(newer["text"], rename))), found

    def _choices(self, story: Any, question: Any) -> list[tuple[int, float]]:
        positive = self.chance.sample(question["positive"], min(self.mix.positives, len(question["positive"])))
        barred = {*question["positive"], *question["ignored"]}
        stale = self.chance.sample(question["stale"], min(self.mix.stale, len(question["stale"])))
        barred.update(stale)
        hard = [at for at in question.get("hard", ()) if at not in barred]
        # The first few are the most confusing ones; take half of them surely and the others by chance.
        first, others = hard[: self.mix.hard // 2], hard[self.mix.hard // 2 : self.mix.hard * 2]
        first += self.chance.sample(others, min(self.mix.hard - len(first), len(others)))
        barred.update(first)
        near = [at for at in range(len(story["messages"])) if at not in barred]
        near = self.chance.sample(near, min(self.mix.near + (0 if hard else self.mix.hard), len(near)))
        return [(at, 1.0) for at in positive] + [(at, 0.0) for at in stale + first + near]

    def _candidate(self, story: Any, index: int, label: float, rename: dict[str, str]) -> Candidate:
        message = story["messages"][index]
        previous = ""
        if message["previous"] >= 0 and self.chance.random() >= self.mix.without_previous:
            previous = renamed(story["messages"][message["previous"]]["text"], rename)
        speaker = "" if self.chance.random() < self.mix.without_speaker else renamed(message["speaker"], rename)
        kind = KINDS.index(message["kind"]) if message.get("kind") in KINDS else -1
        text = renamed(message["text"], rename)
        if story["source"] in ("everyday", *MADE) and self.chance.random() < self.mix.lengthened:
            ids, kind = message_ids(self.pieces, speaker, self._lengthened(story, text), previous), -1
        else:
            ids = self._ids(speaker, text, previous)
        ids = self._noisy(ids)
        return Candidate(ids, label, message["at"] or None, kind=kind)

    def _lengthened(self, story: Any, text: str) -> str:
        """Put messages of another story around a text: what it answers stays the same."""
        other = self.stories[self.chance.choice(self.peers[f"everyday {story['language']}"])]["messages"]
        parts = [message["text"] for message in self.chance.choices(other, k=self.chance.randint(1, 3))]
        parts.insert(self.chance.randint(0, len(parts)), text)
        return " ".join(parts)

    def _ids(self, speaker: str, text: str, previous: str) -> list[int]:
        key = (speaker, text, previous)
        if key not in self.encoded:
            self.encoded[key] = message_ids(self.pieces, *key)
        return self.encoded[key]

    def _foreign(self, story: Any) -> Candidate:
        # Made stories share their statements or attributes, so another one's statement may well be an answer.
        key = f"everyday {story['language']}" if story["source"] in MADE else _peer_key(story)
        other = self.stories[self.chance.choice(self.peers[key])]
        # So many statements bear on a request that only messages that state nothing are surely irrelevant to it.
        open_to_all = story["source"] != "indirect"
        found = [at for at, one in enumerate(other["messages"]) if open_to_all or one["kind"] in STATING_NOTHING]
        candidate = self._candidate(other, self.chance.choice(found), 0.0, {})
        times = [message["at"] for message in story["messages"]]
        candidate.at = self.chance.uniform(min(times), max(times)) if times[0] else None
        return candidate

    def _made_up(self, story: Any, asked: str) -> list[Candidate]:
        language = "zh" if any(map(is_han, asked)) else "en"
        latest = story["messages"][-1]["at"] or None
        found = []
        if self.chance.random() < self.mix.asked_before:
            speaker = self.chance.choice((story["user"], "user", ""))
            found.append(Candidate(message_ids(self.pieces, speaker, asked), 0.0, latest))
        if self.chance.random() < self.mix.non_answer:
            text = self.chance.choice(NON_ANSWERS[language])
            found.append(Candidate(message_ids(self.pieces, "assistant", text, asked), 0.0, latest))
        return found

    def _set_ages(self, story: Any, found: list[Candidate]) -> None:
        if not found[0].at or self.chance.random() < self.mix.without_age:
            return
        for candidate, rank in zip(found, rank_buckets([c.at or 0.0 for c in found]), strict=True):
            candidate.age, candidate.rank = age_bucket(story["asked_at"] - (candidate.at or 0.0)), rank

    def _renaming(self, story: Any) -> dict[str, str]:
        """Map the speakers of a story to the speakers of others of the same script."""
        speakers = {message["speaker"] for message in story["messages"]} - {"assistant", "user", ""}
        out = {}
        for name in sorted(speakers):
            other = self.stories[self.chance.choice(self.peers[_peer_key(story)])]["user"]
            if other and len(name) > 1 and other.isascii() == name.isascii():
                out[name] = other
        return out


@dataclass(frozen=True)
class Change:
    """A message, the older ones that it replaces, and those that are near but stay true."""

    story: Any
    newer: int
    replaced: list[int]
    near: list[int]

    @property
    def known(self) -> set[int]:
        return {*self.replaced, *self.near}


STATING = ("fact", "preference", "plan", "event", "decision", "instruction")


def changes_of(story: Any) -> list[Change]:
    """Return the changes that a story's questions ask about, and statements that replace nothing."""
    if "near" not in story:
        return []
    messages, replaced, barred = story["messages"], dict[int, set[int]](), dict[int, set[int]]()
    for question in story["questions"]:
        related = {*question["positive"], *question["ignored"], *question["stale"]}
        for newer in question["positive"]:
            barred.setdefault(newer, set()).update(related)
            if question["kind"] in ("changed", "correction") and messages[newer]["speaker"] != "assistant":
                older = [at for at in question["stale"] if at < newer and messages[at]["speaker"] != "assistant"]
                replaced.setdefault(newer, set()).update(older)
    found = []
    for newer, near in enumerate(story["near"]):
        old = sorted(replaced.get(newer, ()))
        if not near or (not old and (newer in replaced or messages[newer]["kind"] not in STATING)):
            continue
        found.append(Change(story, newer, old, [at for at in near if at not in barred.get(newer, ())]))
    return found


class CodeSwitch:
    """Word-by-word translation of parts of a text, by a dictionary of (Chinese word, English gloss) pairs."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.chinese: dict[str, list[str]] = {}
        self.english: dict[str, list[str]] = {}
        for word, gloss in pairs:
            plain = gloss.removeprefix("to ").lower()
            if plain.isalpha() and plain.isascii() and len(plain) > 2 and len(word) <= 4:
                self.chinese.setdefault(plain, []).append(word)
                if len(word) > 1:
                    self.english.setdefault(word, []).append(plain)

    def some_words(self, text: str, chance: random.Random, share: float = 0.5) -> str:
        def chinese(found: re.Match[str]) -> str:
            words = self.chinese.get(found.group().lower())
            return chance.choice(words) if words and chance.random() < share else found.group()

        if not any(map(is_han, text)):
            return re.sub(r"[A-Za-z]{4,}", chinese, text)
        out, at = "", 0
        while at < len(text):
            size = next((size for size in (4, 3, 2) if text[at : at + size] in self.english), 0)
            if size and chance.random() < share:
                out += f" {chance.choice(self.english[text[at : at + size]])} "
            else:
                out += text[at : at + max(size, 1)]
            at += max(size, 1)
        return out


def _peer_key(story: Any) -> str:
    return f"{story['source']} {story['language']}"


def renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = re.sub(rf"\b{re.escape(old)}\b", new, text) if old.isascii() else text.replace(old, new)
    return text
