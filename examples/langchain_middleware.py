"""A LangChain agent that remembers. The model is scripted, so that no key is needed.

pip install -e '.[langchain]'
python examples/langchain_middleware.py [FILE]
"""

import asyncio
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from jiyi import Memory
from jiyi.agents.langchain_middleware import JiyiMiddleware


class Scripted(GenericFakeChatModel):
    """Prints the memories it is given; use any chat model in its place."""

    def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
        print("\n".join(line for line in messages[-1].text.splitlines() if line.startswith("- ")))
        return super()._generate(messages, *args, **options)


async def main() -> None:
    model = Scripted(messages=iter([AIMessage("Noted."), AIMessage("Booked, without peanuts.")]))
    async with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
        for session, said in (("monday", "I'm allergic to peanuts."), ("friday", "Book a table for us")):
            middleware = JiyiMiddleware(memory, user_id="mei", session_id=session, tools=False)
            agent = create_agent(model, middleware=[middleware])
            reply = await agent.ainvoke({"messages": [("user", said)]})
            print(reply["messages"][-1].text)


asyncio.run(main())
