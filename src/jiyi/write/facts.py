"""Comparable facts (subject, attribute and value), and timelines of those of one subject and attribute."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Self

from ..ids import identity, new_id, trust_parts
from ..languages.words import HAN, composed, normalise
from ..memory_types import layer_of
from ..roles import USER_SUBJECTS, teller_of
from ..scope import Scope
from ..store.write_set import PAST, NewMemory, NewRelation, SlotEntry, Source

_HALF = 16
_NUMBERS = re.compile(r"(?<![A-Za-z])[A-Za-z]*\d+(?:\.\d+)?[A-Za-z¹²³]*")  # and codes, of which every letter counts
_CODE = re.compile(r"\d|\B[A-Z]")
_NOT = re.compile(r"\b(?:no|not|never|none|without|un\w+able)\b|n't\b|[不没未无非别]")
_HAN = re.compile(f"[{HAN}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    slot: str
    value: str | None  # as `_written` gives it; None: unknown
    single: bool = False
    ended: bool = False
    replaces: str | None = None

    def ends(self, old: Self) -> bool:
        """Return True if the old fact ends when this one begins. Another value alone does not end it: a person
        has one home, but many hobbies. A new employer ends "I quit my job" too."""
        if old.ended:
            return not self.ended and (self.single or _alike(self.value, old.value))
        if self.ended:
            # Whoever left Acme left "Acme as a manager".
            exactly = self.value is None or _alike(self.value, old.value)
            return exactly or (old.value is not None and _is_part(self.value or "", old.value))
        if self.replaces is not None and _alike(self.replaces, old.value):
            return True
        return (self.single or old.single) and not self.says_the_same(old)

    def says_the_same(self, old: Self) -> bool:
        """Return True if the values agree, or the old one is more exact."""
        if self.value is None or old.value is None or self.ended != old.ended:
            return False
        return self.value == old.value or ((self.single or old.single) and _is_part(self.value, old.value))

    def refines(self, old: Self) -> bool:
        return (
            self.value is not None
            and old.value is not None
            and self.ended == old.ended
            and _is_part(old.value, self.value)
        )


def fact_of(
    data: Mapping[str, Any],
    place: Scope,
    *,
    user_names: Collection[str] = (),
    on: date | None = None,
    trust: float = 1.0,
) -> Fact | None:
    """Return the fact in a memory's data. `user_names`: names of the user besides the id. `on`: the day of an event or
    task, which on another day is another one."""
    attribute, value, replaces = data.get("attribute"), data.get("value"), data.get("replaces")
    if not isinstance(attribute, str) or not isinstance(data.get("subject"), str | None):
        return None
    return Fact(
        slot=slot_of(data, attribute, place, user_names=user_names, on=on, trust=trust),
        value=_written(value) if isinstance(value, str) else None,
        single=bool(data.get("single")),
        ended=bool(data.get("ended")),
        replaces=replaces if isinstance(replaces, str) else None,
    )


def slot_of(
    data: Mapping[str, Any],
    attribute: str,
    place: Scope,
    *,
    user_names: Collection[str] = (),
    on: date | None = None,
    trust: float = 1.0,
) -> str:
    """Return the timeline of an attribute of a person, as one teller tells it: others end only what they said
    themselves."""
    whom = (place.agent_id, place.group_id, *_person(data, place.user_id, user_names), *trust_parts(trust))
    return (
        identity("whom", *whom)[:_HALF] + identity("what", normalise(attribute), on.isoformat() if on else None)[:_HALF]
    )


def _person(data: Mapping[str, Any], user_id: str, user_names: Collection[str]) -> tuple[str | None, ...]:
    """Return the person that a memory is about, and who told it if that was not the user."""
    subject, speaker, owner = data.get("subject"), data.get("speaker"), data.get("owner")
    teller = teller_of(data, user_id)
    if teller is not None:
        about = None if subject in (None, speaker) else normalise(str(subject))
        return "told by", teller.kind, teller.name, "relative" if owner else "person", about
    name = "" if subject in (None, speaker, user_id, *user_names) else normalise(str(subject))
    return (f"user: {name}" if owner else "" if name in USER_SUBJECTS else name,)


def several_slot(agent_id: str | None, group_id: str | None, trust: float) -> str:
    """Return the slot of all statements with several facts."""
    return identity("several facts", agent_id, group_id, *trust_parts(trust))


def fact_in(entry: SlotEntry) -> Fact:
    """Return the fact of a stored memory, in the slot that it was stored with."""
    found = fact_of(entry.data, Scope(user_id="")) or Fact(slot=entry.slot, value=None)
    return replace(found, slot=entry.slot)


def _written(value: str) -> str:
    """Return a value as it is compared; in names case means nothing, in codes and passwords everything."""
    value = " ".join(composed(value).split())
    return value if _CODE.search(value) else value.casefold()


def _alike(one: str | None, other: str | None) -> bool:
    """Return True if two values name the same thing, whatever their case, width and script."""
    return one is not None and other is not None and normalise(one) == normalise(other)


def _is_part(short: str, long: str) -> bool:
    """Return True if the shorter value is part of the longer one: berlin, and berlin in germany. Values with other
    numbers, or with a negation in only one of them, are different."""
    if _NUMBERS.findall(short) != _NUMBERS.findall(long):
        return False
    short, long = normalise(short), normalise(long)
    if short == long:
        return False
    if bool(_NOT.search(short)) != bool(_NOT.search(long)):
        return False
    return short in long if _HAN.search(short) else f" {short} " in f" {long} ".replace(",", " ")


@dataclass(slots=True, kw_only=True)
class Line:
    """One memory on a timeline: stored, or new."""

    id: str
    fact: Fact
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: str | None = None
    told: list[tuple[datetime, Source]]
    stored: SlotEntry | None = None
    memory: NewMemory | None = None
    reasons: list[str] = field(default_factory=list)
    partial: bool = False  # the memory states other facts too

    def holds_at(self, at: datetime) -> bool:
        return self.valid_from <= at and (self.valid_to is None or self.valid_to > at)

    def end(self, at: datetime, by: str, reason: str) -> None:
        if self.valid_to is None or at < self.valid_to:
            self.valid_to, self.superseded_by = at, by
            self.reasons.append(reason)

    @property
    def confidence(self) -> float:
        memory = self.stored or self.memory
        return 1.0 if memory is None else memory.confidence

    @property
    def edited_at(self) -> datetime | None:
        return self.stored.edited_at if self.stored else None


def line_of(entry: SlotEntry) -> Line:
    return Line(
        id=entry.id,
        fact=fact_in(entry),
        valid_from=entry.valid_from,
        valid_to=entry.valid_to,
        superseded_by=entry.superseded_by,
        told=list(entry.told),
        stored=entry,
    )


def partial_line(entry: SlotEntry, fact: Fact) -> Line:
    """Return the line of one fact of a stored memory with several."""
    return replace(line_of(entry), fact=fact, told=[], partial=True)


class Timeline:
    """The facts of one subject and attribute over time: a new one finds its place, whenever it is told."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.relations: dict[tuple[str, str], NewRelation] = {}

    def place(self, new: Line, told_at: datetime, *, stays: bool, stated: bool) -> Line | None:
        """Give a new fact its place; return the line that says the same, if it says nothing new."""
        held = [line for line in self.lines if line.holds_at(new.valid_from)]
        known = next((line for line in held if new.fact.says_the_same(line.fact)), None)
        if known is not None and not stated:
            return _said_again(known, new, "it was said again")
        if known is not None:
            self._relate(new, known, "supports")
        following = self._following(new)
        over = [line for line in held if line is not known and new.fact.ends(line.fact)]
        passing = any(moment > told_at for line in over for moment, _ in line.told)  # the earlier fact holds again
        met = None
        if following is None:
            pass
        elif new.fact.says_the_same(following.fact) and not (stated or passing or following.edited_at):
            met = _said_again(following, new, "it held earlier already")
            met.valid_from = new.valid_from
        elif following.fact.ends(new.fact):
            new.end(following.valid_from, following.id, "something later was known already")
            self._relate(following, new, "contradicts")
        for line in over:
            self._end(line, new, met or new, told_at)
        if met is None and stays:
            self.lines.append(new)
        return met

    def _following(self, new: Line) -> Line | None:
        """Return the first later line that says the same or ends it."""
        later = [line for line in self.lines if line.valid_from > new.valid_from]
        later.sort(key=lambda line: line.valid_from)
        return next((one for one in later if one.fact.ends(new.fact) or new.fact.says_the_same(one.fact)), None)

    def _end(self, line: Line, new: Line, by: Line, told_at: datetime) -> None:
        if line.edited_at is not None and line.edited_at > new.valid_from:
            new.end(line.edited_at, line.id, "a person changed the other one later")
            self._relate(new, line, "contradicts")
            return
        told_again = [moment for moment, _ in line.told if moment > told_at]
        if told_again:
            self._part(line, new, min(told_again))
            return
        exact = new.fact.refines(line.fact)
        why = "more exactly" if exact else "is over" if new.fact.ended else "has changed"
        line.end(new.valid_from, by.id, f"a newer memory says it {why}")
        self._relate(by, line, "refines" if exact else "contradicts")

    def _part(self, line: Line, new: Line, again_at: datetime) -> None:
        """Split a fact that held before the new one, which came late, and was told again after it."""
        before = [told for told in line.told if told[0] < again_at]
        first = replace(line, id=new_id(), stored=None, told=before, reasons=[], valid_to=None)
        first.memory = _copy(line, first.id, [source for _, source in before])
        first.end(new.valid_from, new.id, "something else held in between")
        self.lines.append(first)
        line.valid_from = again_at
        line.reasons.append("something else held before it was told again")
        new.end(again_at, line.id, "what held before was told again")
        self._relate(new, first, "contradicts")

    def _relate(self, one: Line, other: Line, relation_type: str) -> None:
        strength = min(one.confidence, other.confidence)
        relation = NewRelation(memory_id=one.id, target_id=other.id, relation_type=relation_type, strength=strength)
        self.relations.setdefault((one.id, other.id), relation)


