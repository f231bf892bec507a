"""Embedders: their protocol, a cache of query vectors, and `resolve`, which makes one from the settings."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import EmbeddingError, JiyiError, SettingsError
from ..settings import Settings
from .builtin import IN_PROCESS as IN_PROCESS
from .builtin import BuiltinEmbedder as BuiltinEmbedder

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


def address_of(embedder: Embedder) -> str:
    """Return where an embedder sends texts."""
    return getattr(embedder, "address", "given by the program")


RELATED = 0.7  # on the scale of `radius`: from here on texts are related


def related_of(embedder: Embedder) -> float:
    """Return the cosine from which on texts are related; an embedder that differs from most has it as `related`."""
    found: float = getattr(embedder, "related", RELATED)
    return found


def least_cosine(embedder: Embedder, radius: float) -> float:
    """Return the cosine of an embedder that a radius means: 0, 0.7 and 1 mean 0, `related` and 1."""
    related = related_of(embedder)
    if radius <= RELATED:
        return radius / RELATED * related
    return related + (radius - RELATED) / (1 - RELATED) * (1 - related)


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

    @property
    def related(self) -> float:
        return related_of(self._embedder)

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
