"""Preferences: what somebody likes, dislikes and prefers, and how they want to be answered."""

from __future__ import annotations

from .clause import Claim, Clause
from .rules import claim_by_table


def preferences(clause: Clause) -> Claim | None:
    if clause.language == "en" and clause.past and not clause.ended and not clause.perfect:
        # "I loved the concert" tells of one evening.
        return None
    found = claim_by_table("preferences", clause)
    if (
        found
        and found.attribute.startswith("consumes:")
        and (clause.perfect or clause.future or clause.times or clause.chain)
    ):
        # "I read it yesterday" is no taste; "I read on paper" is.
        return None
    return found
