"""Two sessions of a Microsoft Agent Framework agent that remembers. The model is scripted, so that no key is needed.

pip install -e '.[agent-framework]'
python examples/agent_framework_provider.py [FILE]
"""

import asyncio
import sys
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse
from agent_framework import Message as ChatMessage

from jiyi import Memory
from jiyi.agents.agent_framework import JiyiProvider


class Scripted(BaseChatClient):
    """Answers from what it was given; use any chat client in its place."""

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        async def answer() -> ChatResponse:
            told = f"{options.get('instructions')}" + "".join(message.text for message in messages)
            text = "No peanuts, then." if "allergic to peanuts" in told else "Noted."
            return ChatResponse(messages=[ChatMessage(role="assistant", contents=[text])])

        return answer()


async def main() -> None:
    async with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
        agent = Agent(Scripted(), "You are a helper.", context_providers=[JiyiProvider(memory, user_id="mei")])
        print((await agent.run("I'm not from here.", session=agent.create_session())).text)
        print((await agent.run("My sister is allergic to nuts.", session=agent.create_session())).text)
        await memory.add("Mei is allergic to peanuts", user_id="mei")
        print((await agent.run("Book a table for us", session=agent.create_session())).text)


asyncio.run(main())
