"""Words that a memory only attributes to a speaker: "Mei said thanks" says no more than the message itself."""

import re
from collections.abc import Iterable

from ..classify import classify

UNSURE = 0.3  # salience below which words are not worth remembering
EMPTY_KINDS = ("smalltalk", "joke", "nonanswer", "question", "request")

_SAYS = re.compile(
    r"^(?P<who>.{1,60}?)\s*(?:[（(][^（）()]{0,40}[)）]\s*)*"
    r"(?:说道?|表示|称|(?:said|says|stated|noted)(?: that)?\b)[:：,，]?\s*(?P<words>.+)$",
    re.DOTALL,
)


def attributed_words(text: str, names: Iterable[str]) -> str | None:
    """Return the words that a text attributes to one of these people and nothing else.

    >>> attributed_words("周建国（2025年2月25日）说哦哟幸亏问了。", ["周建国"])
    '哦哟幸亏问了'
    """
    found = _SAYS.match(text.strip())
    if found is None or found["who"].strip().casefold() not in {name.casefold() for name in names}:
        return None
    return found["words"].strip(" 。.!！\"“”「」'")


def says_nothing(words: str) -> bool:
    """Return True for words that are not worth remembering by themselves."""
    found = classify(words)
    return found.kind in EMPTY_KINDS and found.salience < UNSURE
