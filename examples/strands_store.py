"""Sessions of a Strands agent that remembers. The model is scripted, so that no key is needed.

pip install -e '.[strands]'
python examples/strands_store.py [FILE]
"""

import sys
from collections.abc import AsyncIterator
from typing import Any

from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model

from jiyi.agents.strands import JiyiMemoryStore
from jiyi.sync import Memory


class Scripted(Model):
    """Answers from the messages; use any model in its place."""

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        recalled = "<memory>" in str(messages) and "allergic to nuts" in str(messages)
        text = "Booked, without nuts." if recalled else "Noted."
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": text}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


with Memory.open(sys.argv[1] if len(sys.argv) > 1 else None) as memory:
    for session, said in (
        ("monday", "My cat is called Doudou."),
        ("tuesday", "I'm allergic to nuts."),
        ("friday", "Book a table for us"),
    ):
        store = JiyiMemoryStore(memory, user_id="mei", session_id=session)
        agent = Agent(model=Scripted(), memory_manager=MemoryManager(stores=[store]), callback_handler=None)
        print(f"{said} → {agent(said)}".strip())
