"""Of a long memory that tells of many things, those that a query is about: a prompt has no room for the others."""

from __future__ import annotations

import re

from ..languages.tokens import tokens
from ..models import MemoryItem
from ..text.passages import passages, width

MOST = 450  # letters of one memory that go into a prompt; a Chinese character counts as three

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}: ")


def to_the_point(memory: MemoryItem, query: str, most: int = MOST) -> MemoryItem:
    """A compressed memory with the passages that share most words with the query, in their order; of those that share
    as many, the latest. Others, and short ones, as they are."""
    told = _dated(memory)
    if not told or width(memory.content) <= most:
        return memory
    asked = set(tokens(query))
    shared = [len(asked.intersection(tokens(passage))) for passage in told]
    chosen: list[int] = []
    room = most
    for at in sorted(range(len(told)), key=lambda at: (-shared[at], -at)):
        if chosen and width(told[at]) > room:
            break
        chosen.append(at)
        room -= width(told[at])
    return memory.model_copy(update={"content": "\n".join(told[at] for at in sorted(chosen))})


def _dated(memory: MemoryItem) -> list[str]:
    """Its passages, each with the day it is of."""
    told: list[str] = []
    day = ""
    for passage in passages(memory.content, memory.data):
        found = _DAY.match(passage)
        told.append(passage if found else day + passage)
        day = found.group() if found else day
    return told
