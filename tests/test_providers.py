"""Providers for agent frameworks, run with the real packages and a scripted model or a double of the framework."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import jiyi.sync
from foreign_packages import fetched, run_pytest, strands
from jiyi import InvalidInput, Memory
from jiyi.testing import WordEmbedder
from support import stored

FACT = "I'm allergic to peanuts."
ASKED = "Book a table for us"


@pytest.fixture
async def memory(path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(path, embedder=WordEmbedder(512)) as memory:
        await memory.add([{"role": "user", "content": FACT}], user_id="mei", session_id="earlier")
        yield memory


async def kept(memory: Memory) -> list[tuple[str, str | None]]:
    """Messages that were stored after the fact, in order, with their sessions."""
    return [(item.content, item.session_id) for item in reversed(await stored(memory, memory_types=["message"]))][1:]


async def test_microsoft_agent_framework(memory: Memory) -> None:
    from agent_framework import Agent, BaseChatClient, ChatResponse
    from agent_framework import Message as ChatMessage

    from jiyi.agents.agent_framework import JiyiProvider

    asked: list[tuple[Any, dict[str, Any]]] = []

    class Scripted(BaseChatClient):  # type: ignore[misc]
        def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
            async def answer() -> ChatResponse:
                asked.append((messages, dict(options)))
                return ChatResponse(messages=[ChatMessage(role="assistant", contents=["Done."])])

            return answer()

    agent = Agent(Scripted(), "Be kind.", context_providers=[JiyiProvider(memory, user_id="mei")])
    session = agent.create_session()
    reply = await agent.run(ASKED, session=session)
    assert reply.text == "Done."
    [(messages, options)] = asked
    told = f"{options.get('instructions')} {[message.text for message in messages]}"
    assert "allergic to peanuts" in told
    assert "Be kind." in told
    assert "search_memories" in {tool.name for tool in options["tools"]}
    assert await kept(memory) == [(ASKED, session.session_id), ("Done.", session.session_id)]
    [search] = [tool for tool in options["tools"] if tool.name == "search_memories"]
    assert "peanuts" in (await search.invoke(arguments={"query": "peanuts"}))[0].text


async def test_langchain_middleware(memory: Memory, path: Path) -> None:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from jiyi.agents.langchain_middleware import JiyiMiddleware

    seen: list[Any] = []

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            seen.append([tool.name for tool in tools])
            return self

        def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
            seen.append(messages)
            return super()._generate(messages, *args, **options)

    def answers() -> Any:
        call = {"name": "search_memories", "args": {"query": "peanuts"}, "id": "1"}
        return Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("Done.")]))

    middleware = JiyiMiddleware(memory, user_id="mei", session_id="s1")
    agent = create_agent(answers(), system_prompt="Be kind.", middleware=[middleware])
    result = await agent.ainvoke({"messages": [("user", ASKED)]})
    assert [type(message).__name__ for message in result["messages"]] == [
        "HumanMessage", "AIMessage", "ToolMessage", "AIMessage"
    ]  # fmt: skip
    given = [messages for messages in seen if not isinstance(messages[0], str)]
    assert all(messages[0].text.startswith("Be kind.") for messages in given)
    assert all("allergic to peanuts" in messages[1].text for messages in given)
    assert all([message.type for message in messages].count("system") == 1 for messages in given)
    assert "search_memories" in seen[0]
    assert "allergic to peanuts" in result["messages"][2].text
    assert await kept(memory) == [(ASKED, "s1"), ("Done.", "s1")]
    with pytest.raises(InvalidInput, match="asynchronous"):
        create_agent(answers(), middleware=[middleware]).invoke({"messages": [("user", ASKED)]})


def test_langchain_middleware_in_a_synchronous_program(path: Path) -> None:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from jiyi.agents.langchain_middleware import JiyiMiddleware

    with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
        model = GenericFakeChatModel(messages=iter([AIMessage("Noted.")]))
        agent = create_agent(model, middleware=[JiyiMiddleware(memory, user_id="mei", tools=False)])
        agent.invoke({"messages": [("user", FACT)]})
        memory.sessions.flush()
        assert memory.count(user_id="mei", memory_types=["message"]) == 2


@pytest.mark.filterwarnings("ignore")
async def test_google_adk(memory: Memory) -> None:
    from google.adk.agents import LlmAgent
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.adk.tools import preload_memory
    from google.genai import types

    from jiyi.agents.google_adk import JiyiMemoryService

    requests: list[Any] = []

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            requests.append(llm_request)
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Done.")]))

    service, sessions = JiyiMemoryService(memory), InMemorySessionService()
    agent = LlmAgent(name="helper", model=Scripted(model="scripted"), tools=[preload_memory])
    runner = Runner(agent=agent, app_name="app", session_service=sessions, memory_service=service)
    session = await sessions.create_session(app_name="app", user_id="mei")
    asked = types.Content(role="user", parts=[types.Part(text=ASKED)])
    async for _ in runner.run_async(user_id="mei", session_id=session.id, new_message=asked):
        pass
    [request] = requests
    assert "allergic to peanuts" in str(request.contents)
    whole = await sessions.get_session(app_name="app", user_id="mei", session_id=session.id)
    assert whole is not None
    for _ in range(2):  # adding it again stores nothing new
        await service.add_session_to_memory(whole)
    assert await kept(memory) == [(ASKED, session.id), ("Done.", session.id)]
    entry = MemoryEntry(content=types.Content(parts=[types.Part(text="likes green tea")]))
    await service.add_memory(app_name="app", user_id="mei", memories=[entry])
    found = await service.search_memory(app_name="app", user_id="mei", query="green tea")
    assert "likes green tea" in {one.content.parts[0].text for one in found.memories}
    assert (await service.search_memory(app_name="app", user_id="bo", query="green tea")).memories == []


async def test_pydantic_ai(memory: Memory) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from jiyi.agents.pydantic_ai import JiyiMemory

    seen: list[Any] = []

    async def answer(messages: Any, info: Any) -> ModelResponse:
        seen.append((messages, info))
        if len(seen) == 1:
            return ModelResponse(parts=[ToolCallPart("search_memories", {"query": "peanuts"})])
        return ModelResponse(parts=[TextPart("Done.")])

    capability = JiyiMemory(memory, user_id="mei", session_id="s1")
    agent = Agent(FunctionModel(answer), instructions="Be kind.", capabilities=[capability])
    result = await agent.run(ASKED)
    assert result.output == "Done."
    for messages, info in seen:
        assert "allergic to peanuts" in str(messages[0].parts)
        assert "search_memories" in {tool.name for tool in info.function_tools}
    assert "allergic to peanuts" in str(seen[1][0][-1].parts)
    assert await kept(memory) == [(ASKED, "s1"), ("Done.", "s1")]
    await agent.run("帮我订个餐厅")
    assert "长期记忆" in str(seen[-1][1].instructions) and "long-term memories" in str(seen[0][1].instructions)


@pytest.mark.filterwarnings("ignore")
async def test_llama_index(memory: Memory) -> None:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import Memory as ChatMemory

    from jiyi.agents.llama_index import JiyiMemoryBlock

    block = JiyiMemoryBlock(memory, user_id="mei")
    chat = ChatMemory.from_defaults(
        session_id="s1",
        token_limit=60,
        chat_history_token_ratio=0.5,
        token_flush_size=20,
        memory_blocks=[block],
        tokenizer_fn=str.split,
    )
    await chat.aput(ChatMessage(role="user", content=ASKED))
    given = await chat.aget()
    assert "allergic to peanuts" in str([message.content for message in given])
    assert await kept(memory) == [(ASKED, "s1")], "in an ordinary chat, too"
    await chat.aput(ChatMessage(role="assistant", content="Done."))
    await chat.aput(ChatMessage(role="user", content="谢谢，我住在杭州"))
    await chat.aget()
    assert await kept(memory) == [(ASKED, "s1"), ("Done.", "s1"), ("谢谢，我住在杭州", "s1")]
    for at in range(8):  # until the first ones leave the short-term memory
        await chat.aput(ChatMessage(role="assistant", content=f"Reply number {at} with several words in it"))
        await chat.aput(ChatMessage(role="user", content=f"Question number {at} with several words in it"))
    assert (await kept(memory)).count((ASKED, "s1")) == 1
    await chat.sql_store._async_engine.dispose()


def test_strands() -> None:
    """Its requirements differ from ours, so its tests run in a process of their own."""
    here = Path(__file__).parent
    run_pytest("--noconftest", here / "strands_store.py", cwd=here.parent, before=fetched(strands))


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_agno(memory: Memory, path: Path, asynchronous: bool) -> None:
    from agno.agent import Agent
    from agno.db.in_memory import InMemoryDb
    from agno.learn import LearningMachine
    from agno.models.base import Model
    from agno.models.response import ModelResponse

    from jiyi.agents.agno import JiyiLearningStore

    requests: list[tuple[Any, Any]] = []

    class Scripted(Model):
        def invoke(self, *, messages: Any, tools: Any = None, **_: Any) -> ModelResponse:
            requests.append((list(messages), tools))
            function = {"name": "search_memories", "arguments": '{"query": "peanuts"}'}
            if len(requests) == 1:
                return ModelResponse(tool_calls=[{"id": "1", "type": "function", "function": function}])
            return ModelResponse(role="assistant", content="Done.")

        async def ainvoke(self, **given: Any) -> ModelResponse:
            return self.invoke(**given)

        def invoke_stream(self, **given: Any) -> Any:
            raise NotImplementedError

        ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke_stream

    async def run(store: JiyiLearningStore, user_id: str) -> Any:
        learning = LearningMachine(custom_stores={"jiyi": store})
        model = Scripted(id="scripted")
        agent = Agent(model=model, db=InMemoryDb(), instructions="Be kind.", learning=learning, telemetry=False)
        given = {"user_id": user_id, "session_id": "s1"}
        return await (agent.arun(ASKED, **given) if asynchronous else asyncio.to_thread(agent.run, ASKED, **given))

    with jiyi.sync.Memory.open(path, embedder=WordEmbedder(512)) as own:
        reply = await run(JiyiLearningStore(memory if asynchronous else own), "mei")
        own.sessions.flush()
        assert reply.content == "Done."
        system = requests[0][0][0].content
        assert "Be kind." in system and "allergic to peanuts" in system and "`save_memory`" in system
        assert "search_memories" in {tool["function"]["name"] for tool in requests[0][1]}
        assert "allergic to peanuts" in requests[1][0][-1].content  # the result of the tool
        assert await kept(memory) == [(ASKED, "s1")]
        requests.clear()
        other = JiyiLearningStore(memory if asynchronous else own, tools=False, observe=False)
        requests.append(([], None))  # no tool call
        await run(other, "bo")
        assert "peanuts" not in str(requests[1:]) and not requests[1][1]
