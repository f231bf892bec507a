"""The built-in extractor as a stage: for conversations, and for what single statements are about."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ..store.contract import NewMemory
from .build import Context, derived
from .drafts import Draft, Said, Unit
from .grow import GROWING, PROFILES
from .reconcile import Proposed
from .settle import DATED, fact_told

# A person has one of each. Rules may misread a sentence, and what somebody stated must not vanish because of that: so a
# statement ends another only where it is about such a thing as a whole, or says itself that something is over.
ONE_AT_A_TIME = frozenset({"home", "job", "employer", "diet", "age", "phone number", "email", "relationship"})
AS_A_WHOLE = 0.6  # of the statement's text


class BuiltinExtractor:
    id = "builtin"

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        return await asyncio.to_thread(_drafts, unit)


def stated_facts(memory: NewMemory, context: Context) -> list[Proposed]:
    """A statement with what it says in a form that can be compared, where that can be told; and what it adds to a
    profile that is there."""
    place = context.place
    plain = Proposed(memory=memory, told_at=memory.occurred_at, stated=True)
    own = fact_told(memory, place, frozenset())
    if own is not None:
        return [replace(plain, facts=(own,))]
    said = Said(id=memory.id, role="user", speaker=None, text=memory.content, sent_at=memory.occurred_at)
    drafts = _drafts(Unit(id=memory.id, messages=(said,), user_id=place.user_id, group_id=place.group_id))
    found = [(draft, replace(derived(draft, context), sources=())) for draft in drafts]
    facts = [(draft, new, fact) for draft, new in found if (fact := fact_told(new, place, frozenset()))]
    aside = [
        Proposed(memory=new, facts=(fact,), told_at=memory.occurred_at, aside=True)
        for draft, new, fact in facts
        if draft.memory_type in PROFILES
    ]
    lasting = tuple(
        fact for draft, _, fact in facts if draft.memory_type not in GROWING | DATED and _sure(draft, memory.content)
    )
    over = next((draft.over for draft in drafts if draft.over), None)
    return [replace(plain, facts=lasting, over=over and replace(over, if_known=False)), *aside]


def _drafts(unit: Unit) -> Sequence[Draft]:
    from .extractors import builtin_drafts  # with its tables of words, which take a while to read

    return builtin_drafts(unit)


def _sure(draft: Draft, text: str) -> bool:
    if draft.ended or draft.replaces:
        return True
    spans = [one.end - one.start for one in draft.evidence if one.start is not None and one.end is not None]
    return draft.attribute in ONE_AT_A_TIME and sum(spans) >= AS_A_WHOLE * len(text)
