"""After an upgrade: memories that an earlier version made findable are indexed anew, in the background."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from conftest import verbatim
from jiyi import Memory
from jiyi.areas.maintenance import maintainer_of
from jiyi.errors import StoreError
from jiyi.keep import maintain
from jiyi.languages.terms import WORDS_VERSION
from jiyi.store.repositories import index_entries as entries
from jiyi.store.schema.tables import KeywordRow, TermsRow
from jiyi.store.upkeep import aged_rows as maintenance
from jiyi.store.upkeep import integrity as checks
from jiyi.testing import WordEmbedder
from jiyi.write.index import KeywordRules, index_entry
from support import contents

RULES = KeywordRules(most=10, lightest=0.3)
# Of the version that is in force: what these texts are found by. It changes only together with WORDS_VERSION.
DIGESTS = {1: "ba71c8e10bef45b9", 2: "673d4e7884bea7fe"}
TEXTS = (
    "她对花生过敏，下周五要去北京见王医生。",
    "Is the deploy on Friday? Running `kubectl rollout` failed twice at 10:30.",
    "用户喜欢喝 Coffee 和绿茶，不喜欢牛奶；邮箱 mei@example.com，版本 v2.3.1。",
    "Étienne's naïve café résumé — ２０２６年１１月, 3 km, 50 %",
    "這是繁體中文的記憶 🙂 with mixed words",
)


def test_other_words_are_another_version() -> None:
    """If this fails, texts are indexed differently: raise WORDS_VERSION, and add its digest here. Then memories that
    are there are indexed anew; without it, searches would miss them."""
    digest = sha256()
    for text in TEXTS:
        entry = index_entry(text, text[:20], ("tag", "标签"), {"speaker": "Mei"}, "preference", RULES)
        words = [(keyword, round(weight, 6), source) for keyword, weight, source in entry.keywords]
        told = (
            entry.length,
            round(entry.asks, 6),
            entry.hashes.tolist(),
            entry.counts.tolist(),
            words,
            entry.near_hash,
        )
        digest.update(repr(told).encode())
    assert digest.hexdigest()[:16] == DIGESTS[WORDS_VERSION]


async def make_older(memory: Memory, user_id: str) -> None:
    """What an earlier version found other words in."""

    def work(session: Session) -> None:
        mine = TermsRow.user_id == user_id
        for row in session.scalars(select(TermsRow).where(mine)).all():
            shifted = {"hashes": row.hashes + 1, "keyword_hashes": row.keyword_hashes + 1}
            session.execute(update(TermsRow).where(mine, TermsRow.memory_id == row.memory_id).values(shifted))
        session.execute(update(TermsRow).where(mine).values(words_version=0))
        session.execute(update(KeywordRow).where(KeywordRow.user_id == user_id).values(weight=0.01))

    await memory._engine.store.database.write([user_id], work)
    await memory._engine.index.forget(user_id)


async def test_upkeep_indexes_what_an_earlier_version_indexed(memory: Memory, place: str | Path) -> None:
    await memory.add(["likes jasmine tea", "喜欢喝咖啡", "plays the piano"], user_id="mei")
    await memory.add("likes jasmine, too", user_id="bob")
    await make_older(memory, "mei")
    query = {"user_id": "mei", "search_mode": "keyword"}
    async with Memory.open(place, settings=verbatim(), embedder=WordEmbedder(512)) as other:  # another process
        assert contents(await other.search("jasmine", **query)) == []
        assert (await memory.stats("mei")).coverage.outdated == (await memory.stats()).coverage.outdated == 3
        assert (await memory.stats("bob")).coverage.outdated == 0
        assert (await memory.maintenance.run(user_id="mei")).indexed == 3
        assert (await memory.stats()).coverage.outdated == 0
        assert contents(await other.search("jasmine", **query))[0] == "likes jasmine tea"
        assert contents(await other.search("咖啡", **query))[0] == "喜欢喝咖啡"
    assert (await memory.maintenance.run()).indexed == 0
    assert (await memory.maintenance.verify()).drift == {}


async def test_a_run_that_was_stopped_goes_on(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintain, "INDEX_BATCH", 2)
    await memory.add([f"fact number {number}" for number in range(7)], user_id="mei")
    await make_older(memory, "mei")
    whole, left = memory._engine.store.checks.repair, iter([True, True, False])

    async def stopped(wanted: object) -> object:
        if not next(left, True):
            raise StoreError("the power went out")
        return await whole(wanted)

    monkeypatch.setattr(memory._engine.store.checks, "repair", stopped)
    with pytest.raises(StoreError):
        await memory.maintenance.run(user_id="mei")
    assert (await memory.stats()).coverage.outdated == 3
    assert (await memory.maintenance.run(user_id="mei")).indexed == 3
    assert (await memory.maintenance.verify()).drift == {}


async def test_a_new_version_does_not_wait_for_the_next_round(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    await memory.add("likes tea", user_id="mei")
    assert await maintainer_of(memory._engine).run_all(forced=False) is not None
    assert await maintainer_of(memory._engine).run_all(forced=False) is None  # it is not time yet
    for module in (entries, checks, maintenance):
        monkeypatch.setattr(module, "WORDS_VERSION", WORDS_VERSION + 1)
    done = await maintainer_of(memory._engine).run_all(forced=False)
    assert done is not None
    assert done.indexed == 1
    assert await maintainer_of(memory._engine).run_all(forced=False) is None
