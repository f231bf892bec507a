"""Decisions: what was chosen, settled or agreed on. They are facts about a person or a group."""

from __future__ import annotations

from dataclasses import replace

from .clause import Claim, Clause
from .rules import claim_by_table
from .values import plain_value


def decisions(clause: Clause) -> Claim | None:
    if clause.doubtful or (clause.negated and "decide" not in clause.chain):
        return None
    if "decide" in clause.chain:
        # "decided to move to Berlin", 决定搬到柏林: the whole of what comes after.
        value = plain_value(clause.rest, clause.language)
        return Claim(
            memory_type="fact",
            attribute="decision",
            value=f"{clause.verb} {value}".strip(),
            weight=0.88,
            importance=0.7,
        )
    found = claim_by_table("decisions", clause)
    if found and clause.about == "self" and not clause.past and not clause.perfect and not clause.future:
        # "I choose", "I go with" in the present: a habit or a way of speaking.
        return replace(found, weight=0.3) if clause.language == "en" else found
    return found
