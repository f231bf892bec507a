"""A chat in which the bot looks into its memory before every answer.

The bot is scripted, so that nothing but Jiyi is needed: `answer` stands for your call of a language model.

    python examples/chat_with_memory.py [FILE]
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from jiyi import Memory
from jiyi.agents.recall import Recalled, recall

MONDAY = ["Hi, I am Mei. I am allergic to peanuts.", "我下周三去上海出差", "My cat is called 豆豆."]
FRIDAY = ["Can I have the peanut soup?", "我什么时候去上海？", "What is the name of my cat?"]


def answer(said: str, found: Recalled) -> str:
    """A stand-in for a language model: it would be given `found.block` and say something better."""
    if not said.endswith(("?", "？")):
        return "Noted."
    sure = [hit.content_preview for hit in found.hits if hit.id not in found.weak]
    wishes = [memory.content for memory in found.standing]
    return f"You told me: “{(sure or wishes)[0]}”" if sure or wishes else "You have not told me."


async def turn(memory: Memory, said: str, *, session_id: str) -> None:
    # Recall first, store afterwards: otherwise the best match for a question is the question itself.
    # Only the user's words are stored; the bot's own words would come back as if they were knowledge.
    found = await recall(memory, said, user_id="mei", session_id=session_id)
    print(f"mei: {said}")
    print(f"bot: {answer(said, found)}\n")
    await memory.add({"role": "user", "content": said}, user_id="mei", session_id=session_id)


async def main(file: Path) -> None:
    async with Memory.open(file) as memory:
        for session_id, lines in (("monday", MONDAY), ("friday", FRIDAY)):
            print(f"--- {session_id}")
            for said in lines:
                await turn(memory, said, session_id=session_id)
        print(f"{await memory.count(user_id='mei', memory_types=['message'])} messages are kept.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "chat.db"))
