"""An asynchronous chat loop: each turn asks the memory for what matters, answers, and stores what was said.

The model is a stand-in, so that nothing but Jiyi is needed: `reply` is where a call of yours belongs.

    python examples/chat_loop.py [FILE]            # two prepared conversations
    python examples/chat_loop.py [FILE] --talk     # type yourself; an empty line ends
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from jiyi import Memory

MONDAY = ["Hi, I am Mei and I am allergic to peanuts.", "我下周三去上海出差。"]
FRIDAY = ["What am I allergic to?", "我什么时候去上海？"]
SYSTEM = "You are a helpful assistant."


async def reply(messages: list[dict[str, str]]) -> str:
    """Stand in for a model: repeat the first thing that it was reminded of."""
    system, question = messages[0]["content"], messages[-1]["content"]
    notes = [line.removeprefix("- ") for line in system.splitlines() if line.startswith("- ")]
    return f"You told me: {notes[0]}" if notes and question.endswith(("?", "？")) else "Noted."


async def typed() -> AsyncIterator[str]:
    while line := (await asyncio.to_thread(input, "you: ")).strip():
        yield line


async def prepared(lines: list[str]) -> AsyncIterator[str]:
    for line in lines:
        print(f"you: {line}")
        yield line


async def chat(memory: Memory, lines: AsyncIterator[str], *, user_id: str, session_id: str) -> None:
    dialogue: list[dict[str, str]] = []
    async for line in lines:
        known = await memory.context(line, user_id=user_id, max_tokens=300)
        dialogue.append({"role": "user", "content": line})
        answer = await reply([{"role": "system", "content": f"{SYSTEM}\n{known}"}, *dialogue])
        dialogue.append({"role": "assistant", "content": answer})
        print(f"bot: {answer}")
        await memory.observe(line, answer, user_id=user_id, session_id=session_id)  # stored when it returns


async def main(file: Path, talk: bool) -> None:
    async with Memory.open(file) as memory:
        if talk:
            await chat(memory, typed(), user_id="mei", session_id="typed")
            return
        for session_id, lines in (("monday", MONDAY), ("friday", FRIDAY)):
            print(f"--- {session_id}")
            await chat(memory, prepared(lines), user_id="mei", session_id=session_id)
        print("stored:", len(await memory.messages(user_id="mei")), "messages")


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "--talk"]
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(names[0]) if names else Path(folder) / "chat.db", "--talk" in sys.argv))
