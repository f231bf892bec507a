"""Statements that no rule knows, but that say enough to be kept: about somebody, or about something of theirs."""

from __future__ import annotations

import re

from .clause import PERSONS, Claim, Clause
from .lexicon import pattern
from .substance import ENOUGH, substance
from .values import plain_value

ATTRIBUTE = "note"
_SINCE = re.compile(r"\bsince\b|[月年天周]份?起|以来", re.IGNORECASE)


def statements(clause: Clause) -> Claim | None:
    """Statistics instead of grammar: how much is said that could not be guessed."""
    told = weight_of(clause)
    return claimed(clause, told) if told >= ENOUGH[clause.language] else None


def weight_of(clause: Clause) -> float:
    """How much a clause says for itself; nothing if it is no statement about anybody here."""
    if clause.doubtful or clause.about not in (*PERSONS, "thing", "other"):
        return 0.0
    if pattern("all", "at work").search(clause.text):
        return 0.0
    return substance(clause)


def claimed(clause: Clause, told: float) -> Claim:
    ahead = (clause.future or any(span.start > clause.at for span in clause.times)) and not clause.negated
    since = clause.perfect and _SINCE.search(clause.text) is not None
    happened = (clause.past or clause.perfect) and not since and bool(clause.times)
    value = plain_value(clause.rest or clause.text, clause.language)
    norm = clause.about in ("thing", "other") and pattern(clause.language, "norms").search(clause.text) is not None
    return Claim(
        memory_type="preference" if norm else "event" if ahead or happened else "fact",
        attribute=f"{clause.verb or ATTRIBUTE}:{value.lower()}",
        value=value,
        weight=0.5 + 0.01 * min(told, 5.0),
        importance=0.5,
        confidence=0.7,
    )
