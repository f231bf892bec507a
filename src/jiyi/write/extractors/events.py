"""Events: what happened, and when. One draft for each thing that happened."""

from __future__ import annotations

from .clause import PERSONS, Claim, Clause
from .lexicon import pattern, starts, words
from .values import plain_value


def events(clause: Clause) -> Claim | None:
    if clause.about not in PERSONS or clause.doubtful or clause.future or clause.negated or clause.habitual:
        return None
    if pattern("all", "at work").search(clause.text):
        return None
    if clause.perfect and "since " in clause.text.lower():
        # "We've been on Python 3 since June" tells of a state.
        return None
    timed = any(span.start <= clause.at and span.text.lower() not in ("this year", "今年") for span in clause.times)
    if clause.times and not timed:
        # "I've read 41 books this year" counts, it does not tell.
        return None
    weight = _english(clause, timed) if clause.language == "en" else _chinese(clause, timed)
    if not weight:
        return None
    value = plain_value(clause.rest, clause.language)
    return Claim(
        memory_type="event",
        attribute=f"event:{clause.verb}" if clause.verb else "event",
        value=value,
        weight=weight,
        importance=0.5 + (0.1 if timed else 0.0),
        confidence=0.85,
    )


def _english(clause: Clause, timed: bool) -> float:
    happened = clause.past or (clause.perfect and not clause.progressive)
    if not happened or (
        clause.chain and clause.chain[-1] not in ("start", "begin", "stop", "finish", "manage", "decide", "get", "quit")
    ):
        return 0.0
    if set(clause.rest.lower().split()[:6]) & words("en", "work"):
        return 0.0
    length = len(clause.rest.split())
    if clause.verb == "be":
        # "I was in Paris last week", "I've been to Japan twice", but not "I was tired".
        return (
            0.6
            if (timed and clause.rest.lower().startswith(("in ", "at ", "to ", "on ", "with ")))
            or clause.rest.startswith("to ")
            else 0.0
        )
    if clause.verb in words("en", "plain"):
        return 0.6 if timed and clause.verb in ("have", "see", "hear", "do", "feel") and length > 1 else 0.0
    if timed:
        return 0.68 if length else 0.0
    return 0.55 if clause.verb in words("en", "notable") and length >= 2 else 0.0


def _chinese(clause: Clause, timed: bool) -> float:
    said = clause.verb + clause.rest
    if said.endswith("的") and clause.bare != clause.content:
        # 2023年在无锡跑的: says more about what stands before it.
        return 0.0
    happened = clause.perfect or clause.past or timed or "了" in said
    if (
        not happened
        or len(said) < 3
        or said.startswith(starts("zh", "plain"))
        or set(clause.chain) & {"want", "plan", "must", "should"}
    ):
        return 0.0
    if timed:
        return 0.68
    return 0.55 if "了" in said and said.startswith(starts("zh", "notable")) else 0.0
