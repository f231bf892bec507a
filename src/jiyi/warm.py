"""Warming up a server: what is loaded once is loaded before the first request, for which everybody would wait."""

import asyncio
from importlib import import_module
from typing import Any

from .engine import runtime
from .languages.zh.words import proper_names
from .models import utc_now
from .reader import Passage, resolve
from .text.fence import harmless
from .write.drafts import Said, Unit
from .write.extract import extract
from .write.index import KeywordRules, index_entries
from .write.parts import parts_of

SAMPLE = (
    "I live in Rome. My wife Petra and I moved lunch to Friday, May 5 at 3pm, and sold the car.\n我下周五把车卖了。"
)


async def warm_up(memory: Any) -> None:
    """Load the models, dictionaries and patterns that read texts; without extraction the reader is enough."""
    if runtime(memory).settings.extraction.enabled:
        await asyncio.to_thread(_read_sample)
        await memory.health()  # loads the embedder
    reader = resolve(runtime(memory).settings, None)
    if reader is not None:
        await asyncio.to_thread(reader.answers, "Where do I live?", [*map(Passage, SAMPLE.splitlines())])


def _read_sample() -> None:
    said = Said(id="1", role="user", speaker=None, text=SAMPLE, sent_at=utc_now())
    extract(Unit(id="1", messages=(said,), user_id="sample"))
    index_entries([(SAMPLE, SAMPLE, (), {}, "message")], KeywordRules(1, 1.0))
    for read in (parts_of, proper_names, harmless):
        read(SAMPLE)
    import_module("jiyi.write.add")
