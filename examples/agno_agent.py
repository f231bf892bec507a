"""Sessions of an Agno agent that remembers. The model is scripted, so that no key is needed.

pip install -e '.[agno]'
python examples/agno_agent.py [FILE]
"""

import asyncio
import sys
from typing import Any

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.learn import LearningMachine
from agno.models.base import Model
from agno.models.response import ModelResponse

from jiyi import Memory
from jiyi.agents.agno import JiyiLearningStore


class Scripted(Model):
    """Answers from the system message; use any model in its place."""

    def invoke(self, *, messages: Any, **_: Any) -> ModelResponse:
        knows = "allergic to peanuts" in str(messages[0].content)
        return ModelResponse(role="assistant", content="Booked, without peanuts." if knows else "Noted.")

    async def ainvoke(self, **given: Any) -> ModelResponse:
        return self.invoke(**given)

    def invoke_stream(self, **given: Any) -> Any:
        raise NotImplementedError

    ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke_stream


async def main() -> None:
    async with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
        learning = LearningMachine(custom_stores={"jiyi": JiyiLearningStore(memory)})
        agent = Agent(model=Scripted(id="scripted"), db=InMemoryDb(), learning=learning, telemetry=False)
        for session, said in (
            ("monday", "My cat is called Doudou."),
            ("tuesday", "I'm allergic to peanuts."),
            ("friday", "Book a table for us"),
        ):
            reply = await agent.arun(said, user_id="mei", session_id=session)
            print(f"{said} → {reply.content}")


asyncio.run(main())
