"""Particulars: statements that no rule knows, but that hold a number or a name worth keeping."""

from __future__ import annotations

import re

from .clause import PERSONS, Claim, Clause
from .lexicon import pattern, words
from .values import plain_value


def particulars(clause: Clause) -> Claim | None:
    """Statistics instead of grammar: who it is about, and how much it says that could not be guessed."""
    if clause.language == "zh" and not clause.verb and clause.bare != clause.content:
        # A scrap; it belongs to what was said before it.
        return None
    if clause.language == "zh" and (
        len(clause.rest) < 2 or (clause.rest.endswith("的") and clause.bare != clause.content)
    ):
        return None
    if clause.doubtful or not 3 <= _length(clause) <= 60 or pattern("all", "at work").search(clause.text):
        return None
    told = _told(clause)
    if told < 1.5:
        return None
    future = (clause.future or any(span.start > clause.at for span in clause.times)) and not clause.negated
    since = clause.perfect and _SINCE.search(clause.text) is not None
    happened = (clause.past or clause.perfect) and not since
    memory_type = "event" if future or (happened and clause.times) else "fact"
    value = plain_value(clause.rest or clause.text, clause.language)
    return Claim(
        memory_type=memory_type,
        attribute=f"{clause.verb or 'note'}:{value.lower()}",
        value=value,
        weight=0.51 + 0.01 * min(told, 4),
        importance=0.5,
        confidence=0.7,
    )


def _length(clause: Clause) -> int:
    return len(clause.text.split()) if clause.language == "en" else len(clause.text)


def _told(clause: Clause) -> float:
    number = bool(pattern(clause.language, "numbers").search(clause.text))
    name = bool(_NAME[clause.language].search(clause.text[1:]))
    about = 1.0 if clause.about in PERSONS else 0.5
    if clause.language == "en" and (clause.verb in words("en", "thoughts") or not clause.verb):
        return 0.0
    return about * (bool(number) + name + bool(clause.times)) + (0.5 if clause.about in PERSONS else 0.0)


_SINCE = re.compile(r"\bsince\b|[月年天周]份?起|以来", re.IGNORECASE)
_NAME = {"en": re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]+\b"), "zh": re.compile(r"[A-Za-z]{2,}|《[^》]+》")}
