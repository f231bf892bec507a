"""The built-in extractor: every statement worth remembering, in the speaker's own words.

A memory is a sentence of a message (with those that depend on it), plus absolute dates in brackets. Its type comes from
the classifier, its slot from a table of single-valued attributes. Only people state facts: messages of assistants,
tools and unknown roles are left alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from pydantic import JsonValue

from ..languages import dates
from .classify import Classification, classify
from .drafts import Draft, Evidence, Said, Unit
from .endings import ended_things
from .rewrite import with_dates
from .slots import SlotValue, slot_values
from .statements import WORTH, Statement, statements

VERSION = "builtin-2"
PEOPLE = frozenset({"user", "human"})  # roles that speak for themselves
LONGEST_CORRECTION = 60
LONGEST_ENDING = 120
SURE_CORRECTION = 0.4
A_MOMENT = timedelta(minutes=15)

# The type of a memory, by the kind of its statement.
TYPES = {
    "fact": "fact", "decision": "fact", "change": "fact", "end": "fact", "correction": "fact",
    "preference": "preference", "instruction": "preference", "plan": "task", "event": "event",
}  # fmt: skip
IMPORTANCE = {"instruction": 0.7, "preference": 0.65, "decision": 0.65, "plan": 0.6, "event": 0.5}
_HABIT = re.compile(
    r"\b(?:every (?:\w+day|day|week|month|morning|evening|night)|usually|always)\b|每[天周月年个]|经常|总是|平时",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(?:moved|postponed|pushed|rescheduled|delayed|deadline|due|by)\b|推迟|改到|延期|提前|截止|之前", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;，；。.!！](?=\D)|\s(?=(?:and|but) I\b)")
_OTHER_CLAUSE = re.compile(r"[,;]? (?:and|but) (?=(?:my|our|I|I'm|I've)\b)|[，；](?=我[的家]?(?!们?也))")
_QUESTION = re.compile(r"[?？]\W*$")
_PLAIN_KINDS = ("fact", "preference", "plan", "event", "decision", "instruction")


class BuiltinExtractor:
    """Extracts without a language model."""

    id = "builtin"

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        return await asyncio.to_thread(extract, unit)


def extract(unit: Unit) -> list[Draft]:
    """Drafts of the statements in a unit that are worth remembering."""
    found: list[Draft] = []
    earlier = list(unit.history)
    for said in unit.messages:
        if said.role in PEOPLE:
            found += _of_message(said, earlier)
        earlier.append(said)
    return found


def _of_message(said: Said, earlier: Sequence[Said]) -> Iterator[Draft]:
    for at, one in enumerate(statements(said.text, "user")):
        corrected = _corrected(one, said, earlier) if at == 0 else None
        if corrected is not None:
            yield _correction(one, said, corrected)
        elif _QUESTION.search(one.text):
            continue
        elif one.found.salience >= WORTH:
            for part in _split_by_slots(one):
                yield _draft(part, said, earlier[-1].id if earlier and at == 0 else None)
        elif len(one.text) <= LONGEST_ENDING and ended_things(one.text):
            draft = _draft((one, None), said, None)
            yield replace(
                draft, memory_type="event", confidence=WORTH, data={**draft.data, "kind": "end", "only_ends": True}
            )


def _corrected(one: Statement, said: Said, earlier: Sequence[Said]) -> Said | None:
    """Return the message that a short correction ("no wait, 81") is about: the speaker's last one, a moment ago."""
    if len(one.text) > LONGEST_CORRECTION or one.found.probability("correction") < SURE_CORRECTION:
        return None
    own = [other for other in earlier[-3:] if other.role in PEOPLE and other.speaker == said.speaker]
    if not own or said.sent_at - own[-1].sent_at > A_MOMENT:
        return None
    return own[-1] if classify(own[-1].text, "user").salience >= WORTH else None


def _correction(one: Statement, said: Said, corrected: Said) -> Draft:
    """A correction together with what it corrects, about the same attribute."""
    slots = slot_values(corrected.text)
    slot = replace(slots[0], value=one.text, ended=False) if len(slots) == 1 else None
    draft = _draft((one, slot), said, None)
    return replace(
        draft,
        content=f"{with_dates(corrected.text, corrected.sent_at, future=None)} {draft.content}",
        evidence=(Evidence(message_id=corrected.id), *draft.evidence),
        data={**draft.data, "kind": "correction", "joined": True},  # it goes when either message is deleted
    )


