"""Profiles: the lasting attributes of a person or a group, gathered from the facts, each with its evidence."""

from __future__ import annotations

from pydantic import JsonValue

from ..drafts import Draft, Unit
from .clause import Clause

Attribute = dict[str, JsonValue]

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


def merged_attributes(old: list[Attribute], new: list[Attribute]) -> list[Attribute]:
    """The attributes of a profile after news. What is said again is kept once. What is single or ended gives way: it
    stays, with the moment `until` which it held, so that the profile can tell how it was.

    >>> home = {"attribute": "home", "value": "Paris", "single": True, "ended": False, "since": "2024-01-01"}
    >>> both = merged_attributes([home], [home | {"value": "Rome", "since": "2025-01-01"}])
    >>> [(item["value"], item.get("until")) for item in both]
    [('Paris', '2025-01-01'), ('Rome', None)]
    """
    kept = list(old)
    for item in new:
        rivals = [known for known in kept if "until" not in known and _rivals(known, item)]
        said = [known for known in rivals if not item.get("ended") and _folded(known) == _folded(item)]
        later = [known for known in rivals if _since(known) > _since(item)]
        for known in rivals:
            if known in said:
                kept = [_said_again(known, item) if one is known else one for one in kept]
            elif known not in later:
                kept = [known | {"until": _since(item)} if one is known else one for one in kept]
        if not said and not item.get("ended"):
            kept.append(item | {"until": min(map(_since, later))} if later and item.get("single") else item)
    return kept


def _said_again(known: Attribute, item: Attribute) -> Attribute:
    evidence = [place for one in (known, item) for place in _places(one)]
    distinct = [place for at, place in enumerate(evidence) if place not in evidence[:at]]
    return known | {"since": min(_since(known), _since(item)), "evidence": distinct}


def _places(item: Attribute) -> list[JsonValue]:
    found = item.get("evidence")
    return found if isinstance(found, list) else []


def _rivals(known: Attribute, item: Attribute) -> bool:
    """Only one of them can hold, or they say the same."""
    if known.get("attribute") != item.get("attribute"):
        return False
    over = item.get("ended") and item.get("value") is None
    return bool(item.get("single") or over) or _folded(known) == _folded(item)


def _since(item: Attribute) -> str:
    return str(item.get("since") or "")


def _folded(item: Attribute) -> str:
    return str(item.get("value") or "").casefold()
