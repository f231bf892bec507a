"""The floor: the least work that answers the same question, with everything in RAM."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import bm25s  # type: ignore[import-untyped]
import numpy as np

from jiyi.embed import BuiltinEmbedder, Vectors
from jiyi.languages.terms import tokens

TOP = 10
SQL = """SELECT content, half_vector FROM memories JOIN embeddings ON embeddings.user_id = memories.user_id
AND embeddings.memory_id = memories.id WHERE memories.user_id = ?"""


@dataclass(frozen=True, slots=True)
class FloorTimes:
    embed: float
    scan: float
    bm25: float
    cpu: float  # of all threads, for the whole search

    @property
    def total(self) -> float:
        return self.embed + self.scan + self.bm25


class Floor:
    """One user's vectors in a matrix and texts in bm25s."""

    def __init__(self, path: Path, user_id: str, embedder: BuiltinEmbedder) -> None:
        database = sqlite3.connect(path)
        rows = database.execute(SQL, (user_id,)).fetchall()
        database.close()
        self._embedder = embedder
        halves = np.frombuffer(b"".join(vector for _, vector in rows), np.float16)
        self._matrix: Vectors = halves.reshape(len(rows), -1).astype(np.float32)
        self._bm25 = bm25s.BM25()
        self._bm25.index([tokens(text) for text, _ in rows], show_progress=False)

    async def search(self, query: str) -> FloorTimes:
        start, cpu = perf_counter(), process_time()
        vector = await self._embedder.embed_query(query)
        embedded = perf_counter()
        similarity = self._matrix @ vector
        np.argpartition(similarity, -TOP)[-TOP:]
        scanned = perf_counter()
        self._bm25.retrieve([tokens(query)], k=TOP, show_progress=False)
        return FloorTimes(embedded - start, scanned - embedded, perf_counter() - scanned, process_time() - cpu)
