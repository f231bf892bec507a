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
