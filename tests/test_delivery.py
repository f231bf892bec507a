"""Delivery: the memory that matters for an indirect request reaches the model, on every path."""

from __future__ import annotations

from pathlib import Path

from bench.delivery import LEAST, Unavailable, fill, missed, pairs

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import load_settings
from support import missing

SAMPLE = 15  # each fifteenth pair is asked on every path, all where one of them is missed


async def test_the_right_memory_reaches_the_model_on_every_path(path: Path, builtin: BuiltinEmbedder) -> None:
    from bench.delivery_paths import PATHS as DIRECT  # imports every integration's package
    from bench.delivery_servers import PATHS as SERVED

    not_there = []
    asked = pairs()
    assert len(asked) >= 40
    assert len([pair for pair in asked if pair.language == "zh"]) >= 20
    settings = load_settings(tools={"calls_per_minute": 1_000_000}, search={"rerank": True})
    async with Memory.open(path, settings=settings, embedder=builtin) as memory:
        await fill(memory)
        lost = await missed(memory, DIRECT["recall"], asked)
        assert len(lost) <= (1 - LEAST) * len(asked), lost
        sample = [pair for pair in asked[::SAMPLE] if pair not in lost]
        for name, by_path in (DIRECT | SERVED).items():
            try:
                if await missed(memory, by_path, sample):
                    lost = await missed(memory, by_path, asked)
                    assert len(lost) <= (1 - LEAST) * len(asked), (name, lost)
            except Unavailable as error:
                not_there.append(f"{name}: {error}")
    if not_there:
        missing("PATH", "; ".join(not_there))
