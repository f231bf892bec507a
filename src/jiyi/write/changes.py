"""End stored statements that new ones make obsolete, as the reader judges it.

A new statement is compared with the few earlier ones, stored or told in the same call, that are nearest to it by
meaning and words. The user's own unmarked prose may end anything in the user's store; another speaker's words only what
that speaker said. Of a saved text with several claims those that still hold are kept."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from .. import threads
from ..errors import StoreError
from ..ids import identity
from ..index.query import IndexQuery
from ..languages.terms import tokens
from ..models import MemoryItem
from ..reader import USER, Passage, Reader, Verdict, told
from ..roles import is_person, teller_of
from ..scope import Filter, Scope
from ..store.write_set import NOT_INDEXED, PAST, STATED, Change, ChangedMemory, Effects, NewMemory, NewRelation
from .index import KeywordRules, embed_entries, entry_of
from .own_words import own_words
from .parts import Part, parts_of, rest_of
from .reconcile import ACTOR, CAN_END, Told, edited, rest_row

if TYPE_CHECKING:
    from .add import Flow

logger = logging.getLogger(__name__)

ENDS = 0.77  # probability from which on a statement ends; chosen on held-out records for each reader
MAX_NEW = 60  # new statements of one call that are judged; more are an import
MAX_OLDER = 4  # earlier statements that each is compared with
MAX_CLAIMS = 8  # of those that are judged one by one
NEAREST = 24  # rows of the index that these are chosen from
MIN_LIKENESS = 0.5  # of vectors and words together, of statements told in the same call: most are about one thing
MESSAGE = "message"


@dataclass(frozen=True, slots=True)
class Ending:
    """A verdict that a new statement ends an earlier one, or some of its claims."""

    new: NewMemory
    old: Told
    probability: float
    claims: Sequence[Part]  # of the old one that have ended


async def end_what_changed(
    memories: Sequence[NewMemory], effects: Effects, place: Scope, at: datetime, flow: Flow
) -> tuple[tuple[NewMemory, ...], Effects, tuple[str, ...]]:
    """Return new memories, which have been indexed, and the effects with those of the endings that the reader sees in
    them. If it fails, nothing more ends, and the problem is returned: what was said is stored anyway."""
    endings: list[Ending] = []
    problems: tuple[str, ...] = ()
    try:
        if flow.reader is not None and (news := _judged(memories)):
            endings = await _endings(flow.reader, news, memories, effects, place, at, flow)
    except StoreError:
        raise
    except Exception as error:  # of a caller's own class
        logger.warning("the reader failed", exc_info=error)
        problems = (f"nothing was ended by reading: the reader failed ({type(error).__name__})",)
    ended = {one.old.id: one for one in endings}
    left = tuple(_over(one, ended[one.id].new) if one.id in ended else one for one in memories)
    effects = _with_endings(effects, endings, at)
    rests, relations = await _kept(endings, left, place, at, flow)
    return (*left, *rests), replace(effects, relations=(*effects.relations, *relations)), problems


# -- which statements are compared ------------------------------------------------------------------------------------


def _judged(memories: Sequence[NewMemory]) -> list[NewMemory]:
    """Return the new statements of persons: the messages, and what was saved or worded without one that is new."""
    messages = {source.message_id for one in memories if one.memory_type == MESSAGE for source in one.sources}
    news = [
        one
        for one in memories
        if _holds(one)
        and is_person(one.data.get("role") or USER)
        and (one.memory_type == MESSAGE or one.memory_type in CAN_END)
        and (one.memory_type == MESSAGE or messages.isdisjoint(_messages_of(one)))
        and _own_part(one.content)
    ]
    return news if len(news) <= MAX_NEW else []


def _holds(new: NewMemory) -> bool:
    return new.valid_to is None and new.status == "active"


def _messages_of(one: Told) -> set[str]:
    return {source.message_id for source in one.sources} if isinstance(one, NewMemory) else set(one.source_ids)


def _own_part(text: str) -> str:
    """Return a text without what its speaker passes on, such as quotes: only own words end anything."""
    return " ".join(part for start, end in own_words(text) if (part := text[start:end].strip()))


async def _nearest(new: NewMemory, memories: Sequence[NewMemory], place: Scope, at: datetime, flow: Flow) -> list[Told]:
    """Return the earlier statements, stored or new, that are nearest to a new one by meaning and words."""
    types = (*CAN_END, MESSAGE)
    where = Filter(user_id=place.user_id, agent_id=place.agent_id, group_id=place.group_id, memory_types=types, now=at)
    words = tuple(dict.fromkeys(tokens(new.content)))
    vector = new.index.vector
    query = IndexQuery(filter=where, vector=vector, terms=words, words=words, model=flow.embedder.id, recalls=False)
    found = await flow.index.gather(query)
    likeness = found.coverage if vector is None else found.semantic + found.coverage
    order = np.argsort(-likeness)[:NEAREST].tolist()
    score = {str(found.ids[at]): float(likeness[at]) for at in order}
    rows: list[Told] = list(await flow.store.memories.get(place.user_id, list(score)))
    fresh = [one for one in memories if one.memory_type in types and _holds(one) and one.index is not NOT_INDEXED]
    fresh = [one for one in fresh if one.valid_from < new.valid_from and not _said_again(one, new)]
    near = [(one, alike) for one in fresh if (alike := _likeness(new, one)) >= MIN_LIKENESS]
    score |= {one.id: alike for one, alike in near}
    rows += [one for one, _ in near]
    rows.sort(key=lambda one: -score[one.id])
    facts = {source for one in rows if one.memory_type != MESSAGE for source in _messages_of(one)}
    return [one for one in rows if one.memory_type != MESSAGE or facts.isdisjoint(_messages_of(one))][:MAX_OLDER]


def _said_again(old: NewMemory, new: NewMemory) -> bool:
    """Return True if an earlier statement of one call is repeated after the new one."""
    return max(_messages_of(old), default="") > max(_messages_of(new), default="")


def _likeness(new: NewMemory, old: NewMemory) -> float:
    """Return what the index would say of two new memories: the cosine, and the share of words."""
    words = set(tokens(new.content))
    shared = len(words.intersection(tokens(old.content))) / max(len(words), 1)
    one, other = new.index.vector, old.index.vector
    if one is None or other is None:
        return shared
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return shared + (float(one @ other) / length if length else 0.0)


def _may_end(new: NewMemory, old: Told, place: Scope) -> bool:
    if old.valid_from >= new.valid_from or old.trust > new.trust or not is_person(old.data.get("role") or USER):
        return False
    if isinstance(old, MemoryItem) and (old.agent_id, old.group_id) != (place.agent_id, place.group_id):
        return False
    teller = teller_of(new.data, place.user_id)
    return teller is None or teller == teller_of(old.data, place.user_id)


# -- verdicts ---------------------------------------------------------------------------------------------------------


async def _endings(
    reader: Reader,
    news: Sequence[NewMemory],
    memories: Sequence[NewMemory],
    effects: Effects,
    place: Scope,
    at: datetime,
    flow: Flow,
) -> list[Ending]:
    """Ask the reader about each new statement and the earlier ones nearest to it."""
    taken = {one.id for one in effects.changes}
    best: dict[str, Ending] = {}  # by earlier memory, the surest
    for new in news:
        near = await _nearest(new, memories, place, at, flow)
        older = [one for one in near if one.id not in taken and _may_end(new, one, place)]
        for one in await threads.run(threads.READING, _judge, reader, new, older, place) if older else ():
            surest = best.get(one.old.id)
            if surest is None or one.probability > surest.probability:
                best[one.old.id] = one
    kept = [one for one in best.values() if isinstance(one.old, NewMemory) or not await edited(one.old, flow.store)]
    return [replace(one, new=await _stated_by(one, memories, reader, place)) for one in kept]


def _judge(reader: Reader, new: NewMemory, older: Sequence[Told], place: Scope) -> list[Ending]:
    """Return what a new statement ends, claim by claim."""
    claims = {one.id: _claims(one) for one in older}
    if sum(map(len, claims.values())) > MAX_CLAIMS:
        claims = {one.id: (_whole(one),) for one in older}
    asked = [(one, claim) for one in older for claim in claims[one.id]]
    verdicts = _verdicts(reader, new, [told(claim.text, one.data, place.user_id) for one, claim in asked], place)
    found: dict[str, Ending] = {}
    for (one, claim), verdict in zip(asked, verdicts, strict=True):
        if verdict is not None and verdict.ends >= ENDS:
            before = found.get(one.id)
            over = (*(before.claims if before else ()), claim)
            found[one.id] = Ending(new, one, max(verdict.ends, before.probability if before else 0.0), over)
    return list(found.values())


def _claims(old: Told) -> tuple[Part, ...]:
    """Return the claims of a saved text; those of messages are memories of their own."""
    return parts_of(old.content) if old.source == STATED else (_whole(old),)


def _whole(old: Told) -> Part:
    return Part(old.content, 0, len(old.content), None)


def _verdicts(reader: Reader, new: NewMemory, older: Sequence[Passage], place: Scope) -> Sequence[Verdict | None]:
    return reader.changes(told(_own_part(new.content), new.data, place.user_id), older)


async def _stated_by(one: Ending, memories: Sequence[NewMemory], reader: Reader, place: Scope) -> NewMemory:
    """Return the statement of a message that ends another one; the message itself if it states nothing."""
    stated = [
        new
        for new in memories
        if new.memory_type in CAN_END and _holds(new) and _messages_of(new) & _messages_of(one.new)
    ]
    if one.new.memory_type != MESSAGE or len(stated) < 2:
        return stated[0] if one.new.memory_type == MESSAGE and stated else one.new
    old = [told(one.old.content, one.old.data, place.user_id)]
    found = [await threads.run(threads.READING, _verdicts, reader, new, old, place) for new in stated]
    ends = [0.0 if verdict is None else verdict.ends for [verdict] in found]
    return stated[ends.index(max(ends))]


# -- effects ----------------------------------------------------------------------------------------------------------


def _over(old: NewMemory, by: NewMemory) -> NewMemory:
    """Return a new memory that another one of the same call has ended. A statement may then be made again."""
    over = replace(old, valid_to=by.valid_from, superseded_by=by.id)
    past = PAST + identity(old.dedupe_hash, by.valid_from.isoformat())
    return over if old.memory_type == MESSAGE else replace(over, dedupe_hash=past)


def _with_endings(effects: Effects, endings: Sequence[Ending], at: datetime) -> Effects:
    changes, relations, versions = list(effects.changes), list(effects.relations), dict(effects.versions)
    for one in endings:
        relations.append(
            NewRelation(
                memory_id=one.new.id, target_id=one.old.id, relation_type="contradicts", strength=one.probability
            )
        )
        if isinstance(one.old, NewMemory):
            continue
        change = Change(
            values={"valid_to": one.new.valid_from, "superseded_by": one.new.id},
            action="supersede",
            actor=ACTOR,
            reason=f"a newer statement ends it (probability {one.probability:.2f})",
            at=at,
        )
        changes.append(ChangedMemory(id=one.old.id, change=change))
        versions[one.old.id] = one.old.version
    return replace(effects, versions=versions, changes=tuple(changes), relations=tuple(relations))


# -- what is left of saved texts --------------------------------------------------------------------------------------


async def _kept(
    endings: Sequence[Ending], memories: Sequence[NewMemory], place: Scope, at: datetime, flow: Flow
) -> tuple[list[NewMemory], list[NewRelation]]:
    """Return what still holds of saved texts of which some claims have ended, unless a memory says it already."""
    size = sum(len(one.old.content) for one in endings)
    rests = await threads.run(size, _rests, endings, place, flow.keyword_rules) if endings else []
    if not rests:
        return [], []
    known = {one.dedupe_hash for one in memories}
    known.update(await flow.store.memories.known(place.user_id, [rest.dedupe_hash for _, rest in rests], at))
    new = [(old_id, rest) for old_id, rest in rests if rest.dedupe_hash not in known]
    entries, _ = await embed_entries([rest.index for _, rest in new], [rest.content for _, rest in new], flow.embedder)
    kept = [replace(rest, index=entry) for (_, rest), entry in zip(new, entries, strict=True)]
    return kept, [
        NewRelation(memory_id=rest.id, target_id=old_id, relation_type="refines", strength=1.0) for old_id, rest in new
    ]


def _rests(endings: Sequence[Ending], place: Scope, rules: KeywordRules) -> list[tuple[str, NewMemory]]:
    found = []
    for one in endings:
        claims = _claims(one.old)
        text = rest_of(one.old.content, claims, one.claims) if len(claims) > len(one.claims) else ""
        if text and one.claims[0] in claims:
            rest = rest_row(text, [claim for claim in claims if claim not in one.claims], one.old, place)
            found.append((one.old.id, replace(rest, index=entry_of(rest, rules))))
    return found
