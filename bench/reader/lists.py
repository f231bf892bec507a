"""Training lists: a question with its positives and a mix of hard, stale, random and made-up negatives; newer
statements with older ones; memories with the messages that they may come from."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jiyi.reader import USER, Passage, pairs
from jiyi.reader.pairs import Pair

LABELS = ("ends", "repeats", "stands")
ENDS, REPEATS, STANDS = range(3)
STATING = ("fact", "preference", "plan", "event", "decision", "instruction")
STATING_NOTHING = ("question", "request", "smalltalk", "joke", "nonanswer")
MADE = ("plain", "indirect")  # stories that are put together from parts
KINDS = (
    *STATING, "change", "end", "correction", *STATING_NOTHING, "quote", "knowledge", "answer",
)  # fmt: skip
NON_ANSWERS = {
    "en": (
        "I'm not sure about that.",
        "I don't know, you haven't told me.",
        "no idea tbh",
        "Let me check and get back to you.",
        "Good question! Could you tell me more?",
    ),
    "zh": ("这个我不太清楚。", "不知道诶", "你还没告诉过我呢。", "我也忘了", "我查一下再告诉你"),
}


@dataclass(frozen=True)
class Mix:
    """Shares of the lists, numbers of candidates, and chances of variations."""

    shares: tuple[tuple[str, float], ...] = (
        ("contrast", 0.2), ("messy", 0.25), ("everyday", 0.35), ("plain", 0.05), ("indirect", 0.05), ("molweni", 0.05),
        ("cmrc2018", 0.05),
    )  # fmt: skip
    positives: int = 3
    stale: int = 4
    hard: int = 7
    near: int = 4
    foreign: int = 2
    asked_before: float = 0.15
    non_answer: float = 0.1
    without_before: float = 0.3
    without_speaker: float = 0.1
    renamed: float = 0.2
    unmarked: float = 0.12  # without punctuation and upper case
    story_changes: float = 0.35  # share of the lists of changes that come from stories


@dataclass(frozen=True, slots=True)
class Example:
    pair: Pair
    label: float
    kind: int = -1


@dataclass
class Sampler:
    stories: Sequence[Any]
    changes: Sequence[Any]
    grounding: Sequence[Any]
    mix: Mix
    chance: random.Random
    questions: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    peers: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    replaced: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, story in enumerate(self.stories):
            self.peers[_peers(story)].append(number)
            self.questions[story["source"]] += [(number, at) for at in range(len(story["questions"]))]
            self.replaced += [(story, *change) for change in changes_of(story)]
        self.ending = [one for one in self.replaced if one[2]]
        self.standing = [one for one in self.replaced if not one[2]]

    def answers(self) -> list[Example]:
        """Sample a question, and statements with label 1 if they answer it."""
        names, shares = zip(*((n, s) for n, s in self.mix.shares if self.questions[n]), strict=True)
        [source] = self.chance.choices(names, shares)
        number, at = self.chance.choice(self.questions[source])
        story = self.stories[number]
        question = story["questions"][at]
        rename = self._renaming(story) if self.chance.random() < self.mix.renamed else {}
        unmarked = self.chance.random() < self.mix.unmarked
        asked = renamed(question["text"], rename)
        asked = plain(asked) if unmarked else asked
        found = [self._example(asked, story, index, label, rename) for index, label in self._choices(story, question)]
        found += [self._foreign(asked, story) for _ in range(self.mix.foreign)]
        language = "zh" if re.search(r"[\u4e00-\u9fff]", asked) else "en"
        if self.chance.random() < self.mix.asked_before:
            found.append(Example(pairs.answers(asked, Passage(asked)), 0.0))
        if self.chance.random() < self.mix.non_answer:
            text = self.chance.choice(NON_ANSWERS[language])
            found.append(Example(pairs.answers(asked, Passage(text, "assistant", asked)), 0.0))
        return found

    def changed(self) -> list[Example]:
        """Sample a newer statement, and older ones with what it does to them."""
        if self.chance.random() < self.mix.story_changes and self.ending:
            pool = self.ending if self.chance.random() < 0.6 else self.standing
            story, newer, old, near = self.chance.choice(pool)
            messages = story["messages"]
            rename = self._renaming(story) if self.chance.random() < self.mix.renamed else {}
            chosen = [(at, ENDS) for at in old[:3]]
            chosen += [(at, STANDS) for at in self.chance.sample(near, min(6, len(near)))]
            new = messages[newer]
            return [
                Example(
                    pairs.changes(
                        Passage(renamed(new["text"], rename), _speaker(story, new)),
                        Passage(renamed(messages[at]["text"], rename), _speaker(story, messages[at])),
                    ),
                    label,
                )
                for at, label in chosen
            ]  # fmt: skip
        record = self.chance.choice(self.changes)
        older = record["older"]
        unmarked = self.chance.random() < self.mix.unmarked
        newer = plain(record["newer"]) if unmarked else record["newer"]
        own = record["speaker"] if self.chance.random() < 0.15 else USER

        def by(name: str) -> str:
            return own if name == record["speaker"] else name

        return [
            Example(
                pairs.changes(Passage(newer, by(record["newer_by"])), Passage(one["said"], by(one["by"]))),
                LABELS.index(one["label"]),
            )
            for one in older
        ]

    def supported(self) -> list[Example]:
        """Sample messages, and memories with label 1 if the messages support them."""
        record = self.chance.choice(self.grounding)
        messages = "\n".join(record["messages"])
        found = [(memory, 1.0) for memory in record["true"]] + [(memory, 0.0) for memory in record["false"]]
        other = self.chance.choice(self.grounding)
        if other is not record and other["lang"] == record["lang"]:
            found.append((self.chance.choice(other["true"]), 0.0))
        return [Example(pairs.supports(messages, memory), label) for memory, label in found]

    def _choices(self, story: Any, question: Any) -> list[tuple[int, float]]:
        mix = self.mix
        positive = self.chance.sample(question["positive"], min(mix.positives, len(question["positive"])))
        barred = {*question["positive"], *question["ignored"]}
        stale = self.chance.sample(question["stale"], min(mix.stale, len(question["stale"])))
        barred.update(stale)
        hard = [at for at in question.get("hard", ()) if at not in barred]
        if story["source"] == "contrast":  # records of one block may share a topic: few of them
            hard = hard[:3]
        # The first few are the most confusing ones; take half of them surely and the others by chance.
        first, others = hard[: mix.hard // 2], hard[mix.hard // 2 : mix.hard * 2]
        first = first + self.chance.sample(others, min(mix.hard - len(first), len(others)))
        barred.update(first)
        near = [at for at in range(len(story["messages"])) if at not in barred]
        near = self.chance.sample(near, min(mix.near + (0 if hard else mix.hard), len(near)))
        return [(at, 1.0) for at in positive] + [(at, 0.0) for at in [*stale, *first, *near]]

    def _example(self, asked: str, story: Any, index: int, label: float, rename: dict[str, str]) -> Example:
        message, mix = story["messages"][index], self.mix
        before = ""
        if message["previous"] >= 0 and self.chance.random() >= mix.without_before:
            before = renamed(story["messages"][message["previous"]]["text"], rename)
        speaker = self._shown_speaker(story, message, rename)
        text = renamed(message["text"], rename)
        if self.chance.random() < mix.unmarked:
            text = plain(text)
        kind = KINDS.index(message["kind"]) if message.get("kind") in KINDS else -1
        return Example(pairs.answers(asked, Passage(text, speaker, before)), label, kind)

    def _shown_speaker(self, story: Any, message: Any, rename: dict[str, str]) -> str:
        if self.chance.random() < self.mix.without_speaker:
            return ""
        speaker = _speaker(story, message)
        # The questions of contrast records are asked by the speaker, who may or may not be known as the user.
        if story["source"] == "contrast" and speaker != "assistant" and self.chance.random() < 0.5:
            return USER
        return renamed(speaker, rename)

    def _foreign(self, asked: str, story: Any) -> Example:
        # Made stories share their statements or attributes, so another one's statement may well be an answer.
        key = f"everyday {story['language']}" if story["source"] in MADE else _peers(story)
        other = self.stories[self.chance.choice(self.peers[key])]
        # So many statements bear on a request that only messages that state nothing are surely irrelevant to it.
        open_to_all = story["source"] != "indirect"
        found = [at for at, one in enumerate(other["messages"]) if open_to_all or one.get("kind") in STATING_NOTHING]
        return self._example(asked, other, self.chance.choice(found), 0.0, {})

    def _renaming(self, story: Any) -> dict[str, str]:
        """Map the speakers of a story to the speakers of others of the same script."""
        speakers = {message["speaker"] for message in story["messages"]} - {"assistant", "user", ""}
        out = {}
        for name in sorted(speakers):
            other = self.stories[self.chance.choice(self.peers[_peers(story)])]["user"]
            if other and len(name) > 1 and other.isascii() == name.isascii():
                out[name] = other
        return out


def changes_of(story: Any) -> list[tuple[int, list[int], list[int]]]:
    """Return messages with the older ones that they replace and those that are near but stay true."""
    if "near" not in story:
        return []
    messages = story["messages"]
    replaced: dict[int, set[int]] = {}
    barred: dict[int, set[int]] = defaultdict(set)
    for question in story["questions"]:
        related = {*question["positive"], *question["ignored"], *question["stale"]}
        for newer in question["positive"]:
            barred[newer].update(related)
            if question["kind"] in ("changed", "correction") and messages[newer]["speaker"] != "assistant":
                older = [at for at in question["stale"] if at < newer and messages[at]["speaker"] != "assistant"]
                replaced.setdefault(newer, set()).update(older)
    found = []
    for newer, near in enumerate(story["near"]):
        old = sorted(replaced.get(newer, ()))
        if not near or (not old and (newer in replaced or messages[newer]["kind"] not in STATING)):
            continue
        found.append((newer, old, [at for at in near if at not in barred[newer]]))
    return found


def _speaker(story: Any, message: Any) -> str:
    """Return the speaker; the user's own messages are marked as such, whatever the user's name."""
    return USER if message["speaker"] == story["user"] else str(message["speaker"])


def _peers(story: Any) -> str:
    return f"{story['source']} {story['language']}"


def renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = re.sub(rf"\b{re.escape(old)}\b", new, text) if old.isascii() else text.replace(old, new)
    return text


def plain(text: str) -> str:
    """Return a text as people type it in a hurry: without punctuation and upper case."""
    return re.sub(r"\s+", " ", re.sub(r"[,.!?;:，。！？；：、…]+(?=\s|$|[\u4e00-\u9fff])", " ", text.lower())).strip()
