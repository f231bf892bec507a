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
from jiyi.text.fence import strip_context
from jiyi.write.quotes import QUOTED_TRUST
from support import BLOCK, skeleton

from .injections import EVERY, ROLE_LINES
from .stores import stores
from .trial import Trial

PROTECTIONS = {
    "the fence": "`quoted` gives the text as it is, in contexts and in tools",
    "the filter": "`min_trust` is taken for 0",
    "the limit of trust": "what is said again counts, whoever says it: `apart` tells sources no longer apart",
}
BLUNT = 0.2  # trust of the source
JOINERS = "\u200c\u200d"  # emoji and several scripts need them
TOKENS = re.compile(r"<|\[/?(?:INST|TOOL_CALLS)\]")
# Outside of quotes a block has only this: bullets with key, label, tags and speaker, lines of a text, headings.
OURS = re.compile(
    r"""-\ (?:\[[^\[\]()"<]+\]\ ?)?(?:\((?:[\w.,:\ -]|"")*\)\ ?)?(?:\#(?:[\w./-]+|"")\ )*
        (?:(?:user|assistant|passed\ on\ by\ the\ user|用户|助手|用户转述|""):\ )?
        (?:""(?:\ \((?:possibly\ related|可能相关)\))?)?
    |>\ ""
    |\#{1,2}\ [^"]+
    |\[(?:Memory|记忆要点)\]
    |""",
    re.VERBOSE,
)
EVERYTHING = [*EVERY, *(("roles", "{} " + text.replace("{", "{{").replace("}", "}}")) for text in ROLE_LINES)]


async def run(trial: Trial) -> None:
    chances = trial.chances()
    few = max(12, round(len(EVERYTHING) * trial.scale))
    chosen = EVERYTHING if trial.scale >= 0.2 else chances.sample(EVERYTHING, few)
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
        for module in ("jiyi.read.context", "jiyi.agents.tools.outputs"):
            off.enter_context(patch(f"{module}.quoted", lambda text: text))
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
        {"content": f"{mark} tea", "tags": [text[:60]], "metadata": {"title": text}},
    )
    made = (await memory.add(ways[number % 3], **where)).memories
    kept = strip_context(text)  # forged context blocks in messages are removed
    if not any(kept in item.content or text in (item.content, *item.metadata.values()) for item in made):
        trial.breaks("lost", f"{kind}: {text!r} is not stored verbatim")
    if any(
        item.trust not in (BLUNT, BLUNT * QUOTED_TRUST) or item.session_id != "web"
        for item in made
        if item.memory_type != "profile"
    ):
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
    for message in (await chat.get_messages())[1:]:  # behind the user's own
        yield "AutoGen", str(message.content)


def loose(shown: str) -> str | None:
    """Parts of a block that could end it, imitate a speaker or hide: whatever is recalled and not in quotes."""
    if not shown:
        return None
    blocks = list(BLOCK.finditer(shown))
    if len(blocks) != 1 or shown.count("<jiyi-memory") != 1 or shown.count("</jiyi-memory") != 1:
        return f"{len(blocks)} fences"
    inside = blocks[0]["inside"]
    if found := TOKENS.search(inside):
        return found[0]
    _, *lines = skeleton(inside).split("\n")  # after the notice
    for line in lines:
        if not OURS.fullmatch(line):
            return line
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
