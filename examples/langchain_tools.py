"""The memory tools for LangChain, in the loop that every agent there has: the model calls, the tools answer.

The model is scripted, so that no key is needed. For a real one: pip install langchain-openai, and set LLM_MODEL,
LLM_BASE_URL and LLM_API_KEY.

    pip install -e '.[langchain]'
    python examples/langchain_tools.py [FILE]
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from jiyi import Memory
from jiyi.agents.langchain import langchain_tools
from jiyi.agents.tools import MEMORY_TOOLS_SYSTEM_PROMPTS


def calls(tool: str, **arguments: object) -> AIMessage:
    return AIMessage(content="", tool_calls=[{"type": "tool_call", "id": "1", "name": tool, "args": arguments}])


SCRIPT = [
    calls("save_memory", content="Mei wants her slides in blue", memory_type="preference"),
    AIMessage(content="I will remember that."),
    calls("search_memories", query="colour of the slides"),
    AIMessage(content="Here they are, in blue."),
]


def model(tools: list[Any]) -> Any:
    """A real model if the environment names one, otherwise one that reads from a script."""
    if "LLM_MODEL" not in os.environ:
        return GenericFakeChatModel(messages=iter(SCRIPT))
    from langchain_openai import ChatOpenAI

    real = ChatOpenAI(
        model=os.environ["LLM_MODEL"],
        base_url=os.environ.get("LLM_BASE_URL"),
        api_key=os.environ.get("LLM_API_KEY", "none"),
    )
    return real.bind_tools(tools)


async def main(file: Path) -> None:
    async with Memory.open(file) as memory:
        tools = langchain_tools(memory, user_id="mei", agent_id="helper")
        by_name = {tool.name: tool for tool in tools}
        llm = model(tools)
        for said in ("Please keep my slides in blue.", "Make me slides about tea, in my colour."):
            messages: list[AnyMessage] = [SystemMessage(MEMORY_TOOLS_SYSTEM_PROMPTS["en"]), HumanMessage(said)]
            while True:
                reply = await llm.ainvoke(messages)
                messages.append(reply)
                if not reply.tool_calls:
                    break
                messages += [await by_name[call["name"]].ainvoke(call) for call in reply.tool_calls]
            print(f"mei: {said}\nbot: {reply.content}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "langchain.db"))
