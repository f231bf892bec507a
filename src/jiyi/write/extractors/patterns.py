"""Patterns: what somebody does again and again, and how often."""

from __future__ import annotations

import re

from .clause import PERSONS, Claim, Clause
from .lexicon import pattern, words
from .names import property_name
from .substance import substance
from .values import plain_value


def patterns(clause: Clause) -> Claim | None:
    if clause.about not in (*PERSONS, "thing", "other") or clause.past or clause.future or clause.doubtful:
        return None
    often = pattern(clause.language, "how often").search(clause.text)
    if clause.about not in PERSONS and not (often and _is_price(clause.text, often)):
        # "Retro is every other week", 每天早上一杯拿铁
        return _of_thing(clause, often) if often and substance(clause) >= 0.7 else None
    price = often is not None and _is_price(clause.text, often)
    if price or not (often or pattern(clause.language, "usually").search(clause.text)):
        return None
    if not _is_doing(clause, often):
        return None
    said = f"{clause.verb} {clause.rest}" if clause.language == "en" else clause.verb + clause.rest
    value = plain_value(pattern(clause.language, "how often").sub("", said), clause.language)
    return Claim(
        memory_type="pattern",
        # "My therapy is weekly"
        attribute=property_name(clause.noun) if value == "be" and clause.noun else f"habit:{value.lower()}",
        value=often[0] if often else "usually",
        weight=0.86 if often else 0.72,
        importance=0.6 if often else 0.55,
        single=True,
        ended=clause.ended,
    )


_TASTES = frozenset(("hate", "love", "like", "dislike", "enjoy", "prefer", "despise", "detest"))
# "925 a month" is a price.
_RATE = re.compile(r"(?:[£$€¥]\s?\d[\d.,]*k?|\d[\d.,]*k? (?:dollars|euros|pounds|bucks|quid|kronor)|\d[\d.,]*k?)\s?$")


_SUM = re.compile("(?:还|交|付|要|是|大概|到手|租金|工资)*[\\d一二三四五六七八九十两几]+[\\d千百万元块]")


def _is_price(text: str, often: re.Match[str]) -> bool:
    return _RATE.search(text, 0, often.start() + 1) is not None or _SUM.match(text, often.end()) is not None


def _of_thing(clause: Clause, often: re.Match[str]) -> Claim:
    return Claim(
        memory_type="pattern",
        attribute=f"habit:{plain_value(clause.text.replace(often[0], ''), clause.language).lower()}",
        value=often[0],
        weight=0.555,
        importance=0.55,
        single=True,
    )


def _is_doing(clause: Clause, often: re.Match[str] | None) -> bool:
    """ "I always think", "I'm often tired", "I hate mornings" are no habits; "I want to run every day" is a plan."""
    if set(clause.chain) & {"want", "plan", "must", "should", "hope", "decide", "would", "intend"}:
        return False
    if clause.language != "en":
        return True
    if clause.verb in _TASTES:
        return bool(clause.rest.replace(often[0] if often else "", "").strip(" ."))
    return clause.verb not in ("", *words("en", "thoughts")) and (clause.verb != "be" or often is not None)
