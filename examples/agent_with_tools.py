"""An agent that decides itself when to search, save and forget: the loop of tool calls, written out.

The model is a stand-in that answers with the tool calls a model would make, as JSON text. With a real one, send
`messages` and the tools' schemas instead; `examples/openai_client.py` has that.

    python examples/agent_with_tools.py [FILE]
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.agents.tools import MemoryTools

MAX_STEPS = 5
Call = tuple[str, dict[str, Any]]


class ScriptedModel:
    """Stand in for a model: make one tool call for each request, then answer with what the tool returned."""

    def __init__(self, calls: dict[str, Call]) -> None:
        self._calls = calls

    async def complete(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        last = messages[-1]
        if last["role"] == "tool":
            lines = [line for line in last["content"].splitlines() if '"' in line and " weak," not in line]
            return {"content": lines[0].strip("- ") if lines else "I do not know."}
        name, arguments = self._calls[last["content"]]
        if name not in {tool["name"] for tool in tools}:
            return {"content": f"I have no tool {name}."}
        return {"content": None, "tool_call": {"name": name, "arguments": json.dumps(arguments)}}


async def run(model: ScriptedModel, tools: MemoryTools, said: str) -> str:
    """Answer one request; errors of tools go back to the model, which can correct its arguments."""
    schemas = [{"name": tool.name, "parameters": tool.schema()} for tool in tools.definitions]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": tools.system_prompt},
        {"role": "user", "content": said},
    ]
    for _ in range(MAX_STEPS):
        answer = await model.complete(messages, schemas)
        if (call := answer.get("tool_call")) is None:
            return str(answer["content"])
        result = await tools.call(call["name"], call["arguments"])
        print(f"   {call['name']}({call['arguments']})" + (" failed" if result.is_error else ""))
        messages += [{"role": "assistant", **answer}, {"role": "tool", "content": result.text}]
    return "I stopped: too many steps."


def script() -> Iterator[tuple[str, Call]]:
    yield (
        "Remember that the deploy key is rotated on Mondays.",
        ("save_memory", {"content": "The deploy key is rotated on Mondays", "memory_type": "fact"}),
    )
    yield "When do we rotate the deploy key?", ("search_memories", {"query": "deploy key rotation"})
    yield "And the password of the printer?", ("search_memories", {"query": "password of the printer", "limit": 3})
    yield "List what you know.", ("list_memories", {})


async def main(file: Path) -> None:
    calls = dict(script())
    async with Memory.open(file) as memory:
        tools = MemoryTools(memory, user_id="team", agent_id="ops", session_id="s1")
        for said in calls:
            print(f"user: {said}")
            print(f"bot:  {await run(ScriptedModel(calls), tools, said)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "agent.db"))
