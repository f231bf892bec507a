"""Profiles: the lasting attributes of a person or a group, gathered from the facts, each with its evidence."""

from __future__ import annotations

from pydantic import JsonValue

from ..drafts import Draft, Unit
from .clause import Clause

LASTING = frozenset(("fact", "pattern"))
# What was done once is no attribute of anybody.
_PASSING = frozenset(("decision", "event"))


def profiles(unit: Unit, read: list[Clause], drafts: list[Draft]) -> list[Draft]:
    """One draft for each person (and for the group, where there is one) of whom something lasting was said."""
    lasting = [draft for draft in drafts if draft.memory_type in LASTING and draft.attribute not in _PASSING]
    found = [
        _profile(subject, [draft for draft in lasting if draft.subject == subject], "profile")
        for subject in dict.fromkeys(draft.subject for draft in lasting)
        if subject
    ]
    if unit.group_id is not None:
        shared = [
            draft
            for draft in drafts
            if draft.attribute in ("decision", "plan", "deadline") or draft.memory_type in LASTING
        ]
        if shared:
            found.append(_profile(unit.group_id, shared, "group_profile"))
    return found


def _profile(subject: str, own: list[Draft], memory_type: str) -> Draft:
    attributes: list[JsonValue] = [
        {
            "attribute": draft.attribute,
            "value": draft.value,
            "ended": draft.ended,
            "single": draft.single,
            "content": draft.content,
            "since": draft.occurred_at.isoformat(),
            "evidence": [{"message_id": e.message_id, "start": e.start, "end": e.end} for e in draft.evidence],
        }
        for draft in own
    ]
    return Draft(
        memory_type=memory_type,
        content="\n".join(draft.content for draft in own),
        evidence=tuple(place for draft in own for place in draft.evidence),
        occurred_at=max(draft.occurred_at for draft in own),
        subject=subject,
        attribute=memory_type,
        value=None,
        importance=0.6,
        data={"extractor": "builtin", "attributes": attributes},
    )


def merged_attributes(old: list[JsonValue], new: list[JsonValue]) -> list[JsonValue]:
    """The attributes of a profile after news: what is said again is kept once, what is single or ended gives way.

    >>> at_home = {"attribute": "home", "value": "Paris", "single": True, "ended": False}
    >>> [item["value"] for item in merged_attributes([at_home], [at_home | {"value": "Rome"}])]
    ['Rome']
    """
    kept = list(old)
    for item in new:
        if not isinstance(item, dict):
            continue
        same = [known for known in kept if isinstance(known, dict) and known.get("attribute") == item.get("attribute")]
        gone = [known for known in same if item.get("single") or _folded(known) == _folded(item)]
        kept = [known for known in kept if known not in gone]
        if not item.get("ended"):
            kept.append(item)
    return kept


def _folded(item: dict[str, JsonValue]) -> str:
    return str(item.get("value") or "").casefold()
