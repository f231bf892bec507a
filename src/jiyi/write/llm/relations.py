"""Relations that a memory claims: "Tom is Mei's brother"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...languages.en import ENGLISH
from . import cues
from .spoken import Clause, Spoken, content_words

_NAME = r"(?:[A-Z][\w’'-]*[\w-]|Dr\.?)(?:\s[A-Z][\w-]+){0,2}"
_WHAT = r"(?:[a-z]+\s){0,2}?[A-Za-z][\w-]*(?:\s[A-Z][\w-]*){0,2}(?!['’\w-])"
_RELATION = (
    re.compile(rf"^(?P<name>{_NAME}) (?:is|was) (?:the )?(?P<of>{_NAME})['’]s? (?P<what>{_WHAT})"),
    re.compile(rf"^(?P<of>{_NAME})['’]s (?P<what>{_WHAT}) (?:is|was) (?:called |named )?(?P<name>{_NAME})\W*$"),
    re.compile(r"^(?P<name>[^\s，。是的说]{1,8})\s*是(?P<of>[^\s，。是的]{1,8})\s*的(?P<what>[^\s，。的]{1,8})"),
    re.compile(r"^(?P<of>[^\s，。是的说]{1,8})\s*的(?P<what>[^\s，。的是]{1,6})[是叫](?P<name>[^\s，。的]{1,4})\W*$"),
)
_SELF = (
    r"\b(?:I['’]?m|I am|my name['’]?s|my name is|call me)\s{0}\b(?!['’])|\b{0} here\b"
    r"|\bthis is {0}\b(?!,? (?:my|our)\b)"
    r"|我(?:就?是|叫){0}(?!的)|叫我{0}"
)


def wrong_relation(told: Sequence[Clause], spoken: Spoken) -> str | None:
    """Return a claim that relates somebody to themselves, or to a relative who was not named."""
    for claim in told:
        for found in filter(None, (pattern.match(claim.text) for pattern in _RELATION)):
            name, of, what = found["name"], found["of"], found["what"]
            if name.lower() in ENGLISH.stop_words:
                continue
            if name.casefold() in (what.casefold(), of.casefold()):
                return claim.text
            groups = [group for group in cues.KINS if group.search(what)]
            if groups and (_same_person(name, of, spoken) or not any(_named(name, group, spoken) for group in groups)):
                return claim.text
    return None


def _same_person(name: str, of: str, spoken: Spoken) -> bool:
    """Return True if both names are those of the speaker."""
    if of not in spoken.speakers:
        return False
    introduced = re.search(_SELF.format(re.escape(name)), " ".join(spoken.cited), re.IGNORECASE)
    return name in spoken.speakers or introduced is not None


def _named(name: str, group: re.Pattern[str], spoken: Spoken) -> bool:
    """Return True unless the cited words name a person first and only then speak of a relative: "Beth came, my niece is
    ill". "My niece came, Beth is ill", "Beth, my niece" and "Beth came, she is my niece" may name her."""
    wanted = content_words(name)
    if wanted <= spoken.speaker_words or any(group.search(one.text) for one in spoken.context):
        return True
    last = max((at for at, one in enumerate(spoken.own) if wanted <= content_words(one.text)), default=-1)
    for at, one in enumerate(spoken.own):
        theirs = re.search(rf"{re.escape(name)}(?:['’]s|的)?\s*(?:{group.pattern})", one.text, re.IGNORECASE)
        if not group.search(one.text) or theirs:
            continue
        others = one.words - content_words(" ".join(group.findall(one.text))) - spoken.speaker_words
        if at <= last or not others or cues.HE.search(one.text):
            return True
    return False
