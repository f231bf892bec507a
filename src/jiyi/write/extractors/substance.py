"""How much a clause says that could not be guessed: statistics over its words, where no rule knows what it means.

Every word that carries something of its own counts: things, names, numbers, times, doings. Words of which small talk is
made count nothing, and moods count against it.
"""

from __future__ import annotations

import re

from .clause import PERSONS, Clause
from .lexicon import message_has, named, pattern, words

# What small talk seldom reaches, and what people tell about themselves mostly does.
ENOUGH = {"en": 2.7, "zh": 3.0}


def substance(clause: Clause) -> float:
    """The sum over the words, with what the form of the clause adds to it or takes away."""
    told, anchored = _chinese(clause) if clause.language == "zh" else _english(clause)
    if not (anchored or clause.times):
        # A heading, an exclamation: nothing is said of anything.
        return min(told, ENOUGH[clause.language] - 0.6)
    if clause.about in PERSONS and clause.bare == clause.content:
        told += 0.5
    if clause.times:
        told += 0.3
    elif clause.about == "thing" and not clause.answers and _is_general(clause):
        # The Great Wall is long: true, and nothing about anybody here.
        told -= 1.0
    if not clause.to_assistant:
        # Among friends more is said by the way.
        told -= 0.4
    if pattern(clause.language, "addressed").search(clause.text):
        told -= 1.0
    if pattern(clause.language, "about the talk").search(clause.text):
        told -= 1.5
    return told


_TIMELESS = re.compile("[^了过着]{2,12}?(?:是|有|为|大约|一天要?|海拔|绕着?|建立于|位于|属于|等于|发布|颁给|输|赢)")


def _is_general(clause: Clause) -> bool:
    if message_has(clause.said.text, clause.language, "anchors"):
        return False
    if clause.language == "zh":
        return _TIMELESS.match(clause.text) is not None
    return not (clause.past or clause.perfect or clause.future)


# -- Chinese ----------------------------------------------------------------------------------------------------------

# What a word of a class is worth, by the tag of the segmenter; the longest that fits counts.
_WORTH = {
    "n": 1.0, "nr": 1.0, "ns": 1.2, "nt": 1.2, "nz": 1.2, "j": 1.0, "vn": 1.0, "i": 0.8, "l": 0.8, "eng": 1.2, "s": 0.7,
    "m": 1.0, "mq": 1.0, "t": 0.7, "v": 0.8, "a": 0.4, "an": 0.5, "b": 0.4, "z": 0.3, "f": 0.2,
}  # fmt: skip
_NO_NUMBER = re.compile("[一两几半第][个下点些种样直定起次边面]?|第一次?|一个人")


def _chinese(clause: Clause) -> tuple[float, bool]:
    """What the words say, and whether there is a verb or a number among them."""
    from rjieba import tag

    told, anchored = 0.0, False
    for word, kind in tag(clause.text):
        anchored |= kind[0] in "vmad" or kind == "eng"
        if word in words("zh", "mood"):
            told -= 0.8
        elif word in words("zh", "light") or (kind[0] == "m" and _NO_NUMBER.fullmatch(word)):
            continue
        else:
            worth = _WORTH.get(kind) or _WORTH.get(kind[:1], 0.0)
            told += worth if len(word) > 1 or kind[0] == "m" else 0.6 * worth
            if kind == "eng" and len(word) > 5 and any(map(str.isdigit, word)):
                # A number that somebody gave on purpose.
                told += 0.6
    if re.search("[了过着]", clause.verb + clause.rest[:8]):
        told += 0.2
    return told, anchored


# -- English ----------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W\d_]+(?:['\-][^\W\d_]+)*|\d[\d.,:/%]*\w*")
# An id, a version, a path: no word.
_SIGN = re.compile(r"\w*[a-z]\d\w*|\d+/\d+|\w+[A-Z]\w*", re.ASCII)


def _english(clause: Clause) -> tuple[float, bool]:
    told, anchored = 0.0, bool(clause.verb)
    for at, found in enumerate(_WORD.finditer(clause.text)):
        word = found[0].lower().removesuffix("'s")
        number = found[0][0].isdigit() or pattern("en", "numbers").fullmatch(word) is not None
        anchored |= number
        if word in words("en", "mood"):
            told -= 0.8
        elif word in words("en", "light") or "'" in word or named("en", "past").get(word, word) in words("en", "light"):
            continue
        elif _SIGN.fullmatch(found[0]) and not clause.verb:
            told += 0.3
        elif number or (at and found[0][0].isupper()):
            told += 1.2
        else:
            told += 0.8
    return told, anchored
