"""Condense memories to their informative sentences, verbatim: nothing is invented and no particulars are lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..languages.dates import dates
from ..languages.terms import tokens
from ..languages.words import language
from ..languages.zh.words import STOP_WORDS
from ..text_cache import text_cache
from .particulars import particulars

_END = re.compile(
    r"(?<=[。！？；!?\n])\s*|(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bNo\.)(?<=\.)\s+(?=[^a-z])"
)
DUPLICATE = 0.8  # Jaccard similarity of the words of two sentences that say the same
# An informative sentence without particulars needs this many words, or Chinese characters, besides small talk.
MIN_WORDS, MIN_CHARACTERS = 2, 3
SMALL_TALK = frozenset(
    """
    thank sound good ok okay sure great nice hello hi hey bye morn even night see later fine cool perfect welcom lol
    haha glad idea love well 好 的 谢 行 嗯 哈 早 晚 安 再 见 不 客 气 对 是 啊 哦 收 到 明 白 知 道 了 辛 苦
    """.split()  # noqa: SIM905 - a list is easier to read as one
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedText:
    """The text of a memory and when it was said."""

    id: str
    text: str
    at: datetime
    by_assistant: bool = False


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    at: datetime
    words: frozenset[str]
    particulars: frozenset[str]
    informative: bool


def condense(members: Sequence[DatedText]) -> str:
    """Return one line per day, oldest first; empty if nothing is informative.

    Repeated sentences are kept once, on the last day. Questions and small talk are dropped, unless a name, number or
    date would be lost with them.
    """
    kept: list[_Sentence] = []
    for one in sorted(members, key=lambda member: member.at):
        for sentence in _sentences(one):
            kept = _merge(kept, sentence)
    needed = _needed(kept)
    return _lines(sentence for at, sentence in enumerate(kept) if at in needed)


@text_cache(8192)  # grouping condenses the same members many times
def _sentences(one: DatedText) -> tuple[_Sentence, ...]:
    return tuple(_read(one))


def _read(one: DatedText) -> Iterable[_Sentence]:
    """Split into sentences; a line of an earlier compression starts with its own day."""
    for line in one.text.splitlines():
        day, rest = _day_of(line, one.at)
        for text in filter(None, (part.strip() for part in _END.split(rest))):
            words, found = _words(text), particulars(text)
            is_question = "?" in text or "？" in text
            informative = bool(found or dates(text, day)) or (_is_informative(words) and not one.by_assistant)
            if words:
                yield _Sentence(text, day, words, found, informative and not is_question)


def _is_informative(words: frozenset[str]) -> bool:
    content = words - SMALL_TALK
    return sum(word.isascii() for word in content) >= MIN_WORDS or (
        sum(not word.isascii() for word in content) >= MIN_CHARACTERS
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
    """English stems and single Chinese characters."""
    return frozenset(term for term in tokens(text) if (len(term) == 1 or term.isascii()) and term not in STOP_WORDS)


def _merge(kept: list[_Sentence], new: _Sentence) -> list[_Sentence]:
    """Add a newer sentence, or replace the one that it repeats."""
    for at, old in enumerate(kept):
        similarity = len(old.words & new.words) / len(old.words | new.words)
        if similarity >= DUPLICATE and old.particulars <= new.particulars:
            return [*kept[:at], *kept[at + 1 :], new]
        if similarity >= DUPLICATE and new.particulars <= old.particulars:
            return kept
    return [*kept, new]


def _needed(kept: Sequence[_Sentence]) -> set[int]:
    """Indexes of informative sentences, and of others without which a particular would be lost."""
    needed = {at for at, sentence in enumerate(kept) if sentence.informative}
    covered = frozenset().union(*(kept[at].particulars for at in needed))
    for at, sentence in enumerate(kept):
        if at not in needed and not sentence.particulars <= covered:
            needed.add(at)
            covered |= sentence.particulars
    return needed


def _lines(sentences: Iterable[_Sentence]) -> str:
    days: dict[str, list[str]] = {}
    for sentence in sentences:
        days.setdefault(f"{sentence.at:%Y-%m-%d}", []).append(sentence.text)
    return "\n".join(f"{day}: {_join(texts)}" for day, texts in sorted(days.items()))


def _join(texts: Sequence[str]) -> str:
    joined = texts[0]
    for text in texts[1:]:
        if joined[-1] in "。！？；":
            separator = ""
        elif joined[-1] in ".!?;)":
            separator = " "
        else:
            separator = "；" if _is_chinese(joined) else "; "
        joined += separator + text
    return joined


def _is_chinese(text: str) -> bool:
    return language(text) in ("zh", "mixed")
