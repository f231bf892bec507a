"""Patterns: what somebody does again and again, and how often."""

from __future__ import annotations

from .clause import PERSONS, Claim, Clause
from .lexicon import pattern, words
from .values import plain_value


def patterns(clause: Clause) -> Claim | None:
    if clause.about not in PERSONS or clause.past or clause.future or clause.doubtful:
        return None
    often = pattern(clause.language, "how often").search(clause.text)
    if not often and not pattern(clause.language, "usually").search(clause.text):
        return None
    if clause.language == "en" and (
        clause.verb in ("", *words("en", "thoughts")) or (clause.verb == "be" and not often)
    ):
        return None
    if set(clause.chain) & {"want", "plan", "must", "should", "hope", "decide", "would", "intend"}:
        # "I want to run every day" is a plan, not yet a habit.
        return None
    said = f"{clause.verb} {clause.rest}" if clause.language == "en" else clause.verb + clause.rest
    value = plain_value(pattern(clause.language, "how often").sub("", said), clause.language)
    return Claim(
        memory_type="pattern",
        attribute=f"habit:{value.lower()}",
        value=often[0] if often else "usually",
        weight=0.86 if often else 0.72,
        importance=0.6 if often else 0.55,
        single=True,
        ended=clause.ended,
    )


def _is_doing(clause: Clause, often: bool) -> bool:
    """ "I always think", "I'm often tired" are no habits."""
    if clause.verb == "be":
        return often
    return bool(clause.verb) and clause.verb not in words("en", "thoughts")
