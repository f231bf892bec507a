"""Steps that need their own process: `python -m bench.probe cold|write …`, controlled through pipes."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder, Vectors

from .texts import questions


def peak_rss_mb() -> float:
    # On Linux getrusage includes the parent's memory at the fork; VmHWM does not.
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) / (1 << 10)  # type: ignore[index]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / (1 << 10)


class NoiseEmbedder:
    """Returns random vectors under the built-in embedder's id, so that a writer needs no model."""

    id = BuiltinEmbedder.id

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.random.default_rng().standard_normal((len(texts), 512), np.float32)

    async def embed_query(self, text: str) -> Vectors:
        raise NotImplementedError


async def cold(path: Path, user_id: str) -> dict[str, float]:
    """Time the first searches of a process whose embedder is loaded."""
    embedder = BuiltinEmbedder()
    start = perf_counter()
    await embedder.embed_query("ready?")
    loaded, model_rss = perf_counter(), peak_rss_mb()
    english, chinese = questions(user_id, 2)
    async with Memory.open(path, embedder=embedder) as memory:
        opened = perf_counter()
        await memory.search(english, user_id=user_id)
        searched = perf_counter()
        await memory.search(chinese, user_id=user_id)
        again = perf_counter()
    return {
        "load_model_s": loaded - start,
        "open_s": opened - loaded,
        "first_search_s": searched - opened,
        "first_chinese_s": again - searched,
        "model_rss_mb": model_rss,
        "peak_rss_mb": peak_rss_mb(),
    }


async def write(path: Path) -> None:
    """Add one memory for each line `user_id<TAB>text` and answer when it is durable."""
    async with Memory.open(path, embedder=NoiseEmbedder()) as memory:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            user_id, text = line.rstrip("\n").split("\t")
            await memory.add(text, user_id=user_id)
            print("done", flush=True)


if __name__ == "__main__":
    verb, where, *rest = sys.argv[1:]
    if verb == "cold":
        print(json.dumps(asyncio.run(cold(Path(where), *rest))))
    else:
        asyncio.run(write(Path(where)))
