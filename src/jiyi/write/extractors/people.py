"""Whom a conversation speaks of: names, and who they are to the speaker."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from ..drafts import Unit
from .kinds import kind_of
from .lexicon import any_word, words

# A capital letter inside a sentence is a name's; at its beginning it may be anybody's.
_INSIDE = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{1,20}\b")
_ENGLISH_KIN = re.compile(
    r"\b(?i:my|our)\s(?:[a-z\-]{2,12}\s){0,3}?(?P<noun>[a-z\-]{2,20})(?:,)?\s(?P<name>[A-Z][a-z]{1,15}(?:\s[A-Z][a-z]{1,15})?)\b"
)
_ENGLISH_CALLED = re.compile(
    r"\b(?i:an?|my|our)\s(?:[a-z\-]{2,15}\s){0,3}?(?P<noun>[a-z\-]{2,20}),?\s(?:called|named)\s(?P<name>[A-Z][\w\-]{1,20})"
)
_ENGLISH_APPOSED = re.compile(
    r"^(?P<name>[A-Z][a-z]{1,15}(?:\s[A-Z][a-z]{1,15})?),\s(?:my|our)\s(?P<noun>[a-z][a-z \-]{2,30}?)"
    r"(?:[,.;!]|$|\s(?:is|has|will|was|lives|works)\b)"
)


@dataclass(slots=True)
class People:
    """What is known so far; it grows while a unit is read."""

    names: set[str] = field(default_factory=set)
    belongs: dict[str, str] = field(default_factory=dict)  # Anna → Mei's sister
    present: frozenset[str] = frozenset()  # those who speak, without the assistant
    last: str = ""  # he, she, it
    last_is_kin: bool = False


def people_of(unit: Unit) -> People:
    everything = (*unit.history, *unit.messages)
    names = {said.speaker for said in everything if said.speaker}
    for said in everything:
        if said.role != "assistant" and len(said.text) < 5_000:
            names.update(name for name in _INSIDE.findall(said.text) if name.lower() not in words("en", "no names"))
    present = frozenset(said.speaker for said in unit.messages if said.speaker and said.role != "assistant")
    return People(names={name for name in names if kind_of(name) is None}, present=present)


@dataclass(frozen=True, slots=True)
class Relation:
    """ "my daughter Aylin": who somebody is to the speaker."""

    noun: str
    name: str


def relations_in(text: str, language: str) -> list[Relation]:
    if language == "zh":
        found = [*_chinese_kin().finditer(text)]
    else:
        found = [*_ENGLISH_KIN.finditer(text), *_ENGLISH_CALLED.finditer(text), *_ENGLISH_APPOSED.finditer(text)]
    return [Relation(match["noun"] or match["bare"], match["name"]) for match in found if _is_relation(match, language)]


def _is_relation(match: re.Match[str], language: str) -> bool:
    if language == "zh":
        return match["noun"] not in words("zh", "no beings") and (bool(match["called"]) or is_name(match["name"]))
    noun = match["noun"].rsplit(maxsplit=1)[-1]
    if match["name"].split(maxsplit=1)[0].lower() in words("en", "no names"):
        return False
    return noun in words("en", "kin") or (match.re is not _ENGLISH_KIN and noun not in words("en", "no names"))


# Words of other classes than names: verbs, adverbs, prepositions, times, particles, pronouns, …
_NO_NAME = frozenset("vdptucrfbqsym")


def is_name(written: str) -> bool:
    """Whether it may be a name, where nothing announces one: 朵朵, 王强, but not 参加, 端午回.

    >>> [is_name(word) for word in ("朵朵", "王强", "Anna", "参加", "迷足球")]
    [True, True, True, False, False]
    """
    from rjieba import has_word, tag

    if written.isascii() or (len(written) == 2 and (written[0] == written[1] or written[0] in "小阿")):
        return True
    kinds = [kind for _, kind in tag(written)]
    if len(kinds) == 1 and has_word(written):
        return kinds[0].startswith(("nr", "nz"))
    return kinds[0][0] not in _NO_NAME or (len(kinds) == 1 and not has_word(written))


@cache
def _chinese_kin() -> re.Pattern[str]:
    kin, bare = any_word("zh", "kin").pattern, any_word("zh", "bare kin").pattern
    after = any_word("zh", "after name").pattern
    # A name is what stands between 我女儿 and the next word that we know.
    name = f"(?!{after})[\u4e00-\u9fff]{{2,3}}?(?=$|[，。！、,]|{after})|[A-Z][a-z]{{1,15}}"
    return re.compile(f"(?:(?:我们?家?的?|[和跟]我?)(?P<noun>{kin})|(?P<bare>{bare}))(?P<called>叫)?(?P<name>{name})")
