"""The languages that Jiyi knows, and cues of all of them at once."""

import re
from functools import cache

from .base import Language
from .en import ENGLISH
from .zh import CHINESE

LANGUAGES: tuple[Language, ...] = (ENGLISH, CHINESE)
NEUTRAL = Language(code="other", name="the language of the text")


def language_named(code: str) -> Language:
    """Return the language with a code, or the neutral one."""
    return next((language for language in LANGUAGES if language.code == code), NEUTRAL)


@cache
def cue(field: str) -> re.Pattern[str]:
    """Return a pattern for a cue of `Language`, such as "negation", in any of the languages.

    >>> bool(cue("past_question").search("我以前住在哪里？")), bool(cue("negation").search("I have a dog"))
    (True, False)
    """
    return re.compile("|".join(getattr(language, field) for language in LANGUAGES), re.IGNORECASE)


def as_user(text: str) -> str:
    """Return a sentence about "the user" in the user's own words, in lower case; others as they are.

    >>> as_user("The user prefers tea"), as_user("用户喜欢喝茶"), as_user("I prefer tea")
    ('i prefer tea', '我喜欢喝茶', 'I prefer tea')
    """
    lower = text.lower()
    if "user" not in lower and "用户" not in lower:
        return text
    for pattern, own in _users():
        lower = pattern.sub(own, lower)
    return lower


def names_user(text: str) -> bool:
    """Return True for a sentence about "the user"."""
    return any(pattern.search(text.lower()) for pattern, _ in _users())


@cache
def _users() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern), own) for language in LANGUAGES for pattern, own in language.as_user]
