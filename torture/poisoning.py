"""Poisoning: prompt injections in memories (`injections.py`) are stored verbatim with source and trust.

Wherever they are shown to a model they are fenced and cannot end the fence or imitate another speaker; `min_trust`
leaves them out; and everything from a source is undone in one call.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from jiyi import Memory
from jiyi.agents.tools import MemoryTools
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from jiyi.text.fence import CLOSING, OPENING, strip_context

from .injections import EVERY
from .stores import stores
from .trial import Trial

PROTECTIONS = {
    "the fence": "`harmless` gives the text as it is, in contexts and in tools",
    "the filter": "`min_trust` is taken for 0",
    "the limit of trust": "what is said again counts, whoever says it: `apart` tells sources no longer apart",
}
BLUNT = 0.2  # trust of the source
JOINERS = "\u200c\u200d"  # emoji and several scripts need them
TOKENS = re.compile(
    r"<\s?/?\s?jiyi-memory|<[|｜]|\[/?INST\]|<</?SYS>>|</?s>|</?(?:system|instructions?|tool_call|tool_result|think|invoke)\b"
    r"|</?(?:function_calls|start_of_turn|end_of_turn)|\[TOOL_CALLS\]|```|~~~",
    re.IGNORECASE,
)
VOICE = re.compile(
    r"[ >*+\-]*(?:system|developer|assistant|human|tool|系统|助手|人类|工具)[ *_]*[:：]"
    r"|[ >*+\-]*#{1,6} (?:USER MEMORY|用户记忆)",
    re.IGNORECASE,
)


async def run(trial: Trial) -> None:
    chances = trial.chances()
    chosen = EVERY if trial.scale >= 0.2 else chances.sample(EVERY, max(12, round(len(EVERY) * trial.scale)))
    with ExitStack() as off:
        _switch_off(trial.without, off)
        async for kind, place in stores(trial):
            settings = load_settings(tools={"calls_per_minute": 100_000})
            async with Memory.open(place, settings=settings, embedder=WordEmbedder()) as memory:
                for number, (sort, text) in enumerate(chosen):
                    await _one(trial, memory, f"{kind}, {sort}", text.format(f"zq{number}x"), f"zq{number}x", number)
                await _rolled_back(trial, memory, kind)
            trial.counts[f"injections on {kind}"] += len(chosen)


def _switch_off(what: str | None, off: ExitStack) -> None:
    if what == "the fence":
        for module in ("jiyi.read.context", "jiyi.agents.tools.outputs", "jiyi.agents.tools.definitions"):
            off.enter_context(patch(f"{module}.harmless", lambda text: text))
    elif what == "the filter":
        off.enter_context(patch("jiyi.validation.share", lambda argument, value: 0.0))
    elif what == "the limit of trust":
        for module in ("build", "facts"):
            off.enter_context(patch(f"jiyi.write.{module}.trust_parts", lambda trust: ()))


async def _one(trial: Trial, memory: Memory, kind: str, text: str, mark: str, number: int) -> None:
    """Add it as a statement, as tool output, and in the name and tags of a harmless memory."""
    where = {"user_id": "mei", "session_id": "web", "trust": BLUNT}
    ways = (
        text,
        [{"role": "user", "name": text[:40], "content": f"I read this: {text}"}],
        {"text": f"{mark} tea", "tags": [text[:60]], "metadata": {"title": text}},
    )
    made = (await memory.add(ways[number % 3], **where)).memories
    kept = strip_context(text)  # forged context blocks in messages are removed
    if not any(kept in item.content or text in (item.content, *item.metadata.values()) for item in made):
        trial.breaks("lost", f"{kind}: {text!r} is not stored verbatim")
    if any(item.trust != BLUNT or item.session_id != "web" for item in made if item.memory_type != "profile"):
        trial.breaks("other", f"{kind}: {text!r} has no source")
    async for name, shown in renderings(memory, mark, made[0].memory_key):
        trial.counts["renderings"] += 1
        if problem := loose(shown):
            trial.breaks("other", f"{kind}: {name} shows {problem!r} of {text!r}")
        if mark in strip_context(shown):
            trial.breaks("other", f"{kind}: {name} would be stored again: {strip_context(shown)[:80]!r}")
    for mode in ("hybrid", "keyword", "semantic"):
        found = await memory.search(mark, user_id="mei", search_mode=mode, min_trust=0.5)
        if found.hits:
            trial.breaks("leak", f"{kind}: min_trust lets {found.hits[0].content_preview!r} through")


async def renderings(memory: Memory, mark: str, key: str) -> AsyncIterator[tuple[str, str]]:
    """All ways in which a memory is shown to a model: context blocks in each style and language, tool results (the same
    for MCP and every framework), and AutoGen's message."""
    for style in ("sections", "bullets"):
        for language in ("zh", "en"):
            block = await memory.context(mark, user_id="mei", style=style, language=language, max_tokens=4000)
            yield f"context {style} {language}", block
    tools = MemoryTools(memory, user_id="mei", agent_id="a", session_id="s")
    for name, given in (
        ("search_memories", {"query": mark, "min_relevance_score": 0}),
        ("get_memory_detail", {"memory_key": key}),
        ("list_memories", {"limit": 20}),
    ):
        result = await tools.call(name, given)
        if not result.is_error:
            yield name, result.text
    from autogen_core.model_context import UnboundedChatCompletionContext
    from autogen_core.models import UserMessage

    from jiyi.agents.autogen import JiyiMemory

    chat = UnboundedChatCompletionContext()
    await chat.add_message(UserMessage(content=mark, source="user"))
    await JiyiMemory(memory, user_id="mei").update_context(chat)
    for message in (await chat.get_messages())[:-1]:
        yield "AutoGen", str(message.content)


def loose(shown: str) -> str | None:
    """Parts of a block that could end it, imitate a speaker or hide; the fence itself is ours."""
    if not shown:
        return None
    start, end = shown.find(OPENING), shown.rfind(CLOSING)
    if start < 0 or end < 0:
        return "no fence"
    inside = shown[start + len(OPENING) : end]
    if found := TOKENS.search(inside):
        return found[0]
    for line in inside.split("\n")[3:]:  # after the notice and the title
        if found := VOICE.match(line):
            return found[0]
    for each in inside:
        if each not in "\n" + JOINERS and unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp", "Cs"):
            return each
    return None


async def _contents(memory: Memory, **filters: Any) -> list[str]:
    """Return the texts of memories and messages."""
    return [
        item.content
        for types in (None, ["message"])
        for item in (await memory.list(user_id="mei", memory_types=types, limit=1000, **filters)).items
    ]


async def _rolled_back(trial: Trial, memory: Memory, kind: str) -> None:
    """Facts from the user stay current despite the web; then everything from the web is undone in one call."""
    await memory.add("I live in Berlin.", user_id="mei", session_id="talk")
    await memory.add("I live in Paris now.", user_id="mei", session_id="web", trust=BLUNT)
    trusted = await _contents(memory, min_trust=0.5)
    if trusted != ["I live in Berlin."]:
        trial.breaks("other", f"{kind}: trusted memories are now {trusted}")
    await memory.maintenance.undo(session_id="web", user_id="mei")
    left = await _contents(memory)
    if left != ["I live in Berlin."]:
        trial.breaks("leak", f"{kind}: after the undo there is still {left[:3]}")
    if (await memory.search("zq1x zq2x PIN obey 服从", user_id="mei")).total_found > 1:
        trial.breaks("leak", f"{kind}: search still finds undone memories")
