"""The verbs that keep a memory in order."""

from __future__ import annotations

from ..write.reindex import Progress, reindex_embeddings
from .parts import Parts


class Upkeep(Parts):
    async def reindex(self, *, progress: Progress | None = None) -> int:
        """Give every memory a vector of the present embedder that has none. It can be interrupted and started again."""
        return await reindex_embeddings(self._store, self._embedder, progress)
