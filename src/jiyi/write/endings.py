"""Things that a sentence says have ended: a pet that died, a car that was sold, a cancelled course."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..languages import cue, dates
from ..languages.base import word_set

_NO_ENDING = re.compile(r"\b(?:if|would|never|not|almost|nearly)\b|n['’]t\b|如果|要是|差点|没|别", re.IGNORECASE)
_LATIN = re.compile(r"[a-zà-öø-ÿ0-9][a-zà-öø-ÿ0-9'&-]*")
_HAN = re.compile(r"[\u4e00-\u9fff]{2,}")
_NOT_NAMED = word_set(
    "my our the a an his her their old poor little dear new lovely dog cat and has have was were is are got just been"
    " finally sadly up all me it them that this on in at phone battery"
)
_DATE_NOTE = re.compile(r" ?[(（]\d{4}-[^()（）]*[)）]")
_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)  # where the times are does not depend on when they are said


def ended_things(text: str) -> list[frozenset[str]]:
    """Return the words that name each thing that has ended.

    >>> ended_things("We sold the Civic yesterday.")
    [frozenset({'civic'})]
    """
    if _NO_ENDING.search(text):
        return []
    text = _DATE_NOTE.sub("", text)
    for span in reversed(dates(text, _ANY_DAY)):
        text = f"{text[: span.at[0]]}{'' if _HAN.match(span.text) else ','}{text[span.at[1] :]}"
    found = []
    for match in cue("ending").finditer(text):
        named = next((value for value in match.groupdict().values() if value), "").lower()
        words = frozenset(_LATIN.findall(named)) - _NOT_NAMED | frozenset(_HAN.findall(named))
        if words:
            found.append(words)
    return found


def names(text: str, thing: frozenset[str]) -> bool:
    """Return True if a text names a thing with all its words."""
    lower = text.lower()
    words = set(_LATIN.findall(lower))
    return all(word in (words if word.isascii() else lower) for word in thing)
