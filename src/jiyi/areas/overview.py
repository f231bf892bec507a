"""Overviews: the change log, people and things, memories that need a look, users with their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from .. import threads, validation
from ..engine import Engine
from ..errors import InvalidInput
from ..languages.words import normalise
from ..models import MemoryItem
from ..read.overview import (
    CLEAR,
    REVIEWED,
    ChangeEntry,
    ChangePage,
    ReviewItem,
    Subject,
    UserSize,
    mentioning,
    subjects_of,
    to_entry,
    to_review,
)
from ..read.profile import TYPES, Profile, distinct_lines, profile_lines
from ..roles import teller_of
from ..scope import Filter
from ..store.database import PAGE_SIZE
from ..store.repositories.overview_rows import Told
from ..store.units import MemUnitPage, to_unit

MOST_READ = 20_000  # newest memories that an overview reads
EXACT = 1.0  # similarity of two names of the same thing


class Overview:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def changes(
        self, *, user_id: str, source: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> ChangePage:
        """List what was learned, changed, ended and forgotten, newest first. `source` is one of chat, file, agent,
        model, person and jiyi. `maintenance.undo` undoes the last change of a memory.

            page = await memory.usage.changes(user_id="mei", limit=20)
        """
        user_id, limit = validation.name("user_id", user_id), validation.whole("limit", limit)
        after = None if cursor is None else _parse_cursor(cursor)
        if source is not None:
            validation.choice("source", source, ("chat", "file", "agent", "model", "person", "jiyi"))
        found: list[ChangeEntry] = []
        room = PAGE_SIZE
        while True:
            some, more = await self._engine.store.overviews.changes(user_id, after=after, limit=limit)
            for at, change in enumerate(some):
                entry = to_entry(change)
                if source is None or entry.source == source:
                    found.append(entry)
                    room -= len(entry.text or "") + len(entry.before or "")
                after = change.changed_at, change.memory_id, change.version
                if len(found) == limit or room < 0:
                    more = more or at + 1 < len(some)
                    return ChangePage(items=tuple(found), next_cursor=_to_cursor(after) if more else None)
            if not more:
                return ChangePage(items=tuple(found), next_cursor=None)

    async def units(
        self, *, user_id: str, session_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> MemUnitPage:
        """List units of conversation with subject, summary, narrative and messages, the last begun first.

        page = await memory.usage.units(user_id="mei", session_id="s1")
        """
        user_id, session_id = validation.name("user_id", user_id), validation.optional_name("session_id", session_id)
        cursor, limit = validation.optional_name("cursor", cursor), validation.whole("limit", limit)
        store = self._engine.store
        found, more = await store.units.page(user_id, session_id, cursor=cursor, limit=limit)
        shown = [unit for unit in found if unit.messages]
        ids = list(dict.fromkeys(one for unit in shown for one in unit.memory_ids))
        memories = {memory.id: memory for memory in await store.memories.get(user_id, ids)}
        size = sum(len(message.text) for unit in shown for message in unit.messages)
        items = await threads.run(size, lambda: tuple(to_unit(unit, memories) for unit in shown))
        return MemUnitPage(items=items, next_cursor=found[-1].id if more else None)

    async def profile(
        self, *, user_id: str, group_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Profile:
        """List the current facts, preferences and patterns of a user or of one of their groups, each once. The profile
        of a user has the user's own statements only, that of a group those of everybody in it. `lines` has them as
        attributes with values, where those are known.

            page = await memory.usage.profile(user_id="mei", group_id="team")
            for line in page.lines:
                print(line.subject, f"{line.attribute} → {line.value}" if line.attribute else line.text)
        """
        cursor, limit = validation.optional_name("cursor", cursor), validation.whole("limit", limit)
        lifetimes = self._engine.lifetimes
        where = Filter.parse(user_id=user_id, group_id=group_id, memory_types=TYPES, lifetimes=lifetimes)
        await self._engine.sync_files(where.user_id)
        page = await self._engine.store.memories.page(where, cursor=cursor, limit=limit)
        told = [one for one in page.items if group_id is not None or teller_of(one.data, one.user_id) is None]
        size = sum(len(memory.content) for memory in told)
        lines = await threads.run(size, lambda: tuple(distinct_lines(told)))
        return Profile(items=lines, next_cursor=page.next_cursor, lines=profile_lines(lines))

    async def subjects(self, *, user_id: str) -> Sequence[Subject]:
        """List the people, places, organisations, projects and things that memories name, most mentioned first.

        Two names are one subject if the user's synonyms say so with similarity 1.
        """
        user_id = validation.name("user_id", user_id)
        told = await self._engine.store.overviews.told(user_id, MOST_READ, with_messages=True)
        return await threads.run(_size(told), subjects_of, told, await self._aliases(user_id), user_id)

    async def mentions(self, name: str, *, user_id: str, limit: int = 500) -> Sequence[MemoryItem]:
        """List the memories that name a subject, also ended ones, newest first."""
        user_id, name = validation.name("user_id", user_id), validation.name("name", name)
        limit = validation.whole("limit", limit)
        told = await self._engine.store.overviews.told(user_id, MOST_READ, with_messages=True)
        aliases = await self._aliases(user_id)
        main = aliases.get(normalise(name), normalise(name))
        names = [main, *(other for other, leads_to in aliases.items() if leads_to == main)]
        ids = await threads.run(_size(told), mentioning, told, names, user_id)
        return await self._engine.store.memories.get(user_id, ids[:limit])

    async def review(self, *, user_id: str, limit: int = 100) -> Sequence[ReviewItem]:
        """List memories that need a look: conflicts, unclear endings, repetitions, less trusted and less certain ones.

        A memory with `reviewed` in its metadata was accepted and is left out.
        """
        user_id, limit = validation.name("user_id", user_id), validation.whole("limit", limit)
        overviews = self._engine.store.overviews
        told = await overviews.told(user_id, MOST_READ)
        contradictions, unclear = await overviews.contradictions(user_id), await overviews.endings(user_id, CLEAR)
        endings = [(new, old) for new, old, metadata in unclear if not metadata.get(REVIEWED)]
        found = await threads.run(_size(told), to_review, told, contradictions, endings)
        found = found[:limit]
        memories = await self._engine.store.memories.get(user_id, [one for _, ids in found for one in ids])
        by_id: Mapping[str, MemoryItem] = {memory.id: memory for memory in memories}
        return [ReviewItem(why=why, memories=tuple(by_id[one] for one in ids if one in by_id)) for why, ids in found]

    async def sizes(self) -> Sequence[UserSize]:
        """List all users with the numbers of their memories and messages."""
        found = await self._engine.store.overviews.sizes()
        return [UserSize(user_id=user, memories=memories, messages=messages) for user, memories, messages in found]

    async def _aliases(self, user_id: str) -> dict[str, str]:
        """Return the user's names for the same thing, normalised: from the shorter to the longer one."""
        pairs = await self._engine.store.synonyms.list(user_id)
        same = [pair for pair in pairs if not pair.shared and pair.similarity >= EXACT]
        return dict(sorted((pair.keyword, pair.synonym), key=len) for pair in same)


def _size(told: Sequence[Told]) -> int:
    return sum(len(one.content) for one in told)


def _to_cursor(place: tuple[datetime, str, int]) -> str:
    at, memory_id, version = place
    return f"{at.isoformat()}_{memory_id}_{version}"


def _parse_cursor(cursor: str) -> tuple[datetime, str, int]:
    try:
        at, memory_id, version = validation.name("cursor", cursor).split("_")
        return datetime.fromisoformat(at).astimezone(UTC), memory_id, int(version)
    except ValueError:
        raise InvalidInput("cursor", "is not the next_cursor of a page") from None
