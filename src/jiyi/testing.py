"""Doubles for tests of programs that use Jiyi: quick, deterministic, without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .embed import Vectors
from .errors import EmbeddingError
from .text.hashes import term_hash
from .text.tokens import tokens


class WordEmbedder:
    """Texts that share words are similar: each word points into a direction of its own."""

    def __init__(self, dimension: int = 64, name: str = "words") -> None:
        self.dimension = dimension
        self.id = f"testing:{name}@{dimension}"

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._embed(text) for text in texts])

    async def embed_query(self, text: str) -> Vectors:
        return self._embed(text)

    def _embed(self, text: str) -> Vectors:
        vector = np.zeros(self.dimension, np.float32)
        for word in tokens(text):
            vector[term_hash(word) % self.dimension] += 1.0
        return vector


class FailingEmbedder(WordEmbedder):
    """An embedder that can be switched off, as an endpoint that is down."""

    def __init__(self, dimension: int = 64, name: str = "words") -> None:
        super().__init__(dimension, name)
        self.failing = True

    def _embed(self, text: str) -> Vectors:
        if self.failing:
            raise EmbeddingError(f"{self.id} is switched off")
        return super()._embed(text)
