"""Delivery: the memory that matters for an indirect request reaches the model, on every path."""

from __future__ import annotations

from pathlib import Path

from bench.delivery import LEAST, USER, Unavailable, fill, missed, pairs, unrelated

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import load_settings
from support import missing

SAMPLE = 15  # each fifteenth pair is asked on every path, all where one of them is missed
# They return as many hits as are asked for, by their scores; Strands in a process without the reader.
LESS = {"mem0's search": 0.8, "search tool": 0.8, "Strands": 0.8}
MOST_UNRELATED = 33.0  # lines, in a store that holds nothing but facts of this kind: nearly all are wishes and limits


async def test_the_right_memory_reaches_the_model_on_every_path(path: Path, builtin: BuiltinEmbedder) -> None:
    from bench.delivery_paths import PATHS as DIRECT  # imports every integration's package
    from bench.delivery_servers import PATHS as SERVED

    not_there = []
    asked = pairs()
    assert len(asked) >= 40
    assert len([pair for pair in asked if pair.language == "zh"]) >= 20
    settings = load_settings(tools={"calls_per_minute": 1_000_000, "recall_timeout_s": 60}, search={"reader": True})
    async with Memory.open(path, settings=settings, embedder=builtin) as memory:
        await fill(memory)
        assert len(await missed(memory, DIRECT["wide context"], asked)) <= (1 - LEAST) * len(asked)
        lost = await missed(memory, DIRECT["recall"], asked)
        assert len(lost) <= (1 - LEAST) * len(asked), lost
        blocks = [(await memory.recall(pair.request, user_id=USER)).block for pair in asked]
        assert sum(map(unrelated, asked, blocks)) <= MOST_UNRELATED * len(asked)
        sample = [pair for pair in asked[::SAMPLE] if pair not in lost]
        for name, by_path in (DIRECT | SERVED).items():
            try:
                if await missed(memory, by_path, sample):
                    lost = await missed(memory, by_path, asked)
                    assert len(lost) <= (1 - LESS.get(name, LEAST)) * len(asked), (name, lost)
            except Unavailable as error:
                not_there.append(f"{name}: {error}")
    if not_there:
        missing("PATH", "; ".join(not_there))
