"""A pytest plugin that gives LangGraph's tests a `JiyiStore` in the place of their `InMemoryStore`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import langgraph.store.memory
import numpy as np
import pytest
from numpy.typing import NDArray

import jiyi.sync
from jiyi.agents.langgraph import JiyiStore
from jiyi.testing import WordEmbedder

OPENED = ExitStack()


class LangChainEmbedder:
    """An embedder of LangChain as one of Jiyi's."""

    def __init__(self, embeddings: Any) -> None:
        self._embeddings = embeddings
        self.id = f"langchain:{type(embeddings).__name__}@{embeddings.dims}"

    async def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array(self._embeddings.embed_documents(list(texts)), np.float32)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return np.array(self._embeddings.embed_query(text), np.float32)


class StoreInTheirPlace(JiyiStore):
    """A store in a new file that takes the arguments of `InMemoryStore`."""

    def __init__(self, *, index: dict[str, Any] | None = None) -> None:
        folder = OPENED.enter_context(tempfile.TemporaryDirectory(prefix="jiyi-langgraph-"))
        embedder = LangChainEmbedder(index["embed"]) if index else WordEmbedder(512)
        memory = OPENED.enter_context(jiyi.sync.Memory.open(Path(folder) / "memory.db", embedder=embedder))
        super().__init__(memory, fields=index.get("fields") if index else None)


langgraph.store.memory.InMemoryStore = StoreInTheirPlace  # type: ignore[misc]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    OPENED.close()
