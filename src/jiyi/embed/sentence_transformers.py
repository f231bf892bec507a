"""Embedder for models of the sentence-transformers library, by name or folder."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import EmbeddingError, MissingExtra
from ..forks import new_lock
from . import IN_PROCESS, Vectors


class SentenceTransformersEmbedder:
    """Embeds with a local model."""

    def __init__(self, model: str, *, batch_size: int) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtra("sentence-transformers", "sentence-transformers") from error
        if (instead := _local_copy(model)) is not None:
            raise EmbeddingError(
                f"the current folder has its own {instead}, which would be loaded instead of the model of this name:"
                f" go to another folder, or write ./{instead} if it is the one you mean"
            )
        try:
            self._model = SentenceTransformer(model)
        except (OSError, ValueError) as error:
            raise EmbeddingError(f"sentence-transformers cannot load {model!r}: {error}") from error
        self.id = f"sentence-transformers:{model}"
        self.address = IN_PROCESS
        self._batch_size = batch_size
        self._lock = new_lock()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._encode, "encode_document", texts)

    async def embed_query(self, text: str) -> Vectors:
        vector: Vectors = (await asyncio.to_thread(self._encode, "encode_query", [text]))[0]
        return vector

    def _encode(self, method: str, texts: Sequence[str]) -> Vectors:
        encode = getattr(self._model, method, self._model.encode)  # versions before 5 have only `encode`
        with self._lock:
            return np.asarray(encode(list(texts), batch_size=self._batch_size, show_progress_bar=False))


def _local_copy(model: str) -> Path | None:
    """Return the folder that the library would take for the model, and run code from, though its name is no path."""
    if model.startswith(("./", "../", ".\\", "..\\")) or Path(model).is_absolute():
        return None
    places = (Path(model), Path("sentence-transformers") / model)  # it tries the second for a name without a slash
    return next((place for place in places if place.exists()), None)
