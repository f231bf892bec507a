"""An embedder of your own, and what happens when it takes the place of another one.

It needs an `id` and two methods. This one counts groups of three letters: no model, but it forgives spelling.

    python examples/own_embedder.py [FILE]
"""

import asyncio
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jiyi import EmbeddingModelChanged, Memory
from jiyi.testing import WordEmbedder


class TrigramEmbedder:
    id = "example:trigrams@512"  # names the model in the store; change it when the vectors change

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._embed(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self._embed(text)

    def _embed(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(512, np.float32)
        padded = f"  {text.lower()}  "
        for start in range(len(padded) - 2):
            vector[zlib.crc32(padded[start : start + 3].encode()) % 512] += 1
        return vector  # Jiyi makes it of length one


async def main(file: Path) -> None:
    async with Memory.open(file, embedder=WordEmbedder()) as memory:  # the embedder used until now
        await memory.add(["The wifi password is on the fridge", "The bicycle is in the cellar"], user_id="home")

    async with Memory.open(file, embedder=TrigramEmbedder()) as memory:
        query = "bycicle"
        found = await memory.search(query, user_id="home")
        print(f"before re-embedding: {len(found.hits)} hits\n  degraded: {found.degraded[0]}")
        try:
            await memory.search(query, user_id="home", search_mode="semantic")
        except EmbeddingModelChanged:
            print("  a search by meaning alone is refused: EmbeddingModelChanged")

        print(f"re-embedded: {await memory.maintenance.reindex()}")
        for hit in (await memory.search(query, user_id="home", limit=1)).hits:
            print(f"after: {hit.relevance_score:.2f}  {hit.summary}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "home.db"))
