"""A shorter telling in the words of the originals: no language model, nothing made up, no particulars lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..languages.dates import dates
from ..languages.script import language
from ..languages.tokens import tokens
from ..languages.zh.words import STOP_WORDS
from ..text_cache import text_cache
from .particulars import particulars

_END = re.compile(
    r"(?<=[。！？；!?\n])\s*|(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bNo\.)(?<=\.)\s+(?=[^a-z])"
)
SAME = 0.8  # share of words that two sentences have in common which say the same
# A sentence without particulars must have so many words, or Chinese characters, besides these to tell something.
LEAST_WORDS, LEAST_CHARACTERS = 2, 3
SMALL_TALK = frozenset(
    """
    thank sound good ok okay sure great nice hello hi hey bye morn even night see later fine cool perfect welcom lol
    haha glad idea love well 好 的 谢 行 嗯 哈 早 晚 安 再 见 不 客 气 对 是 啊 哦 收 到 明 白 知 道 了 辛 苦
    """.split()  # noqa: SIM905 - a list is easier to read as one
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one memory tells, and when it was said."""

    id: str
    text: str
    at: datetime
    by_assistant: bool = False


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    at: datetime
    words: frozenset[str]
    held: frozenset[str]  # its particulars
    tells: bool


def extract(members: Sequence[Told]) -> str:
    """One line a day, oldest first. Nothing at all if nobody told anything.

    What was said twice is said once, on the day it was said last. Questions and small talk go, unless a name, number or
    date would go with them.
    """
    kept: list[_Sentence] = []
    for one in sorted(members, key=lambda member: member.at):
        for sentence in _sentences(one):
            kept = _joined(kept, sentence)
    needed = _needed(kept)
    return _lines(sentence for at, sentence in enumerate(kept) if at in needed)


@text_cache(8192)  # groups are tried member by member
def _sentences(one: Told) -> tuple[_Sentence, ...]:
    return tuple(_read(one))


def _read(one: Told) -> Iterable[_Sentence]:
    """A line of an earlier extract has its own day."""
    for line in one.text.splitlines():
        day, said = _day_of(line, one.at)
        for text in filter(None, (part.strip() for part in _END.split(said))):
            words, held = _words(text), particulars(text)
            asks = "?" in text or "？" in text
            told = bool(held or dates(text, day)) or (_tells(words) and not one.by_assistant)
            if words:
                yield _Sentence(text, day, words, held, told and not asks)


def _tells(words: frozenset[str]) -> bool:
    said = words - SMALL_TALK
    return sum(word.isascii() for word in said) >= LEAST_WORDS or (
        sum(not word.isascii() for word in said) >= LEAST_CHARACTERS
    )


_DAY = re.compile(r"(\d{4}-\d{2}-\d{2}): ")


def _day_of(line: str, at: datetime) -> tuple[datetime, str]:
    found = _DAY.match(line)
    if found is None:
        return at, line
    try:
        day = datetime.fromisoformat(found.group(1)).replace(tzinfo=at.tzinfo, hour=12)
    except ValueError:
        return at, line
    return day, line[found.end() :]


def _words(text: str) -> frozenset[str]:
    """Stems, and single characters of Chinese."""
    return frozenset(term for term in tokens(text) if (len(term) == 1 or term.isascii()) and term not in STOP_WORDS)


def _joined(kept: list[_Sentence], new: _Sentence) -> list[_Sentence]:
    """The sentences with a newer one beside them, or in the place of the one that it repeats."""
    for at, old in enumerate(kept):
        alike = len(old.words & new.words) / len(old.words | new.words)
        if alike >= SAME and old.held <= new.held:
            return [*kept[:at], *kept[at + 1 :], new]
        if alike >= SAME and new.held <= old.held:
            return kept
    return [*kept, new]


def _needed(kept: Sequence[_Sentence]) -> set[int]:
    """All that tell something; of the others, those without which a particular would be lost."""
    needed = {at for at, sentence in enumerate(kept) if sentence.tells}
    had = frozenset().union(*(kept[at].held for at in needed))
    for at, sentence in enumerate(kept):
        if at not in needed and not sentence.held <= had:
            needed.add(at)
            had |= sentence.held
    return needed


def _lines(sentences: Iterable[_Sentence]) -> str:
    days: dict[str, list[str]] = {}
    for sentence in sentences:
        days.setdefault(f"{sentence.at:%Y-%m-%d}", []).append(sentence.text)
    return "\n".join(f"{day}: {_together(texts)}" for day, texts in sorted(days.items()))


def _together(texts: Sequence[str]) -> str:
    told = texts[0]
    for text in texts[1:]:
        joint = "" if told[-1] in "。！？；" else " " if told[-1] in ".!?;)" else "；" if _chinese(told) else "; "
        told += joint + text
    return told


def _chinese(text: str) -> bool:
    return language(text) in ("zh", "mixed")
