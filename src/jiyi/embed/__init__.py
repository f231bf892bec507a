"""Turning text into vectors. `resolve` turns a name into an embedder; one file per provider.

An embedder of your own is any object with these two methods and an id; hand it to `Memory.open(embedder=…)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import EmbeddingError, JiyiError, SettingsError

if TYPE_CHECKING:
    from ..settings import Settings

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    @property
    def id(self) -> str:
        """Names the model in the store. Two embedders with one id must give the same vectors."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""

    async def embed_query(self, text: str) -> Vectors:
        """One vector."""


def resolve(settings: Settings) -> Embedder:
    """The embedder that the settings name, as `provider` or `provider:model`."""
    provider, _, model = settings.embedder.partition(":")
    if provider == "builtin" and not model:
        from .builtin import BuiltinEmbedder

        return BuiltinEmbedder()
    if provider == "openai" and model:
        from .openai import OpenAIEmbedder

        return OpenAIEmbedder(model, settings)
    if provider == "sentence-transformers" and model:
        from .sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model, batch_size=settings.embedding.batch_size)
    raise SettingsError(
        f"embedder: {settings.embedder!r} is not known; use builtin, openai:MODEL or sentence-transformers:MODEL"
    )


async def embed_documents(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed and check: a reply that is short, long, ragged or not finite is an error, never a skipped memory. A text
    that stands there twice is embedded once: an episode has the sentences of the facts that were found in it."""
    once = list(dict.fromkeys(texts))
    vectors = checked(embedder, await _asked(embedder, embedder.embed_documents(once)), len(once))
    if len(once) == len(texts):
        return vectors
    places = {text: at for at, text in enumerate(once)}
    again: Vectors = vectors[[places[text] for text in texts]]
    return again


async def embed_query(embedder: Embedder, text: str) -> Vectors:
    vector: Vectors = checked(embedder, [await _asked(embedder, embedder.embed_query(text))], 1)[0]
    return vector


async def _asked(embedder: Embedder, question: Awaitable[Any]) -> Any:
    """An embedder may be anybody's code: whatever it raises means that there is no vector."""
    try:
        return await question
    except JiyiError:
        raise
    except Exception as error:
        raise EmbeddingError(f"{embedder.id} failed: {type(error).__name__}: {error}") from error


def checked(embedder: Embedder, reply: Any, wanted: int) -> Vectors:
    """The reply as float32 rows of length one."""
    try:
        with np.errstate(over="ignore"):
            vectors = np.asarray(reply, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"{embedder.id} answered with something other than rows of numbers: {error}") from error
    if vectors.ndim != 2 or len(vectors) != wanted or vectors.shape[1] == 0:
        raise EmbeddingError(f"{embedder.id} answered {wanted} texts with an array of shape {vectors.shape}")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.all(np.isfinite(lengths)):
        raise EmbeddingError(f"{embedder.id} answered with numbers that are not finite")
    lengths[lengths == 0] = 1.0
    normed: Vectors = vectors / lengths
    return normed
