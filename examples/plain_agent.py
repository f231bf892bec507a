"""An agent with memory without any framework: retrieve, augment, run, extract; and the hooks around it.

The model is scripted, so that no key is needed. For a real one: pip install openai, and set LLM_MODEL, LLM_BASE_URL and
LLM_API_KEY.

    python examples/plain_agent.py [FILE]
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.agents import AgentWithMemory, Chat, MemoryHooks, MemRecallAgent


def scripted(messages: list[dict[str, str]]) -> str:
    """A stand-in for a model: it says what it was reminded of."""
    known = [line.removeprefix("- ") for line in messages[-1]["content"].splitlines() if line.startswith("- ")]
    return f"I remember: {' · '.join(known)}" if known else "好的，记住了。"


def model() -> Chat:
    """A real model if the environment names one."""
    name = os.environ.get("LLM_MODEL")
    if not name:
        return scripted
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=os.environ.get("LLM_BASE_URL"), api_key=os.environ.get("LLM_API_KEY", "none"))

    async def chat(messages: list[Any]) -> Any:
        return await client.chat.completions.create(model=name, messages=messages)

    return chat


async def main(file: Path) -> None:
    async with Memory.open(file) as memory:
        for day, lines in (
            ("monday", ["我对花生过敏", "I am moving to Berlin in May."]),
            ("friday", ["我对花生过敏吗？", "When am I moving to Berlin?"]),
        ):
            print(f"--- {day}")
            agent = AgentWithMemory(memory, model(), user_id="mei", session_id=day, max_tokens=300)
            for line in lines:
                reply = await agent.run(line)
                print(f"mei: {line}\nbot: {reply.text}\n")

        hooks = MemoryHooks(memory, user_id="mei")
        await hooks.on_session_end("friday", summary="Mei is moving to Berlin in May and asked about peanuts.")
        await hooks.after_skill_success("weekly_report", ["read_calendar", "write_summary"])

        recall = await MemRecallAgent(memory, user_id="mei").recall("花生过敏，以及她的鞋码")
        print(recall.text())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "plain.db"))
