"""Single-valued attributes of statements that are added as they are, without a conversation."""

from __future__ import annotations

from dataclasses import replace

from ..store.contract import NewMemory
from .build import Context
from .reconcile import Proposed
from .settle import fact_told
from .slots import SlotValue, slot_values

# Patterns may misread a sentence, and a statement must not vanish because of that: it ends another one only where most
# of it is about the attribute.
WHOLE = 0.6  # share of the statement's text


def stated_facts(memory: NewMemory, context: Context) -> Proposed:
    """Propose a statement with the attribute that it states, changes or ends, if there is one."""
    plain = Proposed(memory=memory, told_at=memory.occurred_at, stated=True)
    own = fact_told(memory, context.place, frozenset())
    if own is not None:
        return replace(plain, facts=(own,))
    found = slot_values(memory.content)
    if len(found) != 1 or not _sure(found[0], memory.content):
        return plain
    [one] = found
    about = {
        "subject": one.subject,
        "attribute": one.slot,
        "value": one.value,
        "single": not one.ended,
        "ended": one.ended,
        "replaces": one.replaces,
    }
    fact = fact_told(replace(memory, data={**memory.data, **about}), context.place, frozenset())
    return replace(plain, facts=(fact,) if fact else ())


def _sure(one: SlotValue, text: str) -> bool:
    return one.ended or one.replaces is not None or one.at[1] - one.at[0] >= WHOLE * len(text.rstrip(" .!。！"))
