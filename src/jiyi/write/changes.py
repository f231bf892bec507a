"""End stored statements that new ones make obsolete, as the reader judges it.

A new statement is compared with the few stored ones that are nearest to it by meaning and words. The user's own
unmarked prose may end anything in the user's store; another speaker's words only what that speaker said."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from .. import threads
from ..errors import StoreError
from ..index.query import IndexQuery
from ..languages.terms import tokens
from ..models import MemoryItem
from ..reader import USER, Passage, Reader, Verdict
from ..roles import is_person, teller_of
from ..scope import Filter, Scope
from ..store.write_set import Change, ChangedMemory, Effects, NewMemory, NewRelation
from .own_words import own_words
from .reconcile import ACTOR, edited
from .supersede import CAN_END

if TYPE_CHECKING:
    from .add import Flow

logger = logging.getLogger(__name__)

ENDS = 0.93  # probability from which on a statement ends; to be chosen anew on held-out records for each reader
MAX_NEW = 60  # new statements of one call that are judged; more are an import
MAX_OLDER = 4  # stored statements that each is compared with
NEAREST = 24  # rows of the index that these are chosen from
MIN_LIKENESS = 0.1  # of vectors and words together: below it, nothing has to do with each other
MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Ending:
    """A verdict that a new statement ends a stored one."""

    new: NewMemory
    old: MemoryItem
    probability: float


async def end_what_changed(
    memories: Sequence[NewMemory], effects: Effects, place: Scope, at: datetime, flow: Flow
) -> tuple[Effects, tuple[str, ...]]:
    """Return the effects with those of the endings that the reader sees in new memories, which have been indexed. If it
    fails, nothing more ends, and the problem is returned: what was said is stored anyway."""
    reader = flow.reader
    news = [] if reader is None else _judged(memories)
    if reader is None or not news:
        return effects, ()
    try:
        endings = await _endings(reader, news, effects, place, at, flow)
    except StoreError:
        raise
    except Exception as error:  # of a caller's own class
        logger.warning("the reader failed", exc_info=error)
        return effects, (f"nothing was ended by reading: the reader failed ({type(error).__name__})",)
    return (_with_endings(effects, endings, at) if endings else effects), ()


async def _endings(
    reader: Reader, news: Sequence[NewMemory], effects: Effects, place: Scope, at: datetime, flow: Flow
) -> list[Ending]:
    """Ask the reader about each new statement and the stored ones nearest to it."""
    taken = {one.id for one in effects.changes}
    best: dict[str, Ending] = {}  # by stored memory, the surest
    for new in news:
        near = await _nearest(new, place, at, flow)
        older = [one for one in near if one.id not in taken and _may_end(new, one, place)]
        verdicts = await threads.run(len(new.content), _verdicts, reader, new, older, place) if older else ()
        for old, verdict in zip(older, verdicts, strict=True):
            surest = best.get(old.id)
            if verdict is not None and verdict.ends >= ENDS and (surest is None or verdict.ends > surest.probability):
                best[old.id] = Ending(new, old, verdict.ends)
    return [one for one in best.values() if not await edited(one.old, flow.store)]


def _judged(memories: Sequence[NewMemory]) -> list[NewMemory]:
    """Return the new statements of persons: the messages, and what was saved or worded without one that is new."""
    messages = {source.message_id for one in memories if one.memory_type == MESSAGE for source in one.sources}
    news = [
        one
        for one in memories
        if one.valid_to is None
        and one.status == "active"
        and is_person(one.data.get("role") or USER)
        and (one.memory_type == MESSAGE or one.memory_type in CAN_END)
        and (one.memory_type == MESSAGE or messages.isdisjoint(source.message_id for source in one.sources))
        and _own_part(one.content)
    ]
    return news if len(news) <= MAX_NEW else []


def _own_part(text: str) -> str:
    """Return a text without what its speaker passes on, such as quotes: only own words end anything."""
    return " ".join(part for start, end in own_words(text) if (part := text[start:end].strip()))


async def _nearest(new: NewMemory, place: Scope, at: datetime, flow: Flow) -> list[MemoryItem]:
    """Return the stored statements that are nearest to a new one by meaning and words."""
    types = (*CAN_END, MESSAGE)
    where = Filter(user_id=place.user_id, agent_id=place.agent_id, group_id=place.group_id, memory_types=types, now=at)
    words = tuple(dict.fromkeys(tokens(new.content)))
    vector = new.index.vector
    query = IndexQuery(filter=where, vector=vector, terms=words, words=words, model=flow.embedder.id, recalls=False)
    found = await flow.index.gather(query)
    likeness = found.coverage if vector is None else found.semantic + found.coverage
    order = np.argsort(-likeness)[:NEAREST].tolist()
    ids = [str(found.ids[at]) for at in order if likeness[at] >= MIN_LIKENESS]
    stored = {one.id: one for one in await flow.store.memories.get(place.user_id, ids)}
    rows = [stored[one] for one in ids if one in stored]
    told = {source for one in rows if one.memory_type != MESSAGE for source in one.source_ids}
    return [one for one in rows if one.memory_type != MESSAGE or told.isdisjoint(one.source_ids)][:MAX_OLDER]


def _may_end(new: NewMemory, old: MemoryItem, place: Scope) -> bool:
    if old.valid_from >= new.valid_from or old.trust > new.trust or not is_person(old.data.get("role") or USER):
        return False
    if (old.agent_id, old.group_id) != (place.agent_id, place.group_id):
        return False
    teller = teller_of(new.data, place.user_id)
    return teller is None or teller == teller_of(old.data, place.user_id)


def _verdicts(reader: Reader, new: NewMemory, older: Sequence[MemoryItem], place: Scope) -> Sequence[Verdict | None]:
    return reader.changes(
        _passage(_own_part(new.content), new.data, place.user_id),
        [_passage(one.content, one.data, place.user_id) for one in older],
    )


def _passage(text: str, data: Mapping[str, object], user_id: str) -> Passage:
    teller = teller_of(data, user_id)
    return Passage(text, USER if teller is None else teller.name or "")


def _with_endings(effects: Effects, endings: Sequence[Ending], at: datetime) -> Effects:
    changes, relations = list(effects.changes), list(effects.relations)
    for one in endings:
        change = Change(
            values={"valid_to": one.new.valid_from, "superseded_by": one.new.id},
            action="supersede",
            actor=ACTOR,
            reason=f"a newer statement ends it (probability {one.probability:.2f})",
            at=at,
        )
        changes.append(ChangedMemory(id=one.old.id, change=change))
        relations.append(
            NewRelation(
                memory_id=one.new.id, target_id=one.old.id, relation_type="contradicts", strength=one.probability
            )
        )
    return replace(
        effects,
        versions={**effects.versions, **{one.old.id: one.old.version for one in endings}},
        changes=tuple(changes),
        relations=tuple(relations),
    )
