"""Skills and lessons: what worked, and what to do next time."""

from __future__ import annotations

from .clause import Claim, Clause
from .rules import claim_by_table


def skills(clause: Clause) -> Claim | None:
    return claim_by_table("skills", clause)
