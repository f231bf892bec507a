"""The built-in embedder: Universal Sentence Encoder multilingual, whose weights are in the package."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from .. import threads
from ..forks import new_lock
from ..text_cache import text_cache
from .onnx_session import new_session
from .pieces import Pieces

if TYPE_CHECKING:
    from . import Vectors

WEIGHTS = Path(__file__).parents[1] / "weights"
DIMENSION = 512
IN_PROCESS = "in this process"  # where texts go
MAX_CHARACTERS = 2000  # the model averages over a text, so more would only blur the vector
BATCH = 64
LONG = 1000
MOST_EMBEDDED = 8_000  # characters of a batch
MAX_PIECES = 256  # of texts that are read at once; more take no less time and more memory

_lock = new_lock()


class SentenceEncoder:
    """The model: a vocabulary, a table with a row for each piece, and a network that reads rows."""

    def __init__(self) -> None:
        with np.load(WEIGHTS / "embedder_vocabulary.npz") as archive:
            arrays = {name: archive[name] for name in archive.files}
        self._vocabulary = Pieces(arrays)
        sizes = arrays["row_sizes"]
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self._starts = self._ends - sizes
        with (WEIGHTS / "embedder_rows.bin").open("rb") as file:
            self._rows = mmap(file.fileno(), 0, access=ACCESS_READ)
        self._session = new_session(WEIGHTS / "embedder.onnx")

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row per text, of length one."""
        pieces = [self.pieces(text) for text in texts]
        found = [self._vectors(group) for group in _groups(pieces)]
        return np.concatenate(found) if found else np.zeros((0, DIMENSION), np.float32)

    def pieces(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces."""
        return self._vocabulary.of(text)

    def _vectors(self, texts: Sequence[Sequence[int]]) -> Vectors:
        pieces = list(chain.from_iterable(texts))
        rows = {piece: self._row(piece) for piece in set(pieces)}
        read = np.frombuffer(b"".join([rows[piece] for piece in pieces]), np.uint8).reshape(-1, DIMENSION)
        numbers = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        inputs = {"rows": read, "pieces": np.array(pieces, np.int64), "texts": numbers.astype(np.int64, copy=False)}
        vectors: Vectors = self._session.run(None, inputs)[0]
        return vectors

    def _row(self, piece: int) -> bytes:
        """Unpack a row of the table; all of them would be 65 MB."""
        return zlib.decompress(self._rows[self._starts[piece] : self._ends[piece]], -9, DIMENSION)


def _groups(texts: Sequence[list[int]]) -> Iterator[Sequence[list[int]]]:
    return threads.batches(texts, len, most=len(texts), most_size=MAX_PIECES)


@cache
def _model() -> SentenceEncoder:
    """Load the model once per process."""
    return SentenceEncoder()


class BuiltinEmbedder:
    """Universal Sentence Encoder multilingual, version 3."""

    id = "builtin:use-multilingual-3"
    address = IN_PROCESS
    related = 0.25  # questions with their answers mostly have 0.4 to 0.7, with other texts at most 0.1

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
