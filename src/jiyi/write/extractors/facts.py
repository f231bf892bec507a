"""Personal facts: where somebody lives, what they do, whom they live with, what they cannot eat."""

from __future__ import annotations

import re
from dataclasses import replace

from .clause import PERSONS, Claim, Clause
from .kinds import NOW
from .lexicon import message_has
from .rules import claim_by_table
from .values import plain_value

INTENDED = frozenset(
    ("want", "plan", "hope", "would", "think", "consider", "intend", "aim", "dream", "wish", "should", "must")
)


# Of these there may be another for some days, or for work.
_QUALIFIED = frozenset(("bedtime", "car", "commute", "wake"))
_ONLY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends?|weekdays|(?:at|for) work|in (?:summer|winter))\b"
    "|周末|工作日|平日|节假日|假期|[周期拜][一二三四五六日天]|上班时|夏天|冬天",
    re.IGNORECASE,
)


_BESIDES = re.compile(
    r"\b(?<!^)(?:also|as well|too|besides|on the side)\b|也(?![许不])|另外|同时|兼职|兼着|副业", re.IGNORECASE
)
_CHANGES = (
    "become",
    "change",
    "get",
    "join",
    "move",
    "relocate",
    "settle",
    "switch",
    "转",
    "换",
    "搬",
    "改",
    "跳槽",
    "入职",
)


def besides(clause: Clause) -> bool:
    """ "I also work at a bakery", 我也是瑜伽教练: it takes no other's place."""
    return (
        _BESIDES.search(clause.text) is not None
        and not clause.verb.startswith(_CHANGES)
        and not NOW.search(clause.text)
    )


_BORN = re.compile(r"^(?:\w+ )?(?:bab(?:y|ies)|twins?|son|daughter|boy|girl)\b", re.IGNORECASE)


def _learning(clause: Clause) -> Claim | None:
    """ "I'm learning to cook" """
    if clause.language != "en" or clause.chain[-1:] != ("learn",) or clause.about not in PERSONS:
        return None
    what = plain_value(f"{clause.verb} {clause.rest}", "en")
    return Claim(memory_type="fact", attribute=f"learning:{what.lower()}", value=what, weight=0.7, importance=0.55)


def facts(clause: Clause) -> Claim | None:
    if set(clause.chain) & INTENDED:
        # "I want to move to Rome" tells nothing of where somebody lives.
        return None
    found = claim_by_table("facts", clause) or _learning(clause)
    if found is None or found.value == clause.subject:
        # 我叫林梅, 我是林梅, said by 林梅
        return None
    if found.ended and "decide" in clause.chain:
        # "I've decided to sell the car": it is still there.
        return None
    return _as_told(clause, found)


def _as_told(clause: Clause, found: Claim) -> Claim:
    if found.attribute == "family" and found.ended and _BORN.search(found.value):
        # "My sister had a baby", and has it.
        return replace(found, memory_type="event", attribute="birth", ended=False)
    if found.attribute in _QUALIFIED and (only := _ONLY.search(clause.text)):
        # 周末九点起床 says nothing of the other days.
        return replace(found, attribute=f"{found.attribute}:{only[0].lower()}")
    if found.single and besides(clause):
        found = replace(found, attribute=f"{found.attribute}:{found.value.lower()}", single=False)
    if found.attribute == "home" and message_has(clause.said.text, clause.language, "away"):
        # 出差住在酒店, "staying at the Hilton this week": nobody's home.
        return replace(found, attribute="stay", importance=0.45, ended=False, single=True)
    return found
