"""A Pydantic AI agent that remembers. The model is scripted, so that no key is needed.

pip install -e '.[pydantic-ai]'
python examples/pydantic_ai_memory.py [FILE]
"""

import asyncio
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from jiyi import Memory
from jiyi.agents.pydantic_ai import JiyiMemory


async def answer(messages: Any, _: Any) -> ModelResponse:
    """Answer from the prompt; use any model in its place."""
    prompt = str(messages[-1].parts)
    booked = "Booked, without peanuts." if "allergic to peanuts" in prompt else "Booked."
    return ModelResponse(parts=[TextPart(booked if "Book a table" in prompt else "Noted.")])


async def main() -> None:
    async with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
        for session, said in (
            ("monday", "My cat is called Doudou."),
            ("tuesday", "I'm allergic to peanuts."),
            ("friday", "Book a table for us"),
        ):
            capability = JiyiMemory(memory, user_id="mei", session_id=session)
            agent: Agent[None, str] = Agent(FunctionModel(answer), capabilities=[capability])
            print(f"{said} → {(await agent.run(said)).output}")


asyncio.run(main())
