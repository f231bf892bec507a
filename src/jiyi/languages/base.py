"""The knowledge about one language that the rest of the package asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .times.rules import DateRules


def word_set(listing: str) -> frozenset[str]:
    """Return the words of a list that is written as text."""
    return frozenset(listing.split())


def _digits(written: str) -> int:
    return int(written)


@dataclass(frozen=True, kw_only=True, eq=False)
class Language:
    """Words and rules of one language; a field that is left out is neutral and matches nothing.

    Cues are sources of regular expressions. They are matched without regard to case, in texts of any language.
    """

    code: str
    name: str  # as prompts name it
    script: str = ""  # the script whose characters a text must have for `dates` to be tried, or "" for any
    joiner: str = " "  # between two sentences
    stop_words: frozenset[str] = frozenset()
    first_person: str = "(?!)"  # I, my, we
    negation: str = "(?!)"  # not, never
    past_question: str = "(?!)"  # where did I use to live
    assistant_question: str = "(?!)"  # which book did you recommend
    asked_question: str = "(?!)"  # what did I ask about Rome
    past_event: str = "(?!)"  # signed, was born: a day beside it is over
    arranged: str = "(?!)"  # booked, postponed: a day beside it is still to come
    ending: str = "(?!)"  # Mochi died, we sold the car; a group that begins with `thing` is what has ended
    dates: DateRules = field(default_factory=DateRules)
    number: Callable[[str], int] = _digits  # the value of a number in digits or words; ValueError or KeyError if none
