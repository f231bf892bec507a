"""Candidates of external engines: from messages alone, everything around them is loaded as in the whole index."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

from jiyi import Memory
from jiyi.engines.candidates import Found, gather_candidates
from jiyi.index.query import IndexQuery
from jiyi.models import utc_now
from jiyi.scope import Filter
from jiyi.store.repositories.index_rows import links_of
from jiyi.store.schema.tables import MemoryRow
from jiyi.testing import WordEmbedder

TOLD = (
    "My name is Mei and I live in Berlin.",
    "I work as a nurse at the Charité.",
    "我喜欢绿茶，每天早上都喝。",
    "I moved to Chengdu last month.",
    "I quit my job as a nurse. I am a teacher now.",
)


@pytest.fixture
async def memory(path: Path) -> Memory:
    async with Memory.open(path, embedder=WordEmbedder(64)) as memory:
        for at, text in enumerate(TOLD):
            await memory.add([{"role": "user", "content": text}], user_id="mei", session_id=f"session-{at // 2}")
        yield memory


async def test_relations_begin_with_candidates(memory: Memory) -> None:
    messages = (await memory.list(user_id="mei", memory_types=["message"])).items
    wanted = {
        (derived.id, message.id, derived.superseded_by)
        for derived in (await memory.timeline(user_id="mei")).items  # ended ones too
        for message in messages
        if not set(derived.source_ids).isdisjoint(message.source_ids)
        and derived.content[:10] in message.content  # another statement of the same message is not its source
    }
    assert any(successor for _, _, successor in wanted)
    store = memory._engine.store
    assert set(await store.index_rows.links("mei")) == wanted
    for at in (0, 1):  # from the derived memories, and from their messages
        ids = sorted({link[at] for link in wanted})
        assert set(await store.database.read("mei", partial(links_of, user_id="mei", ids=ids))) == wanted


async def test_candidates_score_as_in_the_whole_index(memory: Memory) -> None:
    embedder = memory._engine.embedder
    query = IndexQuery(
        filter=Filter(user_id="mei", now=utc_now()),
        terms=("nurse", "live"),
        words=("nurse", "live"),
        keywords=("nurs",),
        vector=await embedder.embed_query("where does Mei live"),
        model=embedder.id,
    )
    whole = await memory._engine.index.gather(query)
    derived = {link[0] for link in await memory._engine.store.index_rows.links("mei")}
    alone = select(MemoryRow.id).where(MemoryRow.id.not_in(derived))
    others = await memory._engine.store.database.read("mei", lambda session: list(session.scalars(alone)))
    some = await gather_candidates(memory._engine.store, query, Found(ids=others, engines=()))
    assert sorted(some.ids) == sorted(whole.ids)
    order, wanted = np.argsort(some.ids), np.argsort(whole.ids)
    for name in ("keyword", "text", "semantic", "near", "coverage", "episode", "gist", "over", "succeeds"):
        ours, theirs = getattr(some, name), getattr(whole, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            np.testing.assert_allclose(ours[order], theirs[wanted], atol=1e-6, err_msg=name)
