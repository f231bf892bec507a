"""Repetitions of stored memories, word for word or nearly. One memory is kept, with the sources, tags and metadata of
both. Texts are nearly the same if they differ in nothing but words without content, the order of a list, or the place
of a time that comes again. Similar vectors are not enough: those of "Tom likes Mia" and "Mia likes Tom" have a cosine
of 0.96, and the reader tells such pairs no better."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from .. import threads
from ..languages import cue
from ..languages.base import word_set
from ..languages.recurrence import recurrences
from ..languages.terms import tokens
from ..models import MemoryItem
from ..models.shown_dates import shown_dates
from ..scope import Scope
from ..store.write_set import EXTRACTED, NOT_INDEXED, STATED, ChangedMemory, Effects, NewMemory, Source
from ..text_cache import text_cache
from .behavior import BEHAVIOR, accrued, last_time
from .change import embed_changes, prepare
from .drafts import COMPARED
from .facts import several_slot
from .reconcile import ACTOR, DATED, edited, may_join

if TYPE_CHECKING:
    from .add import Flow

MOST = 20  # new memories that are compared; more are an import
COVERED = 0.9  # share of a text's words in another one that says at least the same
LONGEST_ITEM = 24  # characters of a thing in a list
LONGEST_SUBJECT = 4  # Chinese characters before a time
WORDS = 4  # heaviest keywords by which similar memories are looked up

_LATIN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_CODE = re.compile(r"(?<!\S)(?=\S*\d)\S+|\b(?=\w*[a-z][A-Z])\w+|\b[A-Z]{2,}\b")
_HAN = re.compile(r"[\u3400-\u9fff]")
_EMPTY_HAN = re.compile("很|非常|特别|真的|都|也|的|啊|呢|吧")
_SYMBOL = re.compile(r"[^\w\s.,;:!?'’\"“”()。，、；：！？（）「」…-]")
_CONTRACTED = re.compile(r"['’](?:m|re|s|ve|ll)$")
_EMPTY = word_set("a an the am is are to do does really very so just quite also")


@dataclass(frozen=True, slots=True, order=True)
class _Words:
    """The parts of a text that are equal, and in the same order, in one that says the same."""

    latin: tuple[str, ...]
    codes: tuple[str, ...]
    han: str
    symbols: tuple[str, ...]
    negations: int


@text_cache(512)  # a new text is compared with several, and these with the next one
def _words(text: str) -> _Words:
    codes = tuple(one.rstrip(".,;:!?。，！？") for one in _CODE.findall(text))
    plain = _CODE.sub(" ", text)
    found = [_CONTRACTED.sub("", one) for one in _LATIN.findall(_HAN.sub(" ", plain))]
    found = [one for one in found if one.lower() not in _EMPTY]
    return _Words(
        latin=tuple(one.lower() for one in found),
        codes=codes,
        han="".join(_HAN.findall(_EMPTY_HAN.sub("", plain))),
        symbols=tuple(_SYMBOL.findall(plain)),
        negations=len(cue("negation").findall(text)),
    )


def details(text: str) -> frozenset[str]:
    """Return the codes, numbers, names, symbols and negations of a text."""
    found = _words(text)
    later = _LATIN.findall(_HAN.sub(" ", text))[1:]  # the first word of a sentence has a capital letter anyway
    names = (one.lower() for one in later if one[0].isupper() and len(one) > 1)
    return frozenset((*found.codes, *names, *found.symbols, f"{found.negations} negations"))


def content_words(text: str) -> frozenset[str]:
    """Return the words of a text that are longer than one letter."""
    return frozenset(word for word in tokens(text) if len(word) > 1)


def covers(long: str, short: str) -> bool:
    """Return True if one text says at least what another says."""
    wanted, there = content_words(short), content_words(long)
    return len(wanted & there) >= COVERED * len(wanted) and details(short) <= details(long)


def has_details(text: str, short: str) -> bool:
    """Return True if a text has the codes, numbers, names and symbols of another one, and as many negations."""
    folded = text.casefold()
    exact = (one for one in details(short) - details(text) if not one.endswith(" negations"))
    return _words(text).negations == _words(short).negations and all(one.casefold() in folded for one in exact)


def says_both(merged: str, old: str, new: str) -> bool:
    """Return True if a merged text has the words of both texts, and no fewer negations."""
    negated = [len(cue("negation").findall(text)) for text in (merged, old, new)]
    there = content_words(merged)
    shares = [len(words & there) >= COVERED * len(words) for words in (content_words(old), content_words(new))]
    exact = {one for one in details(old) | details(new) if not one.endswith(" negations")}
    return all(shares) and exact <= details(merged) and negated[0] >= max(negated[1:])


def says_the_same(one: str, other: str) -> bool:
    """Return True if two texts differ only in words without content, in the order of a list, or in the place of a time
    that comes again. Long ones are not compared: equal ones have the same hash.

    >>> says_the_same("I like green tea", "I really like green tea!"), says_the_same("Tom likes Mia", "Mia likes Tom")
    (True, False)
    >>> says_the_same("I like tea and coffee", "I like coffee and tea")
    True
    """
    if max(len(one), len(other)) > COMPARED:
        return False
    if _words(one) == _words(other):
        return True
    listed, timed = _list_in(one), _time_in(one)
    return (listed is not None and listed == _list_in(other)) or (timed is not None and timed == _time_in(other))


def _list_in(text: str) -> tuple[_Words, list[_Words], _Words] | None:
    """Return what is before, in and after the only list of a text, if the order of its things says nothing."""
    joints = list(cue("list_joint").finditer(text))
    if not joints or cue("ordered").search(text):
        return None
    before = [found.end() for found in cue("before_list").finditer(text, 0, joints[0].start())]
    if not before:
        return None
    after = cue("after_list").search(text, joints[-1].end())
    end = len(text) if after is None else after.start()
    starts = [before[-1], *(joint.end() for joint in joints)]
    items = [text[a:b].strip() for a, b in zip(starts, [*(joint.start() for joint in joints), end], strict=True)]
    if not all(map(_is_item, items)):
        return None
    return _words(text[: starts[0]]), sorted(map(_words, items)), _words(text[end:])


def _is_item(text: str) -> bool:
    """Return True for a thing in a list, False for a clause or a number."""
    is_clause = any(cue(name).search(f"{text} ") for name in ("before_list", "negation", "reported"))
    found = _words(text)
    return bool(found.latin or found.han) and len(text) <= LONGEST_ITEM and not is_clause


def _time_in(text: str) -> tuple[_Words, _Words] | None:
    """Return the words of a text of one clause, and the time that comes again at its beginning, its end or behind its
    subject."""
    found = recurrences(text)
    if len(found) != 1 or cue("reported").search(text) or cue("clause_end").search(text):
        return None
    start, end = found[0].at
    before, after = text[:start], text[end:]
    if at := cue("at_time").search(before):
        before = before[: at.start()]
    outside = not before.strip() or not after.strip(" .。!！")
    if not outside and not (_HAN.match(before) and len(before) <= LONGEST_SUBJECT):
        return None
    return _words(f"{before} {after}"), _words(text[start:end])


def merge_equal(new: Sequence[NewMemory]) -> list[NewMemory]:
    """Return statements of one call with each text once."""
    found: dict[str, NewMemory] = {}
    for one in new:
        first = found.setdefault(one.dedupe_hash, one)
        if first is not one:
            found[one.dedupe_hash] = replace(
                first,
                tags=tuple(dict.fromkeys((*first.tags, *one.tags))),
                metadata={**first.metadata, **one.metadata},
                importance=max(first.importance, one.importance),
                data=accrued(first.data, one.data) if one.memory_type == BEHAVIOR else {**first.data, **one.data},
            )
    return list(found.values())


async def merge_repeated(
    memories: Sequence[NewMemory],
    repeats: Mapping[str, str],
    effects: Effects,
    place: Scope,
    at: datetime,
    flow: Flow,
) -> tuple[tuple[NewMemory, ...], Effects, tuple[str, ...]]:
    """Return the memories that are new, their effects, and the stored memories that say the same as the others.
    `repeats`: stored memories with the same words, by the id of the new one."""
    exact = {
        one.id: repeats[one.id]
        for one in memories
        if one.id in repeats
        and (one.tags or one.metadata or _sure(one) or one.memory_type == BEHAVIOR or _has_data(one))
    }
    near = await _near(memories, effects, place, flow)
    if not exact and not near:
        return tuple(memories), effects, ()
    there = {one.id: one for one in await flow.store.memories.get(place.user_id, [*exact.values(), *near.values()])}
    changed = {one.id for one in effects.changes}
    changes: list[ChangedMemory] = []
    evidence: dict[str, tuple[Source, ...]] = {}
    versions, dropped = dict[str, int](), set[str]()
    for new in memories:
        old = there.get(exact.get(new.id) or near.get(new.id) or "")
        if old is None or old.id in changed or (new.source != STATED and await edited(old, flow.store)):
            continue
        if new.id in near and (not _mergeable(new, old, place) or await edited(old, flow.store)):
            continue
        values = _merged(new, old, text=new.id in near and new.source == STATED)
        if values:
            work = partial(prepare, old, values, flow.keyword_rules, action="merge", actor=ACTOR)
            change = await threads.run(len(old.content), work, reason="it was saved again")
            [change], _ = await embed_changes([replace(change, at=at)], [old], flow.embedder)
            changes.append(ChangedMemory(id=old.id, change=change))
            changed.add(old.id)
        versions[old.id] = old.version
        if new.id in near:
            dropped.add(new.id)
            evidence[old.id] = (*effects.evidence.get(old.id, ()), *evidence.get(old.id, ()), *new.sources)
    more = replace(
        effects,
        versions={**effects.versions, **versions},
        changes=(*effects.changes, *changes),
        evidence={**effects.evidence, **evidence},
        relations=tuple(one for one in effects.relations if dropped.isdisjoint((one.memory_id, one.target_id))),
    )
    return tuple(one for one in memories if one.id not in dropped), more, tuple(evidence)


def _has_data(new: NewMemory) -> bool:
    return new.source == STATED and bool(new.data)


def _sure(new: NewMemory) -> bool:
    """Return True if somebody gave the importance; that of an extractor is a guess."""
    return new.source == STATED and new.importance > 0.5


def merged_fields(
    old: MemoryItem, *, tags: Sequence[str], metadata: Mapping[str, JsonValue], importance: float
) -> dict[str, Any]:
    """Return the fields of a memory that change when it gets those of another one too."""
    values: dict[str, Any] = {
        "tags": list(dict.fromkeys((*old.tags, *tags))),
        "metadata": {**old.metadata, **metadata},
        "importance": max(old.importance, importance),
    }
    before: dict[str, Any] = {"tags": list(old.tags), "metadata": dict(old.metadata), "importance": old.importance}
    return {name: value for name, value in values.items() if value != before[name]}


def _merged(new: NewMemory, old: MemoryItem, *, text: bool) -> dict[str, Any]:
    """Return the fields of a stored memory that a repetition changes."""
    importance = new.importance if new.source == STATED else old.importance
    values = merged_fields(old, tags=new.tags, metadata=new.metadata, importance=importance)
    if new.memory_type == BEHAVIOR:
        if (data := accrued(old.data, new.data)) != old.data:
            values |= {"data": data, "occurred_at": last_time(data) or old.occurred_at}
    elif new.source == STATED and (data := {**old.data, **new.data}) != old.data:
        values["data"] = data
    if text and new.content != old.content:
        values |= {"content": new.content, "summary": new.summary}
    return values


async def _near(memories: Sequence[NewMemory], effects: Effects, place: Scope, flow: Flow) -> dict[str, str]:
    """Return the most similar stored memory of each new one."""
    settled = {one.change.values.get("superseded_by") for one in effects.changes}
    settled |= {one.memory_id for one in effects.relations if one.relation_type != "supports"}
    supported = {one.memory_id: one.target_id for one in effects.relations if one.relation_type == "supports"}
    asked = [one for one in memories if _comparable(one) and one.id not in settled]
    if len(asked) > MOST:
        return {}
    found: dict[str, str] = {}
    for new in asked:
        if new.id in supported:
            found[new.id] = supported[new.id]  # the same attribute and value
            continue
        if new.slot is not None and new.slot != several_slot(place.agent_id, place.group_id, new.trust):
            continue  # its timeline has decided
        words = [keyword for keyword, _, source in new.index.keywords if source not in ("user_tag", "type")][:WORDS]
        if not words:
            continue
        for memory_id, text in await flow.store.entries.alike(place.user_id, words, memory_type=new.memory_type):
            if says_the_same(new.content, text):
                found[new.id] = memory_id
                break
    return found


def _comparable(new: NewMemory) -> bool:
    current = new.valid_to is None and new.status == "active" and new.memory_key == new.id
    derived = new.source in (STATED, EXTRACTED) and new.memory_type != "episode"
    return current and derived and new.index is not NOT_INDEXED


def _mergeable(new: NewMemory, old: MemoryItem, place: Scope) -> bool:
    if not may_join(new, old, place) or (old.memory_type, old.expires_at) != (new.memory_type, new.expires_at):
        return False
    if new.memory_type in DATED and old.occurred_at.date() != new.occurred_at.date():
        return False
    if shown_dates(new.data) != shown_dates(old.data):
        return False
    return says_the_same(new.content, old.content)
