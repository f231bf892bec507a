"""Names in a query. An embedder takes a name for the subject and finds what is said ABOUT somebody; a question that
names a speaker mostly wants what was said BY them. So names leave the text that is embedded and count as a part."""

from __future__ import annotations

import re

from ..languages import cue
from ..languages.normalise import normalise

# roles, which stand for a name
NOBODY = frozenset({"user", "the user", "用户", "assistant", "system", "tool", "developer"})
SHORTEST = 2


def people_named(query: str, people: frozenset[str]) -> frozenset[str]:
    """Those of the people whose name stands in the query."""
    text = normalise(query)
    candidates = (name for name in people if name not in NOBODY and len(name) >= SHORTEST and not name.isdigit())
    return frozenset(name for name in candidates if name in text and _pattern(name).search(text))


def without_names(query: str, names: frozenset[str]) -> str:
    """The query without these names; as it was, if nothing else is left."""
    text = query
    for name in sorted(names, key=len, reverse=True):
        text = _pattern(name).sub("", text)
    text = " ".join(text.split())
    return text if any(map(str.isalnum, text)) else query


def asks_assistant(query: str) -> bool:
    """Whether a question is about what the assistant itself has said."""
    return cue("assistant_question").search(query) is not None


def asks_for_questions(query: str) -> bool:
    """Return True if the query is about questions or requests themselves."""
    return cue("asked_question").search(query) is not None


def _pattern(name: str) -> re.Pattern[str]:
    """A name as a word of its own, with its 's; Chinese writes no spaces around one."""
    edge = r"\b" if name[0].isascii() and name[-1].isascii() else ""
    return re.compile(rf"{edge}{re.escape(name)}{edge}(?:['’]s)?", re.IGNORECASE)
