"""A small local model answers a question from the user's memory: through `remember()`, the proxy and a tool agent.

    python -m bench.local_model [--to http://127.0.0.1:8089/v1] [--model local] [--ways remember,proxy,agent] [--show]

Any OpenAI-compatible server will do. The agent is Pydantic AI's, with the tool `search_memories`. Some small models
write their calls as text, such as a JSON object in a code block; servers without a parser for that leave it in the
answer, so it is read here, as other servers do. Exits with 1 if an answer does not name the city.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import openai
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from jiyi import Memory
from jiyi.agents.openai import remember
from jiyi.agents.pydantic_ai import memory_toolset
from jiyi.agents.tools import MemoryTools

from .serving import proxy_of

USER = "mei"
CITY = "Lisbon"
FACTS = (f"I live in {CITY}.", "I like green tea.", "My sister Ana works at a bakery in Porto.")
QUESTION = "Which city do I live in?"
INSTRUCTIONS = "You are a helpful assistant. Search the user's memories, then answer in one sentence."
CALL = re.compile(r"(?:<tool_call>|```\w*)?\s*(\{.*\})\s*(?:</tool_call>|```)?", re.DOTALL)
TIMEOUT_S = 600.0


class TextCalls(httpx.AsyncHTTPTransport):
    """Turns a tool call that a model wrote as text into one that clients read."""

    def __init__(self, *, show: bool) -> None:
        super().__init__()
        self._show = show

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        reply = await super().handle_async_request(request)
        await reply.aread()
        if reply.status_code != 200:
            return reply
        body = reply.json()
        message = body["choices"][0]["message"]
        if self._show:
            print("    model:", json.dumps(message.get("content") or message.get("tool_calls"), ensure_ascii=False))
        if call := text_call(message.get("content") or ""):
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
            body["choices"][0]["finish_reason"] = "tool_calls"
        return httpx.Response(200, json=body)


def text_call(text: str) -> dict[str, str] | None:
    """Return the call that a text consists of, or None.

    >>> text_call('```json\\n{"name": "search_memories", "arguments": {"query": "city"}}\\n```')
    {'name': 'search_memories', 'arguments': '{"query": "city"}'}
    """
    found = CALL.fullmatch(text.strip())
    try:
        call: Any = json.loads(found[1]) if found else None
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    return {"name": call["name"], "arguments": json.dumps(call.get("arguments") or {}, ensure_ascii=False)}


async def by_remember(memory: Memory, to: str, model: str, show: bool) -> str:
    async with openai.AsyncOpenAI(base_url=to, api_key="local", timeout=TIMEOUT_S) as plain:
        return await ask(remember(plain, memory, user_id=USER, observe=False), model)


async def by_proxy(memory: Memory, to: str, model: str, show: bool) -> str:
    async with (
        proxy_of(memory, to, user_id=USER) as url,
        openai.AsyncOpenAI(base_url=url, api_key="local", timeout=TIMEOUT_S) as client,
    ):
        return await ask(client, model)


async def ask(client: openai.AsyncOpenAI, model: str) -> str:
    reply = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": QUESTION}], temperature=0, max_tokens=100
    )
    return reply.choices[0].message.content or ""


async def by_agent(memory: Memory, to: str, model: str, show: bool) -> str:
    http = httpx.AsyncClient(transport=TextCalls(show=show), timeout=TIMEOUT_S)
    async with openai.AsyncOpenAI(base_url=to, api_key="local", timeout=TIMEOUT_S, http_client=http) as client:
        chat = OpenAIChatModel(
            model, provider=OpenAIProvider(openai_client=client), settings={"temperature": 0, "max_tokens": 150}
        )
        tools = MemoryTools(memory, user_id=USER, only=["search_memories"])
        agent = Agent(chat, instructions=INSTRUCTIONS, toolsets=[memory_toolset(tools)])
        answer = str((await agent.run(QUESTION)).output)
        if not tools.usage().searches:
            raise SystemExit(f"the agent called no tool; it answered: {answer}")
        return answer


WAYS: dict[str, Callable[[Memory, str, str, bool], Awaitable[str]]] = {
    "remember": by_remember,
    "proxy": by_proxy,
    "agent": by_agent,
}


async def measure(ways: list[str], to: str, model: str, show: bool) -> bool:
    right = True
    for way in ways:
        with tempfile.TemporaryDirectory() as folder:
            async with Memory.open(Path(folder) / "memory.db") as memory:
                for fact in FACTS:
                    await memory.add(fact, user_id=USER)
                begun = time.monotonic()
                answer = await WAYS[way](memory, to, model, show)
        right = right and CITY in answer
        print(f"{way:10} {'right' if CITY in answer else 'WRONG'} {time.monotonic() - begun:4.0f} s  {answer}")
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", default="http://127.0.0.1:8089/v1", help="base URL of the model's server")
    parser.add_argument("--model", default="local")
    parser.add_argument("--ways", default=",".join(WAYS), help="names, separated by commas")
    parser.add_argument("--show", action="store_true", help="print what the model writes to the agent")
    given = parser.parse_args()
    sys.exit(0 if asyncio.run(measure(given.ways.split(","), given.to, given.model, given.show)) else 1)


if __name__ == "__main__":
    main()
