"""Skills and lessons: what worked, and what to do next time."""

from __future__ import annotations

from .clause import Claim, Clause
from .rules import claim_by_table
from .values import plain_value


def skills(clause: Clause) -> Claim | None:
    if clause.about == "how":
        value = plain_value(clause.text, clause.language)
        return Claim(memory_type="skill", attribute="how-to", value=value, weight=0.9, importance=0.65)
    return claim_by_table("skills", clause)
