"""Words that a memory only attributes to a speaker: "Mei said thanks" says no more than the message itself."""

import re
from collections.abc import Iterable

from ...languages.terms import builtin_synonyms, tokens
from ..classify import classify
from .cues import FILLERS
from .spoken import content_words

UNSURE = 0.3  # salience below which words are not worth remembering
EMPTY_KINDS = ("smalltalk", "joke", "nonanswer", "question", "request")

_SAYS = re.compile(
    r"^(?P<who>.{1,60}?)\s*(?:[（(][^（）()]{0,40}[)）]\s*)*"
    r"(?:说道?|表示|称|(?:said|says|stated|noted)(?: that)?\b)[:：,，]?\s*(?P<words>.+)$",
    re.DOTALL,
)

_ADVISED = re.compile(
    r"(?:the )?assistant (?:\w+ )?(?:suggest|recommend|advis|said|says|told|gave|explain|propos|remind|warn)\w*"
    r"|助[手理](?:建议|推荐|提醒|说|告诉|给出|介绍|解释)|[(（][^()（）]*[)）]",
    re.IGNORECASE,
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


def share_said(text: str, said: Iterable[str], names: Iterable[str]) -> float:
    """Return the share of a text's words, without names and words that say that somebody said it, that were said."""
    told = content_words(_ADVISED.sub(" ", text)) - FILLERS - content_words(" ".join(names))
    there = content_words(" ".join(said))
    known = {word for word in told if word in there or any(set(tokens(one)) & there for one in builtin_synonyms(word))}
    return len(known) / len(told) if told else 1.0


def says_nothing(words: str) -> bool:
    """Return True for words that are not worth remembering by themselves."""
    found = classify(words)
    return found.kind in EMPTY_KINDS and found.salience < UNSURE
