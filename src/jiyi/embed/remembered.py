"""An embedder that remembers the vectors of the queries it was asked for lately: embedding is most of a search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from . import Embedder, Vectors, embed_query


class RememberedQueries:
    def __init__(self, embedder: Embedder, most: int) -> None:
        self._embedder = embedder
        self._most = most
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()

    @property
    def id(self) -> str:
        return self._embedder.id

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.embed_documents(texts)

    async def embed_query(self, text: str) -> Vectors:
        """A reply is checked before it is remembered; a failure is not remembered."""
        key = self.id, text
        vector = self._vectors.get(key)
        if vector is None:
            vector = await embed_query(self._embedder, text)
            vector.flags.writeable = False
            self._vectors[key] = vector
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)
        else:
            self._vectors.move_to_end(key)
        return vector

    def forget(self) -> None:
        """A question often repeats what its answer says: after a delete none is remembered."""
        self._vectors.clear()
