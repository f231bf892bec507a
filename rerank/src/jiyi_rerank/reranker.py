"""The reranker: a model with caches of message states and scores."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from threading import Lock
from typing import Protocol

from .inputs import UNKNOWN_AGE, age_bucket, newer_ids, question_ids, rank_buckets
from .model import Message, Model
from .wordpiece import WordPiece

MAX_SCORES = 20_000


@dataclass(frozen=True, slots=True)
class Candidate:
    speaker: str
    text: str
    age_days: float | None = None  # None: unknown


class Readable(Protocol):
    """Anything with the attributes of a `Candidate`."""

    @property
    def speaker(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def age_days(self) -> float | None: ...


class LocalReranker:
    """Scores candidates on this machine, on one thread; calls from several threads are fine.

    The states of recently read messages (about 4 kB per token) and recent scores are cached. Keys of both caches are
    hashes of the texts, so a changed text never gets an old score. The model is loaded at first use, once per process.
    """

    id = "jiyi-rerank-2"

    def __init__(self, cache_mb: float = 64.0) -> None:
        self._limit = int(cache_mb * 2**20)
        self._size = 0
        self._messages: OrderedDict[bytes, Message] = OrderedDict()
        self._scores: OrderedDict[tuple[bytes, bytes, int, int], float] = OrderedDict()
        self._lock = Lock()

    def logits(self, question: str, candidates: Sequence[Readable]) -> list[float]:
        """Return a logit for each candidate: that it answers, or bears on, the question.

        The age counts absolutely and relative to the other candidates."""
        return self._logits(question, question_ids, candidates, _buckets(candidates))

    def replaced(self, newer: Readable, older: Sequence[Readable]) -> list[float]:
        """Return a logit for each older message: that it is no longer so because of the newer one."""
        now = newer.age_days
        days = [None if one.age_days is None or now is None else one.age_days - now for one in older]
        ages = [(UNKNOWN_AGE if age is None else age_bucket(age), UNKNOWN_AGE) for age in days]
        return self._logits(newer.text, newer_ids, older, ages)

    def _logits(
        self,
        text: str,
        ids: Callable[[WordPiece, str], list[int]],
        candidates: Sequence[Readable],
        ages: Sequence[tuple[int, int]],
    ) -> list[float]:
        if not candidates:
            return []
        asked = _digest(f"{ids.__name__}\0{text}")
        keys = [
            (asked, _digest(f"{candidate.speaker}\0{candidate.text}"), *age)
            for candidate, age in zip(candidates, ages, strict=True)
        ]
        with self._lock:
            known = {key: self._scores[key] for key in keys if key in self._scores}
        new = [at for at, key in enumerate(keys) if key not in known]
        if new:
            messages = self._encoded([candidates[at] for at in new], [keys[at][1] for at in new])
            model = loaded_model()
            found = model.logits(ids(model.pieces, text), messages, [ages[at] for at in new])
            known.update((keys[at], float(logit)) for at, logit in zip(new, found, strict=True))
        with self._lock:
            for key in keys:
                self._scores[key] = known[key]
                self._scores.move_to_end(key)
            while len(self._scores) > MAX_SCORES:
                self._scores.popitem(last=False)
        return [known[key] for key in keys]

    def clear(self) -> None:
        """Empty the caches."""
        with self._lock:
            self._messages.clear()
            self._scores.clear()
            self._size = 0

    @property
    def cache_bytes(self) -> int:
        return self._size

    def _encoded(self, candidates: Sequence[Readable], keys: Sequence[bytes]) -> list[Message]:
        with self._lock:
            known = {key: self._messages[key] for key in keys if key in self._messages}
        new = {key: candidate for key, candidate in zip(keys, candidates, strict=True) if key not in known}
        states = loaded_model().encode([(one.speaker, one.text) for one in new.values()])
        known.update(zip(new, states, strict=True))
        with self._lock:
            for key, message in known.items():
                if key not in self._messages:
                    self._size += message.nbytes
                self._messages[key] = message
                self._messages.move_to_end(key)
            while self._size > self._limit:
                self._size -= self._messages.popitem(last=False)[1].nbytes
        return [known[key] for key in keys]


_loading = Lock()
if hasattr(os, "register_at_fork"):  # nobody holds it during a fork, so that it is free in the new process
    os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)


def loaded_model() -> Model:
    with _loading:
        return _model()


@cache
def _model() -> Model:
    return Model()


def _buckets(candidates: Sequence[Readable]) -> list[tuple[int, int]]:
    """Return the age of each candidate in buckets, absolute and relative to those of known age."""
    days = [candidate.age_days for candidate in candidates if candidate.age_days is not None]
    recency = iter(rank_buckets([-age for age in days]))
    return [
        (UNKNOWN_AGE, UNKNOWN_AGE) if candidate.age_days is None else (age_bucket(candidate.age_days), next(recency))
        for candidate in candidates
    ]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
