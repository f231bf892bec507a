"""The verbs that keep a memory in order."""

from __future__ import annotations

from collections.abc import Callable

from .. import validation
from ..keep.values import Verification
from ..write.reindex import Progress, reindex_embeddings
from .parts import Parts


class Upkeep(Parts):
    async def reindex(self, *, progress: Progress | None = None) -> int:
        """Give every memory a vector of the present embedder that has none. It can be interrupted and started again."""
        return await reindex_embeddings(self._store, self._embedder, progress)

    async def verify(
        self,
        *,
        user_id: str | None = None,
        repair: bool = False,
        vectors: bool = False,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Verification:
        """Compare what memories are found by with what it should be, of one user or of all, and set it right if asked.

        `vectors` embeds every text again to compare, which takes as long as embedding does. Others can read and write
        meanwhile.

            found = await memory.verify(repair=True)
        """
        from ..keep.verify import verify

        return await verify(
            self._store,
            self._embedder,
            self._rules,
            validation.optional_name("user_id", user_id),
            repair=repair,
            vectors=vectors,
            advance=progress or (lambda what, done, whole: None),
        )
