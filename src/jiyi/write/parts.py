"""Saved statements with several facts. Each fact has its timeline; when one ends, the others are kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ..languages import cue, sentences
from ..languages.terms import tokens
from ..languages.words import width
from ..roles import BY_USER
from ..store.write_set import NewMemory
from ..text_cache import text_cache
from .build import Context, derived
from .classify import classify
from .drafts import COMPARED, Draft, Evidence
from .extract import Statement, refers_back, split_by_slots, split_clauses, statements
from .facts import Line, fact_of
from .slots import SlotValue, introduced, slot_values

# Patterns may misread a sentence, and a statement must not vanish because of that: it states an attribute only where
# most of it is about that.
WHOLE = 0.6  # share of the text
MIN_SENTENCE = 10  # width of a sentence that says something by itself
CLAUSE = 0.3  # salience of a clause that is no fragment; a person has decided that the text is worth keeping
_STOPS = ".!?;。！？；…"
_LOOSE = re.compile(r"(?<![,;，；\s])(?:[,;，；\s]|\b(?:and|but))+$")


@dataclass(frozen=True, slots=True)
class Part:
    """A clause of a statement, and the attribute that it states, changes or ends."""

    text: str
    start: int
    end: int
    value: SlotValue | None


@text_cache(256)  # those of one user are read with every new fact
def parts_of(text: str) -> tuple[Part, ...]:
    """Cut a statement into clauses that can end one by one.

    >>> [part.text for part in parts_of("I live in Rome, and my dog is called Rex.")]
    ['I live in Rome', 'my dog is called Rex.']
    """
    if len(text) > COMPARED:  # a document, which ends as a whole
        return (Part(text, 0, len(text), None),)
    found = []
    for one in (piece for statement in statements(text, "user") for piece in _sentences(statement)):
        cut = list(split_by_slots(one))
        found += cut if len(cut) > 1 else split_clauses(one, CLAUSE) or cut
    if len(found) > 1:
        return tuple(Part(one.text, one.start, one.end, _sure(value, one.text)) for one, value in found)
    values = slot_values(text)
    if len(values) == 1 and (people := introduced(text)):
        stated = {one: slot_values(one) for one, _ in people}
        return tuple(Part(one, *at, stated[one][0] if len(stated[one]) == 1 else None) for one, at in people)
    return (Part(text, 0, len(text), _sure(values[0], text) if len(values) == 1 else None),)


def _sentences(one: Statement) -> Iterator[Statement]:
    """Yield the sentences of a statement, each with those that mean nothing without it."""
    starts: list[int] = []
    for start, end in sentences(one.text):
        sentence = one.text[start:end]
        needs = refers_back(sentence) or cue("no_subject").match(sentence) or width(sentence) < MIN_SENTENCE
        if not starts or not needs:
            starts.append(start)
    if len(starts) <= 1:
        yield one
        return
    for start, following in pairwise([*starts, len(one.text)]):
        text = one.text[start:following].rstrip()
        yield Statement(text, one.start + start, one.start + start + len(text), classify(text, "user"), one.dependent)


def _sure(value: SlotValue | None, text: str) -> SlotValue | None:
    if value is None or value.ended or value.replaces is not None:
        return value
    return value if value.at[1] - value.at[0] >= WHOLE * len(text.rstrip(" .!。！")) else None


def nearest_part(parts: Sequence[Part], text: str) -> Part | None:
    """Return the part that shares most words with a text, relative to its own; None if there is no such part."""
    told = frozenset(tokens(text[:COMPARED]))
    shares = [(len(told & own) / len(own) if (own := frozenset(tokens(part.text))) else 0.0) for part in parts]
    best = max(shares, default=0.0)
    return parts[shares.index(best)] if best and shares.count(best) == 1 else None


def rest_of(text: str, parts: Sequence[Part], ended: Collection[Part]) -> str:
    """Return a statement without some of its parts, in its own words.

    >>> text = "我住在上海，在银行上班，养了一只猫"
    >>> rest_of(text, parts_of(text), parts_of(text)[:1])
    '在银行上班，养了一只猫'
    """
    runs: list[list[Part]] = [[]]
    for part in parts:
        if part in ended:
            runs.append([])
        else:
            runs[-1].append(part)
    rest = ""
    for run in filter(None, runs):
        own = run[0].text + text[run[0].end : run[-1].end]
        if rest:
            rest = _LOOSE.sub("", rest)
            rest += ("" if rest.endswith(tuple(_STOPS)) else ";") + " " if rest[-1].isascii() else "；"
        rest += own
    return rest


def names_told(over: Iterable[Line], context: Context) -> Iterator[NewMemory]:
    """Return who the people are that messages introduced beside facts that have ended: after a move, "I live in Rome
    with my wife Petra" still tells her name."""
    for line in over:
        said = line.stored or line.memory
        if said is None or not line.told:
            continue
        for text, _ in introduced(said.content[:COMPARED])[1:]:
            evidence = tuple(Evidence(message_id=one.message_id, start=one.start, end=one.end) for _, one in line.told)
            own = next(iter(slot_values(text)), None)
            draft = Draft(
                memory_type="fact",
                content=text,
                evidence=evidence,
                occurred_at=line.valid_from,
                subject=str(said.data.get("speaker") or "user"),
                attribute=own.slot if own else None,
                value=own.value if own else None,
                single=own is not None,
                data={name: said.data[name] for name in ("extractor",) if name in said.data},
            )
            teller = {name: said.data[name] for name in ("speaker", "role", BY_USER) if name in said.data}
            memory = derived(draft, context, teller)
            fact = fact_of(memory.data, context.place, user_names=context.user_names, trust=memory.trust)
            yield replace(memory, slot=fact.slot) if fact else memory
