"""OpenAI's client with a memory: it recalls before each call and takes in what was said; and the memory tools.

The model is scripted, so that no key is needed. For a real one set LLM_MODEL, LLM_BASE_URL and LLM_API_KEY.

    pip install openai
    python examples/openai_client.py [FILE]
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai import OpenAI

from jiyi.agents.openai import remember
from jiyi.agents.tools import MemoryTools
from jiyi.sync import Memory
from jiyi.testing import ScriptedModel

MODEL = os.environ.get("LLM_MODEL", "scripted")
SCRIPT: list[str | dict[str, Any]] = [
    "Noted: no peanuts.",
    "宫保鸡丁里有花生，你对花生过敏，换一道吧。",
    {"search_memories": {"query": "peanuts"}},
    "You are allergic to peanuts.",
]


@contextmanager
def openai_client() -> Iterator[OpenAI]:
    """A client of a real model if the environment names one, otherwise of one that reads from a script."""
    if "LLM_MODEL" in os.environ:
        with OpenAI(base_url=os.environ.get("LLM_BASE_URL"), api_key=os.environ.get("LLM_API_KEY", "none")) as client:
            yield client
    else:
        with ScriptedModel(SCRIPT) as model, OpenAI(base_url=model.base_url, api_key="none") as client:
            yield client


def main(file: Path) -> None:
    with Memory.open(file) as memory, openai_client() as plain:
        client = remember(plain, memory, user_id="mei", session_id="monday")
        said = "I am allergic to peanuts."
        reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": said}])
        print(f"mei: {said}\nbot: {reply.choices[0].message.content}\n")

        said = "宫保鸡丁里有花生吗？我能吃吗？"
        print(f"mei: {said}\nbot: ", end="")
        for chunk in client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": said}], stream=True
        ):
            print(chunk.choices[0].delta.content or "", end="")
        print("\n")

        # With tools the model decides when to look.
        tools = MemoryTools(memory, user_id="mei", agent_id="cook")
        messages: list[Any] = [
            {"role": "system", "content": tools.system_prompt},
            {"role": "user", "content": "What must I not eat?"},
        ]
        for _ in range(5):
            offered: Any = tools.openai(strict=True)
            message = plain.chat.completions.create(model=MODEL, messages=messages, tools=offered).choices[0].message
            messages.append(message)
            for call in message.tool_calls or []:
                if call.type == "function":
                    result = tools.call_sync(call.function.name, call.function.arguments)
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
            if not message.tool_calls:
                break
        print(f"mei: What must I not eat?\nbot: {messages[-1].content}")
        print(f"tool calls: {tools.usage().calls}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "openai.db")