def _said_again(line: Line, new: Line, reason: str) -> Line:
    line.told += new.told
    line.reasons.append(reason)
    return line


def _copy(line: Line, memory_id: str, sources: list[Source]) -> NewMemory:
    if line.memory is not None:
        return replace(line.memory, id=memory_id, memory_key=memory_id, sources=tuple(sources))
    stored = line.stored
    if stored is None:
        raise ValueError("a line is stored or new")
    return NewMemory(
        id=memory_id,
        memory_key=memory_id,
        memory_type=stored.memory_type,
        layer=layer_of(stored.memory_type),
        content=stored.content,
        summary=stored.summary,
        data=stored.data,
        metadata={},
        importance=stored.importance,
        confidence=stored.confidence,
        trust=stored.trust,
        tags=stored.tags,
        dedupe_hash=identity("a part of", stored.id),
        occurred_at=stored.valid_from,
        valid_from=stored.valid_from,
        expires_at=None,
        source="extracted",
        sources=tuple(sources),
    )


def placed(line: Line, memory: NewMemory) -> NewMemory:
    """Return a new memory with its validity. One that has ended gets a hash of its own."""
    said = memory.dedupe_hash
    if line.valid_to is not None and memory.valid_to is None:
        said = PAST + identity(said, line.valid_to.isoformat())
    return replace(
        memory,
        slot=line.fact.slot,
        valid_from=line.valid_from,
        valid_to=line.valid_to,
        superseded_by=line.superseded_by,
        dedupe_hash=said,
        reason="; ".join(dict.fromkeys(line.reasons)) or None,
        sources=tuple({source.message_id: source for _, source in line.told}.values()) or memory.sources,
    )
