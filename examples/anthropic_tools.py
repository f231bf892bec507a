"""Anthropic's client with the memory tools: the model decides when to look and what to keep.

The model is scripted, so that no key is needed. For a real one set ANTHROPIC_API_KEY and ANTHROPIC_MODEL.

    pip install anthropic
    python examples/anthropic_tools.py [FILE]
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic

from jiyi import Memory
from jiyi.agents.tools import MemoryTools
from jiyi.testing import ScriptedModel

MODEL = os.environ.get("ANTHROPIC_MODEL", "scripted")
SCRIPT: list[str | dict[str, Any]] = [
    {"save_memory": {"content": "梅对花生过敏", "importance": 0.9}},
    "好的，记住了。",
    {"search_memories": {"query": "花生过敏"}},
    "宫保鸡丁里有花生，你对花生过敏，换一道吧。",
]


@asynccontextmanager
async def anthropic_client() -> AsyncIterator[AsyncAnthropic]:
    """A client of a real model if the environment names one, otherwise of one that reads from a script."""
    if "ANTHROPIC_MODEL" in os.environ:
        async with AsyncAnthropic() as client:
            yield client
    else:
        with ScriptedModel(SCRIPT) as model:
            async with AsyncAnthropic(base_url=model.root_url, api_key="none") as client:
                yield client


async def answer(client: AsyncAnthropic, tools: MemoryTools, said: str) -> str:
    messages: list[Any] = [{"role": "user", "content": said}]
    tools.turn()
    while True:
        offered: Any = tools.anthropic()
        reply = await client.messages.create(
            model=MODEL, max_tokens=1000, system=tools.system_prompt, messages=messages, tools=offered
        )
        results = await tools.answer_anthropic(reply)
        if not results:
            return "".join(block.text for block in reply.content if block.type == "text")
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]


async def main(file: Path) -> None:
    async with Memory.open(file) as memory, anthropic_client() as client:
        for day, said in (("monday", "我对花生过敏，请记住。"), ("friday", "晚饭吃宫保鸡丁好吗？")):
            tools = MemoryTools(memory, user_id="mei", agent_id="cook", session_id=day, language="zh")
            print(f"mei: {said}\nbot: {await answer(client, tools, said)}\n")
        usage = tools.usage()
        print(f"calls: {usage.calls}, searches that found something: {usage.hit_rate:.0%}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "anthropic.db"))
