"""What somebody uses, and changes from one thing to another: "switched from Vim to Helix", 改用Helix，不再用Vim."""

from __future__ import annotations

from dataclasses import replace

from .clause import Claim, Clause
from .facts import INTENDED, besides
from .kinds import NOW, kind_called, kind_of
from .rules import claim_by_table


def changes(clause: Clause) -> Claim | None:
    """The attribute is what kind of thing it is, so that the new one is compared with the old one."""
    if set(clause.chain) & INTENDED:
        return None
    found = claim_by_table("changes", clause)
    if found is None or not (found.value or found.replaces):
        return None
    return _by_kind(clause, found) if found.attribute in ("uses", "uses now") else found


def _by_kind(clause: Clause, found: Claim) -> Claim | None:
    kind = kind_of(found.value) or (kind_of(found.replaces) if found.replaces else None) or kind_called(clause.text)
    if found.attribute == "uses now":
        if kind is None:
            # "It's Apple Notes these days" tells of a tool, "it's Monday now" of none.
            return None
        found = replace(found, subject=clause.speaker)
    if kind and besides(clause):
        return replace(found, attribute=f"uses:{kind}:{found.value.lower()}", single=False)
    if kind and NOW.search(clause.text):
        found = replace(found, single=not found.ended)
    if kind is None and found.weight < 0.7:
        # "I use it a lot": nothing that we know to be a tool, and no change.
        return replace(found, weight=0.58)
    return replace(found, attribute=f"uses:{kind}" if kind else f"uses:{found.value.lower()}")
