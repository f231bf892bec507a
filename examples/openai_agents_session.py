"""An agent of OpenAI's Agents SDK that remembers its user: in a session, across sessions, and through tools.

The model is scripted unless LLM_BASE_URL, LLM_MODEL and LLM_API_KEY name a real one.

    pip install -e '.[openai-agents]'
    python examples/openai_agents_session.py [FILE]
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from agents import Agent, Model, OpenAIChatCompletionsModel, RunConfig, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from jiyi import Memory
from jiyi.agents.openai_agents import JiyiSession, function_tools, recall
from jiyi.agents.tools import MemoryTools

MONDAY = ["I am allergic to peanuts.", "我的猫叫豆豆"]
FRIDAY = ["Which food must I avoid because of my allergy?", "我的猫叫什么名字？"]


def model() -> Model:
    if os.environ.get("LLM_BASE_URL"):
        from openai import AsyncOpenAI

        client = AsyncOpenAI(base_url=os.environ["LLM_BASE_URL"], api_key=os.environ.get("LLM_API_KEY", "none"))
        return OpenAIChatCompletionsModel(model=os.environ["LLM_MODEL"], openai_client=client)
    return ScriptedModel(
        [
            [function_call("save_memory", {"content": "The user is allergic to peanuts."}, call_id="call-1")],
            [assistant_message("I will remember that.")],
            [assistant_message("豆豆，好名字！")],
            [function_call("search_memories", {"query": "food allergy"}, call_id="call-2")],
            [assistant_message("Peanuts.")],
            [assistant_message("豆豆。")],
        ]
    )


async def main(file: Path) -> None:
    set_tracing_disabled(True)
    async with Memory.open(file) as memory:
        tools = MemoryTools(memory, user_id="mei")
        agent = Agent(name="helper", instructions=tools.system_prompt, tools=[*function_tools(tools)], model=model())
        for name, lines in (("monday", MONDAY), ("friday", FRIDAY)):
            print(f"--- {name}")
            session = JiyiSession(name, memory, user_id="mei", remember=["user"])
            config = RunConfig(call_model_input_filter=recall(memory, user_id="mei", session_id=name))
            for said in lines:
                result = await Runner.run(agent, said, session=session, run_config=config)
                print(f"mei: {said}\nbot: {result.final_output}")
        print("\nRecalled for a new session:")
        print(await memory.context("猫叫什么？ Any allergies?", user_id="mei", style="bullets", max_tokens=200))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "agents.db"))
