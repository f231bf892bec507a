"""What is exactly at a limit: a time, a score, a length, a number."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from extractors import SpelledOut
from jiyi import EmbeddingError, Memory, MissingExtra
from jiyi.llm import Usage
from jiyi.models import utc_now
from jiyi.settings import load_settings
from jiyi.testing import Clock, WordEmbedder
from support import DAY, MONDAY, contents, stored

SECOND = timedelta(seconds=1)
VERBATIM = load_settings(extraction={"enabled": False})


def opened(path: Path, **more: Any) -> Memory:
    return Memory.open(path, settings=more.pop("settings", VERBATIM), embedder=WordEmbedder(512), **more)


async def test_times_of_a_memory_begin_with_a_moment_and_end_before_it(path: Path) -> None:
    with Clock(MONDAY) as clock:
        async with opened(path) as memory:
            await memory.add({"content": "expires", "expires_at": MONDAY + DAY}, user_id="mei")
            await memory.add({"content": "ends", "valid_to": MONDAY + DAY}, user_id="mei")
            await memory.add({"content": "begins", "valid_from": MONDAY}, user_id="mei", occurred_at=MONDAY)
            assert {one.content for one in await stored(memory)} == {"expires", "ends", "begins"}
            for moment, held in ((MONDAY, 1), (MONDAY - SECOND, 0)):
                found = await memory.list(user_id="mei", as_of=moment)
                assert ["begins" in one.content for one in found.items].count(True) == held
            for start, end, found in ((MONDAY, None, 1), (None, MONDAY, 0), (MONDAY, MONDAY + SECOND, 1)):
                days = {"time_range": (start, end)}
                assert sum("begins" in one.content for one in (await memory.list(user_id="mei", **days)).items) == found
                hits = await memory.search("begins", user_id="mei", search_mode="keyword", asked_at=MONDAY, **days)
                assert len(hits.hits) == found
            clock.now = MONDAY + DAY
            assert {one.content for one in await stored(memory)} == {"begins"}
            assert contents(await memory.search("expires ends", user_id="mei", search_mode="keyword")) == []
            assert (await memory.maintenance.run(user_id="mei")).expired == 1


async def test_a_score_or_a_trust_that_is_just_reached_is_enough(path: Path) -> None:
    async with opened(path) as memory:
        await memory.add("the cellar key hangs by the door", user_id="mei", trust=0.5)
        asked = {"user_id": "mei", "asked_at": datetime.now(MONDAY.tzinfo), "search_mode": "keyword"}
        [hit] = (await memory.search("cellar key", **asked)).hits
        for preset in (0.0, 1e-6):
            least = hit.relevance_score + preset
            found = await memory.search("cellar key", min_relevance_score=least, **asked)
            assert (len(found.hits), found.total_found) == ((1, 1) if not preset else (0, 0))
    by_formula = load_settings(extraction={"enabled": False}, search={"preset": "two_legs"})
    async with opened(path, settings=by_formula) as memory:
        [hit] = (await memory.search("cellar key", **asked)).hits
        found = await memory.search("cellar key", min_relevance_score=hit.relevance_score, **asked)
        assert (len(found.hits), found.total_found) == (1, 1)
        for trust, number in ((0.5, 1), (0.51, 0)):
            assert len((await memory.search("cellar key", min_trust=trust, **asked)).hits) == number
            assert await memory.count(user_id="mei", min_trust=trust) == number


async def test_all_matches_are_counted_beyond_those_that_are_ranked(path: Path) -> None:
    async with opened(path) as memory:
        await memory.add([f"apple number {number}" for number in range(150)], user_id="mei")
        found = await memory.search("apple", user_id="mei", search_mode="keyword", limit=3)
        assert (len(found.hits), found.total_found, found.searched) == (3, 150, 150)


async def test_new_memories_of_thirty_days_are_counted_by_day(path: Path) -> None:
    today = MONDAY.replace(hour=0)
    with Clock(today) as clock:
        async with opened(path) as memory:
            for days, text in ((30, "too old"), (29, "just in"), (0, "new")):
                clock.now = today - days * DAY
                await memory.add(text, user_id="mei")
            counted = (await memory.usage.metrics("mei")).added_by_day
    assert counted == {(today - days * DAY).date().isoformat(): 1 for days in (29, 0)}


async def test_only_the_newest_recalls_are_kept_and_listed_since_a_moment(path: Path) -> None:
    with Clock(MONDAY) as clock:
        async with opened(
            path, settings=load_settings(extraction={"enabled": False}, recalls={"max_per_user": 3})
        ) as memory:
            await memory.add("tea", user_id="mei")
            for at in range(5):
                clock.now = MONDAY + at * DAY
                await memory.search(f"tea {at}", user_id="mei")
            kept = await memory.usage.recalls(user_id="mei")
            assert [one.query for one in kept] == ["tea 4", "tea 3", "tea 2"]
            since = await memory.usage.recalls(user_id="mei", since=MONDAY + 3 * DAY)
            assert [one.query for one in since] == ["tea 4", "tea 3"]


async def test_the_usage_of_language_models_is_kept_for_thirty_days(path: Path) -> None:
    async with opened(path) as memory:
        count = partial(memory._engine.store.llm_usage.count_llm_usage, epoch="")
        for hour in (MONDAY - timedelta(hours=1), MONDAY):
            await count("mei", hour, Usage(1, 10, 5))
        assert await count("mei", MONDAY, Usage(1, 10, 5)) == Usage(2, 20, 10)
        await count("mei", MONDAY + 30 * DAY, Usage(1, 10, 5))
        assert await count("mei", MONDAY, Usage(0, 0, 0)) == Usage(2, 20, 10), "exactly thirty days old"
        assert await count("mei", MONDAY - timedelta(hours=1), Usage(0, 0, 0)) == Usage(0, 0, 0)


async def test_a_lease_ends_at_its_moment(path: Path) -> None:
    settings = load_settings(jobs={"in_process": False})
    async with opened(path, settings=settings, extractor=SpelledOut()) as memory:
        await memory.add([{"role": "user", "content": "Mei home = Rome"}], user_id="mei", session_id="s", wait=False)
        jobs, begun = memory._engine.store.jobs, utc_now() + DAY
        until = begun + timedelta(minutes=1)
        assert await jobs.claim("a", begun, until) is not None
        assert await jobs.claim("b", until - SECOND, until + DAY) is None
        assert await jobs.claim("b", until, until + timedelta(minutes=1)) is not None


class Picky(WordEmbedder):
    """An embedder that refuses some texts."""

    def _embed(self, text: str) -> Any:
        if "refused" in text and self.strict:
            raise EmbeddingError("no")
        return super()._embed(text)

    strict = True


async def test_texts_that_cannot_be_embedded_are_counted_and_the_others_are(path: Path) -> None:
    embedder = Picky(64, "picky")
    async with Memory.open(path, settings=VERBATIM, embedder=embedder) as memory:
        for text in ("one", "refused", "two", "refused too", "three"):
            await memory.add(text, user_id="mei")
        stated = await memory.stats("mei")
        assert stated.coverage.embedded == 3
        with pytest.raises(EmbeddingError, match=r"0 memories were embedded, 2 could not be: \w+ of user 'mei': no"):
            await memory.maintenance.reindex()
        embedder.strict = False
        assert await memory.maintenance.reindex() == 2


def test_postgres_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.delitem(sys.modules, "jiyi.store.postgres.postgres_database", raising=False)
    with pytest.raises(MissingExtra, match="postgres"):
        Memory.open("postgresql://localhost/none", embedder=WordEmbedder())
