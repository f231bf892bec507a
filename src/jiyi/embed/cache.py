"""A cache of query vectors: embedding the query is most of the time of a search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from . import Embedder, Vectors, embed_query


class CachedQueries:
    """An embedder that keeps the vectors of recent queries."""

    def __init__(self, embedder: Embedder, max_size: int) -> None:
        self._embedder = embedder
        self._max_size = max_size
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()

    @property
    def id(self) -> str:
        return self._embedder.id

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.embed_documents(texts)

    async def embed_query(self, text: str) -> Vectors:
        """Return a cached vector, or embed the text; only valid vectors are cached."""
        key = self.id, text
        vector = self._vectors.get(key)
        if vector is None:
            vector = await embed_query(self._embedder, text)
            vector.flags.writeable = False
            self._vectors[key] = vector
            while len(self._vectors) > self._max_size:
                self._vectors.popitem(last=False)
        else:
            self._vectors.move_to_end(key)
        return vector

    def clear(self) -> None:
        """Remove all vectors. A query often repeats what a memory says, so a delete must clear them."""
        self._vectors.clear()
