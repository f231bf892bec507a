"""A conversation in units: stretches about one thing. A unit begins after a pause, with another topic, or when the one
before has grown long.

Each message is decided on when it comes, from the unit so far, so that message after message gives the same units as
all at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from ..languages.terms import tokens
from ..text_cache import text_cache
from .drafts import Said

ANSWERS = frozenset({"assistant", "tool", "function"})  # they go on with what was asked
SHORTEST = 4  # messages before another topic counts as one
TOPIC = 6  # the last messages that tell what the topic is
TELLING = 6  # different words that a message needs to tell its own topic
LONGEST_LETTERS = 24_000

_TURN = re.compile(
    r"^\W*(?:by the way|btw|anyway|on (?:another|a different) note|(?:to )?chang\w+ (?:the )?(?:subject|topic)"
    r"|(?:new|different|another) (?:topic|subject|question)|unrelated"
    r"|换个话题|换一个话题|说点别的|聊点别的|另一个问题|另外(?:问|说|一件)|顺便(?:问|说|提)|对了|话说回来)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    gap: timedelta
    messages: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages of one unit. `grows`: it is the unit that was open before."""

    messages: tuple[Said, ...]
    grows: bool = False


def segment(messages: Sequence[Said], open_unit: Sequence[Said], limits: Limits) -> list[Stretch]:
    """The messages in stretches, after the unit that is open."""
    unit = list(open_unit)
    stretches: list[list[Said]] = []
    grows = False
    for message in messages:
        begins = begins_unit(message, unit, limits)
        if not stretches:
            grows = not begins
        if begins:
            unit = []
        if begins or not stretches:
            stretches.append([])
        unit.append(message)
        stretches[-1].append(message)
    return [Stretch(tuple(stretch), grows and at == 0) for at, stretch in enumerate(stretches)]


def begins_unit(message: Said, unit: Sequence[Said], limits: Limits) -> bool:
    if not unit:
        return True
    if abs(message.sent_at - unit[-1].sent_at) > limits.gap:
        return True
    if len(unit) >= limits.messages or sum(len(said.text) for said in unit) > LONGEST_LETTERS:
        return True
    return len(unit) >= SHORTEST and message.role not in ANSWERS and _is_another_topic(message, unit[-TOPIC:])


def _is_another_topic(message: Said, before: Sequence[Said]) -> bool:
    """It says so, or it says a lot and shares no word with what was said last."""
    if _TURN.match(message.text):
        return True
    own = _words(message.text)
    return len(own) >= TELLING and own.isdisjoint(set().union(*(_words(said.text) for said in before)))


@text_cache(32)  # each message is compared with some of those before it
def _words(text: str) -> frozenset[str]:
    """Single Chinese characters are shared by everything."""
    return frozenset(term for term in tokens(text) if len(term) > 1)
