"""Changes, endings and corrections that are no attributes, such as "the knee op is on July 21 now". They supersede the
statement that shares the most words with them, weighted by rarity, if it shares enough. On the training stories this is
the outdated one in 85 % of the cases above the threshold. When in doubt both are kept.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from .. import threads
from ..models import MemoryItem
from ..roles import teller_of
from ..scope import Filter, Scope
from ..store.store import Store
from ..store.write_set import NewMemory
from .classify import classify
from .nearest import Told, Vocabulary, nearest
from .quotes import ENDING
from .reconcile import Reconciled, by_a_person, edited, end_statement
from .slots import COMPARED, Naming, Thing, ended_things, moved_things

LASTING = frozenset({"instruction", "plan"})  # to stop something later is no ending
PLACES = frozenset({"home", "hometown", "birthday", "name"})  # a cancelled Berlin marathon ends no home in Berlin
CAN_END = ("fact", "preference", "pattern", "task", "event")
SURE = 0.6  # probability of a change
RECENT = 200  # stored statements that are compared
MAX_CHANGES = 200  # new statements of one call that are compared with them
MAX_THINGS = 40  # things that one of them ends or moves
MAX_CANDIDATES = 1_000  # earlier statements that one of them is compared with


@dataclass(frozen=True, slots=True)
class _News:
    """A new statement that may end others, and what it says has ended or takes place at another time."""

    memory: NewMemory
    ended: Sequence[Thing]
    moved: Sequence[Thing]


def size_of(texts: Collection[Told]) -> int:
    """Return the number of characters that are compared."""
    return sum(min(len(one.content), COMPARED) for one in texts)


async def supersede(found: Reconciled, place: Scope, at: datetime, store: Store) -> Reconciled:
    """End the statements that new changes, endings and corrections make obsolete."""
    news = await threads.run(size_of(found.memories), lambda: list(islice(_news(found), MAX_CHANGES + 1)))
    if not news:
        return found
    if len(news) > MAX_CHANGES:
        news.pop()
        skipped = f"only the first {MAX_CHANGES} changes were compared with earlier memories"
        found = replace(found, problems=(*found.problems, skipped))
    where = Filter(
        user_id=place.user_id, agent_id=place.agent_id, group_id=place.group_id, memory_types=CAN_END, now=at
    )
    page = await store.memories.page(where, cursor=None, limit=RECENT)
    changed = {one.id for one in found.effects.changes}
    there: list[Told] = [
        item
        for item in page.items
        if item.id not in changed and (item.agent_id, item.group_id) == (place.agent_id, place.group_id)
    ]
    there += [memory for memory in found.memories if memory.valid_to is None]
    size = size_of(there)
    about = await threads.run(size, _about, news, there, place.user_id)
    if not any(about.values()):
        return without_endings(found)
    vocabulary = await threads.run(size, Vocabulary.of, [*there, *(new.memory for new in news)])
    over: set[str] = set()
    for new in news:
        left = [one for one in about[new.memory.id] if one[0].id not in over]
        old = await threads.run(size, nearest, new.memory, left, vocabulary) if left else None
        if old is None or (isinstance(old, MemoryItem) and await edited(old, store)):
            if _only_ends(new.memory):
                found = replace(found, memories=tuple(one for one in found.memories if one.id != new.memory.id))
            continue
        over.add(old.id)
        found = end_statement(found, old, new.memory, at)
    return found


def without_endings(found: Reconciled) -> Reconciled:
    """Leave out what is worth storing only if it ends something."""
    return replace(found, memories=tuple(one for one in found.memories if not _only_ends(one)))


def _only_ends(new: NewMemory) -> bool:
    return bool(new.data.get("only_ends"))


def _news(found: Reconciled) -> Iterator[_News]:
    """Yield the new memories that may end others; those that their attributes have settled already are none."""
    settled = {one.change.values.get("superseded_by") for one in found.effects.changes}
    settled |= {memory.superseded_by for memory in found.memories}
    for one in found.memories:
        threads.check()
        if one.id in settled or not by_a_person(one):
            continue
        ended = ended_things(one.content) if one.data.get("kind") not in LASTING else []
        moved = moved_things(one.content)
        if ended or moved or _changes_something(one):
            yield _News(one, ended[:MAX_THINGS], moved[:MAX_THINGS])


def _changes_something(new: NewMemory) -> bool:
    """Return True for endings, corrections and sure changes: a story of something new is easily taken for a change."""
    kind = new.data.get("kind")
    return kind in ENDING and (kind != "change" or classify(new.content, "user").probability(*ENDING) >= SURE)


def _about(news: Sequence[_News], there: Sequence[Told], user_id: str) -> Mapping[str, list[tuple[Told, bool]]]:
    """Return the earlier statements that each new one may be about, with True if it names them."""
    values, contents = {}, {}
    if any(new.ended or new.moved for new in news):
        for old in there:
            threads.check()
            contents[old.id] = Naming.of(old.content)
            value = old.data.get("value")
            values[old.id] = Naming.of(str(value)) if value else contents[old.id]
    found: dict[str, list[tuple[Told, bool]]] = {}
    for new in news:
        threads.check()
        candidates: list[tuple[Told, bool]] = []
        for old in there:
            if not _comparable(new.memory, old, user_id):
                continue
            named = any(values[old.id].names(thing) for thing in new.ended) or (
                bool(new.moved) and contents[old.id].is_dated and any(map(contents[old.id].names, new.moved))
            )
            if old.data.get("attribute") in PLACES:
                named = False
            if named or _alike_ends(new.memory, old):
                candidates.append((old, named))
        if len(candidates) > MAX_CANDIDATES:
            candidates.sort(key=lambda one: (one[1], one[0].valid_from), reverse=True)
        found[new.memory.id] = candidates[:MAX_CANDIDATES]
    return found


def _comparable(new: NewMemory, old: Told, user_id: str) -> bool:
    if old.id == new.id or old.valid_from >= new.valid_from or old.trust != new.trust:
        return False
    if _found_together(new, old):
        return False
    return teller_of(old.data, user_id) == teller_of(new.data, user_id) and old.data.get("kind") != "instruction"


def _found_together(new: NewMemory, old: Told) -> bool:
    """Return True if a language model found both in one message: it says itself if one of them has ended."""
    if not isinstance(old, NewMemory) or "llm" not in (new.data.get("extractor"), old.data.get("extractor")):
        return False
    return bool({one.message_id for one in new.sources} & {one.message_id for one in old.sources})


def _alike_ends(new: NewMemory, old: Told) -> bool:
    """Return True if a new statement may end one that it does not name. An attribute has its own timeline: a flight to
    Rome does not end a home in Rome."""
    kind = new.data.get("kind")
    ends = not _only_ends(new) and kind in ENDING
    return ends and (kind == "correction" or not old.data.get("attribute"))
