"""Comparable facts: subject, attribute and value of a memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from ..languages.words import HAN, normalise
from ..store.contract import SlotEntry
from .hashes import apart, identity

THE_USER = frozenset({"", "user", "the user", "用户", "该用户", "我", "i"})
_HALF = 16
_NUMBERS = re.compile(r"\d+(?:\.\d+)?")
_NOT = re.compile(r"\b(?:no|not|never|none|without|un\w+able)\b|n't\b|[不没未无非别]")
_HAN = re.compile(f"[{HAN}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    slot: str
    value: str | None  # normalised; None: it cannot be told (any more)
    single: bool = False
    ended: bool = False
    replaces: str | None = None

    def ends(self, old: Fact) -> bool:
        """Return True if the old fact ends when this one begins. Another value alone does not end it: a person
        has one home, but many hobbies."""
        if old.ended:
            return not self.ended and _same(self.value, old.value)
        if self.ended:
            # Whoever left Acme left "Acme as a manager".
            exactly = self.value is None or _same(self.value, old.value)
            return exactly or (old.value is not None and _is_part(self.value or "", old.value))
        if self.replaces is not None and _same(self.replaces, old.value):
            return True
        return (self.single or old.single) and not self.says_the_same(old)

    def says_the_same(self, old: Fact) -> bool:
        """The value agrees, or the old one gives it more exactly."""
        if self.value is None or old.value is None or self.ended != old.ended:
            return False
        return self.value == old.value or ((self.single or old.single) and _is_part(self.value, old.value))

    def refines(self, old: Fact) -> bool:
        return (
            self.value is not None
            and old.value is not None
            and self.ended == old.ended
            and _is_part(old.value, self.value)
        )


def fact_of(
    data: Mapping[str, Any],
    *,
    agent_id: str | None,
    group_id: str | None,
    is_user: frozenset[str] = frozenset(),
    on: date | None = None,
    trust: float = 1.0,
) -> Fact | None:
    """The fact in a memory's data. `is_user`: names, normalised, that mean the user. `on`: what happened, or is to be
    done, on another day is another thing."""
    attribute, value, replaces = data.get("attribute"), data.get("value"), data.get("replaces")
    subject = data.get("subject")
    if not isinstance(attribute, str) or not isinstance(subject, str | None):
        return None
    who = normalise(subject or "")
    who = "" if who in THE_USER or who in is_user else who
    return Fact(
        slot=identity("whom", agent_id, group_id, who, *apart(trust))[:_HALF]
        + identity("what", normalise(attribute), on.isoformat() if on else None)[:_HALF],
        value=normalise(value) if isinstance(value, str) else None,
        single=bool(data.get("single")),
        ended=bool(data.get("ended")),
        replaces=normalise(replaces) if isinstance(replaces, str) else None,
    )


def beside(slot: str, attribute: str) -> str:
    """The slot of another attribute of the same, told in the same place."""
    return whom(slot) + identity("what", normalise(attribute), None)[:_HALF]


def whom(slot: str) -> str:
    """The half of a slot that says of whom, and in which place, it was told."""
    return slot[:_HALF]


def fact_in(entry: SlotEntry) -> Fact:
    """The fact of a memory that is stored; in its slot, whoever it was about when it was told."""
    found = fact_of(entry.data, agent_id=None, group_id=None) or Fact(slot=entry.slot, value=None)
    return replace(found, slot=entry.slot)


def _same(one: str | None, other: str | None) -> bool:
    return one is not None and one == other


def _is_part(short: str, long: str) -> bool:
    """Words of the longer one that make a shorter answer of the same kind: berlin, and berlin in germany. With other
    numbers, or with a no in only one of them, they say different things."""
    if short == long or _NUMBERS.findall(short) != _NUMBERS.findall(long):
        return False
    if bool(_NOT.search(short)) != bool(_NOT.search(long)):
        return False
    return short in long if _HAN.search(short) else f" {short} " in f" {long} ".replace(",", " ")
