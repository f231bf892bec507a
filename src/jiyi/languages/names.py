"""Names of people, places, organisations, projects and things in a text."""

import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib.resources import files
from typing import Literal

from .en.words import KIN, NO_NAMES, STOP_WORDS, TITLES
from .words import normalise
from .zh.words import proper_names

NameKind = Literal["person", "place", "organisation", "project", "thing"]

_WORD = r"(?:St\. )?[A-Z][\w&'-]*\w"
# Capitalised words that do not open a sentence, or several of them anywhere; before them, a title or a relative.
_NAME = re.compile(
    rf"(?:\b(?P<kin>{KIN})(?: is| called| named| is called|,)* )?"
    rf"(?<![\w-])(?:\b(?P<title>{TITLES})\.? (?P<titled>{_WORD}(?: {_WORD})*)"
    rf"|(?<![.!?:;\"“(]\s)(?<!^)(?P<inside>{_WORD}(?: {_WORD})*)|(?P<opening>{_WORD}(?: {_WORD})+))"
    rf"(?P<project> project\b)?"
)
_CAPITALISED = re.compile(rf"(?<![\w-]){_WORD}(?: {_WORD})*")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_HAN_NAME = range(2, 5)  # characters


def names_in(text: str) -> dict[str, NameKind]:
    """Return the names in a text with what they name; a thing is whatever nothing else is known of.

    >>> names_in("My sister Ana flew to Lisbon with Dr. Chen and 王老师")
    {'王老师': 'person', 'Ana': 'person', 'Lisbon': 'place', 'Chen': 'person'}
    """
    found: dict[str, NameKind] = dict(proper_names(text, places()))
    for match in _NAME.finditer(text):
        words = (match["titled"] or match["inside"] or match["opening"]).split()
        if match["opening"] and words[0].lower() in STOP_WORDS:
            del words[0]
        name = " ".join(word for word in words if word.removesuffix("'s") not in NO_NAMES).removesuffix("'s")
        if len(name) > 1:
            person = match["kin"] or match["title"]
            found.setdefault(name, "person" if person else "project" if match["project"] else place_or_thing(name))
    for name in _capitalised(text, places()):
        found.setdefault(name, "place")
    return found


def place_or_thing(name: str) -> NameKind:
    return "place" if normalise(name) in places() else "thing"


def known_names_in(text: str, known: Collection[str]) -> Iterator[str]:
    """Yield the names of a text that only their being known (normalised) shows to be names: Chinese ones, and English
    ones that open a sentence."""
    yield from _capitalised(text, known)
    for match in _HAN.finditer(text):
        run = match[0]
        for at in range(len(run)):
            yield from (name for size in _HAN_NAME if len(name := run[at : at + size]) == size and name in known)


def _capitalised(text: str, known: Collection[str]) -> Iterator[str]:
    for match in _CAPITALISED.finditer(text):
        name = match[0].removesuffix("'s")
        first, _, rest = name.partition(" ")
        if first.lower() in STOP_WORDS:
            name = rest
        if normalise(name) in known:
            yield name


@cache
def places() -> frozenset[str]:
    """Return the normalised names of well-known cities and countries."""
    lines = files(__package__).joinpath("places.txt").read_text("utf-8").splitlines()
    return frozenset(normalise(name) for line in lines if not line.startswith("#") for name in line.split("|"))
