"""Personal facts: where somebody lives, what they do, whom they live with, what they cannot eat."""

from __future__ import annotations

from .clause import Claim, Clause
from .rules import claim_by_table


def facts(clause: Clause) -> Claim | None:
    return claim_by_table("facts", clause)
