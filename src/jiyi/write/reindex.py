"""Embed the memories that have no vector of the current model."""

from collections.abc import Callable, Sequence

from ..embed import Embedder, Vectors, embed_query
from ..errors import EmbeddingError
from ..store.store import Store
from ..store.write_set import Unembedded
from .index import embed_each

Progress = Callable[[int, int], None]  # called with the number done and the total
AT_ONCE = 256
GIVE_UP_AFTER = 3  # failures in a row: then it is the embedder, not the text


async def reindex_embeddings(store: Store, embedder: Embedder, progress: Progress | None) -> int:
    """Embed all memories without a vector of this model; return their number. Each batch is a transaction of its own,
    so that a run can be interrupted and resumed. A text that cannot be embedded does not stop the others; it is named
    at the end."""
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
    """Embed all at once; if that fails, one by one, to find those that cannot be embedded."""
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