def _split_by_slots(one: Statement) -> Iterator[tuple[Statement, SlotValue | None]]:
    """A statement of several attributes in clauses, one for each, where it can be cut between them."""
    found = slot_values(one.text)
    if not found:
        yield one, None
        return
    if len(found) == 1:
        parts = _parts(one)
        yield from parts or [(one, found[0])]
        return
    starts = [
        0,
        *(cut.end() for cut in re.finditer(r"(?:[,;，；。.!！](?=\D)|\s(?=(?:and|but) I\b))", one.text)),
        len(one.text),
    ]
    clauses = [(a, b) for a, b in pairwise(starts) if any(map(str.isalnum, one.text[a:b]))]
    by_clause = [slot_values(one.text[a:b]) for a, b in clauses]
    if any(len(values) > 1 for values in by_clause) or sum(map(len, by_clause)) != len(found):
        yield one, None  # nothing ends a statement of which a part may still hold
        return
    begin = 0
    for at, ((_, end), values) in enumerate(zip(clauses, by_clause, strict=True)):
        later = any(by_clause[at + 1 :])
        if (values and later) or at == len(clauses) - 1:
            text = re.sub(r"^\W*(?:and|but)\s", "", one.text[begin:end]).strip(" ,，;；")
            start = one.text.index(text, begin)
            own = slot_values(text)
            yield (
                Statement(text, one.start + start, one.start + start + len(text), one.found, one.dependent),
                (own[0] if len(own) == 1 else None),
            )
            begin = end


def _parts(one: Statement) -> list[tuple[Statement, SlotValue | None]]:
    """A statement cut where a clause about something else begins, if each part is worth remembering by itself."""
    cuts = [0, *(cut.end() for cut in _OTHER_CLAUSE.finditer(one.text)), len(one.text)]
    parts = []
    for begin, end in pairwise(cuts):
        text = re.sub(r"(?:[,;，；\s]|\b(?:and|but))+$", "", one.text[begin:end])
        part = Statement(text, one.start + begin, one.start + begin + len(text), classify(text, "user"), one.dependent)
        own = slot_values(text)
        parts.append((part, own[0] if own else None))
    return parts if len(parts) > 1 and all(part.found.salience >= WORTH for part, _ in parts) else []


def _draft(part: tuple[Statement, SlotValue | None], said: Said, follows: str | None) -> Draft:
    one, slot = part
    kind = one.found.kind if one.found.kind in TYPES else _plain_kind(one.found)
    future = _future(one, kind)
    occurred_at = _occurred_at(one.text, said.sent_at, future=future)
    memory_type = TYPES[_plain_kind(one.found) if kind in ("change", "end", "correction") and slot is None else kind]
    if memory_type == "fact" and _HABIT.search(one.text) and slot is None:
        memory_type = "pattern"
    data: dict[str, JsonValue] = {"extractor": VERSION, "kind": kind, "speaker": said.speaker}
    if one.dependent and follows:
        data["follows"] = follows  # by id: the text of another message must go when that is deleted
    return Draft(
        memory_type="fact" if slot else memory_type,
        content=with_dates(one.text, said.sent_at, future=future),
        evidence=(Evidence(message_id=said.id, start=one.start, end=one.end),),
        occurred_at=said.sent_at if slot else occurred_at,
        valid_from=said.sent_at,
        subject=_subject(slot, said),
        attribute=slot.slot if slot else None,
        value=slot.value if slot else None,
        single=slot is not None and not slot.ended,
        ended=slot is not None and slot.ended,
        replaces=slot.replaces if slot else None,
        importance=round(max(IMPORTANCE.get(kind, 0.6), 0.3) * (0.6 + 0.4 * one.found.salience), 2),
        confidence=round(one.found.salience, 2),
        data={name: value for name, value in data.items() if value is not None},
    )


def _subject(slot: SlotValue | None, said: Said) -> str | None:
    """Whom a statement is about: the speaker, or somebody of theirs."""
    speaker = said.speaker or "user"
    if slot is None or slot.subject is None:
        return speaker
    return slot.subject if slot.subject[:1].isupper() else f"{speaker}: {slot.subject}"


def _plain_kind(found: Classification) -> str:
    return max(_PLAIN_KINDS, key=found.probability)


def with_dates_of(text: str, sent_at: datetime) -> str:
    """Write absolute dates into a whole message, statement by statement."""
    dated = text
    for one in reversed(statements(text, "user")):
        future = _future(one, one.found.kind)
        dated = dated[: one.start] + with_dates(text[one.start : one.end], sent_at, future=future) + dated[one.end :]
    return dated


def _future(one: Statement, kind: str) -> bool | None:
    """Return where the undated times of a statement lie: ahead, behind, or None if that is open."""
    ahead, behind = one.found.probability("plan"), one.found.probability("event")
    if kind == "plan" or _MOVED.search(one.text):
        return True
    if kind == "event":
        return False
    return None if max(ahead, behind) < 0.15 else ahead > behind


def _occurred_at(text: str, said_at: datetime, *, future: bool | None) -> datetime:
    """The first moment that a plan or event speaks of, or when it was said."""
    if future is None:
        return said_at
    found = [span.start for span in dates(text, said_at, future=future)]
    fitting = [start for start in found if (start >= said_at) == future]
    return fitting[0] if fitting else said_at
