"""An AutoGen agent that remembers from one session to the next.

The model is scripted, so that no key is needed. For a real one set LLM_MODEL, LLM_BASE_URL and LLM_API_KEY.

    pip install -e '.[autogen]' autogen-ext        # and, for a real model, 'autogen-ext[openai]'
    python examples/autogen_agent.py [FILE]
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from jiyi import Memory
from jiyi.agents.autogen import MemoryContext, build_agent

logging.getLogger("autogen_core.events").setLevel(logging.ERROR)  # the replaying model complains of tool calls
INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)


def model(script: Sequence[str | CreateResult]) -> ChatCompletionClient:
    """A real model if the environment names one, otherwise one that reads its answers from a script."""
    if not os.environ.get("LLM_MODEL"):
        return ReplayChatCompletionClient(list(script), model_info=INFO)
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    return OpenAIChatCompletionClient(
        model=os.environ["LLM_MODEL"],
        base_url=os.environ.get("LLM_BASE_URL"),
        api_key=os.environ.get("LLM_API_KEY", "none"),
        model_info=INFO,
    )


def calls(tool: str, **arguments: object) -> CreateResult:
    call = FunctionCall(id="1", name=tool, arguments=json.dumps(arguments, ensure_ascii=False))
    nothing = RequestUsage(prompt_tokens=0, completion_tokens=0)
    return CreateResult(finish_reason="function_calls", content=[call], usage=nothing, cached=False)


SESSIONS: list[tuple[str, list[str], list[str | CreateResult]]] = [
    (
        "monday",
        ["我叫梅，吃素，对花生过敏。", "Please keep my slides in blue."],
        [
            "好的，记住了。",
            calls("save_memory", content="Mei wants her slides in blue", memory_type="preference"),
            "I will use blue.",
        ],
    ),
    (
        "friday",
        ["晚饭吃宫保鸡丁好吗？", "Make me slides about tea in my colour."],
        [
            "宫保鸡丁里有花生和鸡肉，你吃素又对花生过敏，换麻婆豆腐（素）吧。",
            calls("search_memories", query="colour of slides"),
            "Here they are, in blue.",
        ],
    ),
]


async def main(file: Path) -> None:
    async with Memory.open(file) as memory:
        for session_id, tasks, script in SESSIONS:
            print(f"--- {session_id}")
            agent = build_agent("helper", model(script), memory, user_id="mei", session_id=session_id)
            for task in tasks:
                result = await agent.run(task=task)
                print(f"mei: {task}\nbot: {result.messages[-1].to_model_text()}\n")
            if isinstance(agent.model_context, MemoryContext):
                usage = agent.model_context.usage()
                print(f"tool calls: {usage.calls}, recalled without asking: {usage.proactive}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "autogen.db"))
