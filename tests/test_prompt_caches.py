"""Prompt caches: what stands before the user's last message is the same in the next turn, byte for byte."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from autogen_core.models import AssistantMessage, UserMessage
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from jiyi import Memory
from jiyi.agents import AgentWithMemory, openai_agents
from jiyi.agents.autogen import MemoryContext
from jiyi.agents.langchain_middleware import JiyiMiddleware
from jiyi.agents.openai import remember
from jiyi.testing import ScriptedModel, WordEmbedder

MEI: Any = {"user_id": "mei", "session_id": "monday"}
SYSTEM: list[Any] = [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]
TURNS = ("May I eat peanuts?", "我住在哪里？", "Which tea do I like?")
Turn = Callable[[str], Awaitable[list[Any]]]


@asynccontextmanager
async def plain_python(memory: Memory) -> AsyncIterator[Turn]:
    asked: list[Any] = []

    def chat(messages: Any) -> str:
        asked.append(messages)
        return "OK."

    agent = AgentWithMemory(memory, chat, instructions="Be kind.", **MEI)

    async def turn(said: str) -> list[Any]:
        await agent.run(said)
        return list(asked[-1])

    yield turn


@asynccontextmanager
async def openai_client(memory: Memory) -> AsyncIterator[Turn]:
    history: list[Any] = [{"role": "system", "content": SYSTEM}]
    with ScriptedModel(["OK."] * 3) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            client = remember(plain, memory, **MEI)

            async def turn(said: str) -> list[Any]:
                history.append({"role": "user", "content": said})
                await client.chat.completions.create(model="m", messages=history)
                history.append({"role": "assistant", "content": "OK."})
                return list(model.requests[-1]["messages"])

            yield turn


@asynccontextmanager
async def openai_responses(memory: Memory) -> AsyncIterator[Turn]:
    history: list[Any] = []
    with ScriptedModel(["OK."] * 3) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            client = remember(plain, memory, **MEI)

            async def turn(said: str) -> list[Any]:
                history.append({"role": "user", "content": [{"type": "input_text", "text": said}]})
                await client.responses.create(model="m", input=history, instructions="Be kind.")
                history.append({"role": "assistant", "content": "OK."})
                return [model.requests[-1]["instructions"], *model.requests[-1]["input"]]

            yield turn


@asynccontextmanager
async def openai_agents_sdk(memory: Memory) -> AsyncIterator[Turn]:
    set_tracing_disabled(disabled=True)
    session = SQLiteSession("monday")
    config = RunConfig(call_model_input_filter=openai_agents.recall(memory, **MEI))
    with ScriptedModel(["OK."] * 3) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            agent = Agent(name="a", instructions="Be kind.", model=OpenAIChatCompletionsModel("m", plain))

            async def turn(said: str) -> list[Any]:
                await Runner.run(agent, said, session=session, run_config=config)
                return list(model.requests[-1]["messages"])

            yield turn


@asynccontextmanager
async def langchain(memory: Memory) -> AsyncIterator[Turn]:
    given: list[list[Any]] = []

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

        def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
            given.append([[message.type, message.content] for message in messages])
            return super()._generate(messages, *args, **options)

    middleware = JiyiMiddleware(memory, **MEI)
    history: list[Any] = []

    async def turn(said: str) -> list[Any]:
        model = Scripted(messages=iter([AIMessage("OK.")]))
        agent = create_agent(model, middleware=[middleware], system_prompt=SystemMessage(SYSTEM))
        history.append(HumanMessage(said))
        await agent.ainvoke({"messages": history})
        history.append(AIMessage("OK."))
        assert given[-1][0][1][0] == SYSTEM[0], "parts with a mark for the cache stay"
        return given[-1][1:]  # the guide follows the language of the user

    yield turn


@asynccontextmanager
async def autogen(memory: Memory) -> AsyncIterator[Turn]:
    context = MemoryContext(memory, language="en", **MEI)

    async def turn(said: str) -> list[Any]:
        await context.add_message(UserMessage(content=said, source="user"))
        messages = [message.model_dump() for message in await context.get_messages()]
        await context.add_message(AssistantMessage(content="OK.", source="a"))
        return messages

    yield turn


@asynccontextmanager
async def pydantic_ai(memory: Memory) -> AsyncIterator[Turn]:
    from pydantic_ai import Agent as PydanticAgent
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from jiyi.agents.pydantic_ai import JiyiMemory

    asked: list[Any] = []

    def answer(messages: Any, _: Any) -> ModelResponse:
        asked.append([[type(part).__name__, part.content] for message in messages for part in message.parts])
        return ModelResponse(parts=[TextPart("OK.")])

    agent = PydanticAgent(FunctionModel(answer), capabilities=[JiyiMemory(memory, tools=False, **MEI)])
    history: list[Any] = []

    async def turn(said: str) -> list[Any]:
        done = await agent.run(said, message_history=history)
        history[:] = done.all_messages()
        return list(asked[-1])

    yield turn


PATHS = (plain_python, openai_client, openai_responses, openai_agents_sdk, langchain, autogen, pydantic_ai)


@pytest.mark.parametrize("framework", PATHS, ids=lambda framework: framework.__name__)
async def test_the_prefix_of_successive_turns_is_the_same(framework: Any, path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(512)) as memory:
        facts = ("I'm allergic to peanuts.", "我住在杭州。", "I like green tea.")
        await memory.add([{"role": "user", "content": fact} for fact in facts], user_id="mei", session_id="earlier")
        async with framework(memory) as turn:
            requests = [await turn(said) for said in TURNS]
    for request, fact in zip(requests, ("peanuts", "杭州", "green tea"), strict=True):
        assert fact in json.dumps(request[-1], ensure_ascii=False), "the block is at the end"
        assert "jiyi-memory" not in json.dumps(request[:-1], ensure_ascii=False), "and nowhere else"
    for earlier, later in pairwise(requests):
        before = len(earlier) - 1  # all but the message with the block
        assert json.dumps(later[:before]) == json.dumps(earlier[:before])
        assert len(later) > len(earlier)


async def test_a_cache_mark_in_the_users_message_stays(path: Path) -> None:
    part = {"type": "text", "text": "我可以吃花生吗？", "cache_control": {"type": "ephemeral"}}
    async with Memory.open(path, embedder=WordEmbedder(512)) as memory:
        await memory.add("我对花生过敏", user_id="mei")
        with ScriptedModel(["不可以。"]) as model:
            async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
                messages: Any = [{"role": "user", "content": [part]}]
                await remember(plain, memory, user_id="mei").chat.completions.create(model="m", messages=messages)
    [sent] = model.requests[0]["messages"]
    assert sent["content"][0] == part and "我对花生过敏" in sent["content"][1]["text"]
