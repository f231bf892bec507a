"""Personal facts: where somebody lives, what they do, whom they live with, what they cannot eat."""

from __future__ import annotations

from .clause import Claim, Clause
from .rules import claim_by_table

INTENDED = frozenset(
    ("want", "plan", "hope", "would", "think", "consider", "intend", "aim", "dream", "wish", "should", "must")
)


def facts(clause: Clause) -> Claim | None:
    if set(clause.chain) & INTENDED:
        # "I want to move to Rome" tells nothing of where somebody lives.
        return None
    return claim_by_table("facts", clause)
