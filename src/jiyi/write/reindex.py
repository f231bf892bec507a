"""Re-embedding after a change of model, or after an embedder had failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..embed import Embedder, Vectors, embed_query
from ..errors import EmbeddingError
from ..store.contract import Unembedded
from .index import embed_each

if TYPE_CHECKING:
    from ..store.store import Store

Progress = Callable[[int, int], None]  # called with how much is done and how much there is in all
AT_ONCE = 256
GIVE_UP_AFTER = 3  # texts in a row that cannot be embedded alone: then it is the embedder, not the text


async def reindex_embeddings(store: Store, embedder: Embedder, progress: Progress | None) -> int:
    """Work through the memories without a vector of this model. → how many were embedded

    Each batch is a transaction of its own and takes itself off the list, so a run that was stopped goes on there.
    A text that cannot be embedded does not hold up the others; it is named at the end.
    """
    dimension = len(await embed_query(embedder, "dimension"))
    coverage = await store.entries.coverage(embedder.id)
    done, whole = 0, coverage.memories - coverage.embedded
    failed: list[str] = []
    after = ("", "")
    while found := await store.entries.unembedded(embedder.id, dimension, after=after, limit=AT_ONCE):
        if progress is not None:
            progress(done, max(whole, done + len(found)))
        memories, vectors = await _embed(embedder, found, failed)
        written = await store.entries.save_vectors(embedder.id, memories, vectors) if memories else 0
        done += written
        if written == len(memories):  # else some were changed meanwhile: look at these again
            after = (found[-1].user_id, found[-1].memory_id)
    if progress is not None:
        progress(done, done)
    if failed:
        raise EmbeddingError(f"{done} memories were embedded, {len(failed)} could not be: {failed[0]}")
    return done


async def _embed(
    embedder: Embedder, found: Sequence[Unembedded], failed: list[str]
) -> tuple[list[Unembedded], list[Vectors]]:
    """All at once; if that fails, one by one, to find those that cannot be embedded."""
    try:
        return list(found), await embed_each(embedder, [memory.texts for memory in found])
    except EmbeddingError:
        if len(found) == 1:
            raise
    memories: list[Unembedded] = []
    vectors: list[Vectors] = []
    in_a_row = 0
    for memory in found:
        try:
            vectors += await embed_each(embedder, [memory.texts])
            memories.append(memory)
            in_a_row = 0
        except EmbeddingError as error:
            failed.append(f"{memory.memory_id} of user {memory.user_id!r}: {error}")
            in_a_row += 1
            if in_a_row == GIVE_UP_AFTER:
                raise
    return memories, vectors
