"""Warming up a server: what is loaded once is loaded before the first request, for which everybody would wait."""

import asyncio
from importlib import import_module
from typing import Any

from .engine import runtime
from .languages.zh.words import proper_names
from .models import utc_now
from .read.names import name_question
from .read.relevance import relevance_model
from .text.fence import harmless
from .write.drafts import Said, Unit
from .write.extract import extract
from .write.index import KeywordRules, index_entries
from .write.parts import parts_of
from .write.slots import ended_things, moved_things

SAMPLE = "I live in Rome. My wife Petra and I moved lunch to Friday, May 5 at 3pm, and sold the car. 我下周五把车卖了。"


async def warm_up(memory: Any) -> None:
    """Load the models, dictionaries and patterns that read texts; without extraction few are needed."""
    if runtime(memory).settings.extraction.enabled:
        await asyncio.to_thread(_read_sample)
        await memory.health()  # loads the embedder


def _read_sample() -> None:
    said = Said(id="1", role="user", speaker=None, text=SAMPLE, sent_at=utc_now())
    extract(Unit(id="1", messages=(said,), user_id="sample"))
    index_entries([(SAMPLE, SAMPLE, (), {}, "message")], KeywordRules(1, 1.0))
    for read in (parts_of, ended_things, moved_things, name_question, proper_names, harmless):
        read(SAMPLE)
    relevance_model()
    import_module("jiyi.write.add")
