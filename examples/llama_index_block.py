"""LlamaIndex's chat memory with Jiyi as its long-term memory.

pip install -e '.[llama-index]'
python examples/llama_index_block.py [FILE]
"""

import asyncio
import sys
import warnings

warnings.filterwarnings("ignore")  # LlamaIndex closes its own in-memory database late

from llama_index.core.base.llms.types import ChatMessage  # noqa: E402
from llama_index.core.memory import Memory as ChatMemory  # noqa: E402

from jiyi import Memory  # noqa: E402
from jiyi.agents.llama_index import JiyiMemoryBlock  # noqa: E402


async def main() -> None:
    async with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
        await memory.add("I'm allergic to peanuts", user_id="mei")
        blocks = [JiyiMemoryBlock(memory, user_id="mei")]
        chat = ChatMemory.from_defaults(session_id="friday", memory_blocks=blocks, tokenizer_fn=str.split)
        await chat.aput(ChatMessage(role="user", content="Book a table for us"))
        for message in await chat.aget():
            print(f"{message.role.value}: {message.content}")
        await chat.sql_store._async_engine.dispose()


asyncio.run(main())
