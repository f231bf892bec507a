"""The word leg in RAM: postings of terms and keywords, and the vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..languages.terms import term_hash
from ..store.types import COUNTS, HASHES, WEIGHTS
from .legs import Slots
from .postings import Postings
from .query import Floats
from .row import IndexRow
from .vocabulary import Vocabulary


class RamWords:
    """Terms and keywords of one user's memories."""

    def __init__(self) -> None:
        self._terms = Postings(COUNTS)
        self._keywords = Postings(WEIGHTS)
        self._vocabulary = Vocabulary()

    @property
    def nbytes(self) -> int:
        return self._terms.nbytes + self._keywords.nbytes

    def put(self, first: int, rows: Sequence[IndexRow]) -> None:
        def join(name: str, dtype: str) -> NDArray[Any]:
            return np.frombuffer(b"".join(getattr(row, name) for row in rows), dtype)

        def slots(name: str) -> Slots:
            sizes = [len(getattr(row, name)) // 8 for row in rows]
            return np.repeat(np.arange(first, first + len(rows), dtype=np.int32), sizes)

        self._terms.add(slots("hashes"), join("hashes", HASHES), join("counts", COUNTS))
        self._keywords.add(slots("keyword_hashes"), join("keyword_hashes", HASHES), join("keyword_weights", WEIGHTS))

    def settle(self) -> None:
        self._terms.fold()
        self._keywords.fold()

    def learn(self, keywords: Iterable[str]) -> None:
        self._vocabulary.learn(keywords)

    def unlearn(self, keywords: Iterable[str]) -> None:
        self._vocabulary.replace(keywords)

    def find(self, term: str) -> tuple[Slots, Floats]:
        return self._terms.find(term_hash(term))

    def find_keyword(self, keyword: str) -> tuple[Slots, Floats]:
        return self._keywords.find(term_hash(keyword))

    def alike(self, keyword: str) -> list[tuple[str, float]]:
        return self._vocabulary.alike(keyword)
