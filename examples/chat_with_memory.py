"""A chat in which the bot looks into its memory before every answer.

The bot is scripted, so that nothing but Jiyi is needed: `answer` stands for your call of a language model.

    python examples/chat_with_memory.py [FILE]
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jiyi import Hit, Memory
from jiyi.models import RELEVANT

MONDAY = ["Hi, I am Mei. I am a vegetarian and allergic to peanuts.", "我下周三去上海出差", "My cat is called 豆豆."]
FRIDAY = ["Can I have the peanut soup?", "我什么时候去上海？", "what is the name of my cat?"]


def answer(recalled: Sequence[Hit]) -> str:
    """A stand-in for a language model: it would be given the recalled memories and say something better."""
    if not recalled:
        return "Nice to hear that!"
    return f"I remember ({recalled[0].relevance_score:.2f}): “{recalled[0].content_preview}”"


async def turn(memory: Memory, said: str, *, session_id: str) -> None:
    # Recall first, take in afterwards: otherwise the best match for a question is the question itself.
    # Only what the user says goes in; the bot's own words would come back as if they were knowledge.
    found = await memory.search(said, user_id="mei", min_relevance_score=RELEVANT, limit=3)
    print(f"mei: {said}")
    print(f"bot: {answer(found.hits)}\n")
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
