"""Paths from a memory to a model, one for each integration, with the real packages. Each returns what a model is given
for a request of the user."""

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import openai
from agent_framework import Agent as FrameworkAgent
from agent_framework import BaseChatClient, ChatResponse
from agent_framework import Message as ChatMessage
from agents.run_config import CallModelData, ModelInputData
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from llama_index.core.base.llms.types import ChatMessage as LlamaMessage
from mcp import Client
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from jiyi import Memory
from jiyi.agents import AgentWithMemory, openai_agents, recall
from jiyi.agents.agent_framework import JiyiProvider
from jiyi.agents.agno import JiyiLearningStore
from jiyi.agents.autogen import JiyiMemory, MemoryContext
from jiyi.agents.google_adk import JiyiMemoryService
from jiyi.agents.langchain import langchain_tools
from jiyi.agents.langchain_middleware import JiyiMiddleware
from jiyi.agents.llama_index import JiyiMemoryBlock
from jiyi.agents.mcp.server import make_server
from jiyi.agents.openai import remember
from jiyi.agents.pydantic_ai import JiyiMemory as PydanticMemory
from jiyi.agents.tools import MemoryTools
from jiyi.compat.mem0.api import Everyone, Mem0
from jiyi.testing import ScriptedModel

from .delivery import USER, DeliveryPath

SAM: Any = {"user_id": USER}
PATHS: dict[str, DeliveryPath] = {}
Answer = Callable[[Memory, str], Awaitable[str]]


class NotAnswered(Exception):
    """The model of a path does not answer."""


def path_of(name: str) -> Callable[[Answer], Answer]:
    """Register a path that takes one request."""

    def register(answer: Answer) -> Answer:
        async def path(memory: Memory, requests: Sequence[str]) -> list[str]:
            return [await answer(memory, request) for request in requests]

        PATHS[name] = path
        return answer

    return register


@path_of("recall")
async def by_recall(memory: Memory, request: str) -> str:
    return (await recall(memory, [{"role": "user", "content": request}], **SAM)).block


@path_of("wide context")
async def by_wide_context(memory: Memory, request: str) -> str:
    return await memory.context(request, depth="wide", **SAM)


@path_of("search tool")
async def by_tool(memory: Memory, request: str) -> str:
    return (await MemoryTools(memory, **SAM).call("search_memories", {"query": request})).text


@path_of("remember(): chat")
async def by_client(memory: Memory, request: str) -> str:
    with ScriptedModel(["OK."]) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            client = remember(plain, memory, observe=False, **SAM)
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": request}])
    return json.dumps(model.requests, ensure_ascii=False)


@path_of("remember(): responses")
async def by_responses(memory: Memory, request: str) -> str:
    with ScriptedModel(["OK."]) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            await remember(plain, memory, observe=False, **SAM).responses.create(model="m", input=request)
    return str(model.requests[0]["input"])


@path_of("AutoGen context")
async def by_context(memory: Memory, request: str) -> str:
    context = MemoryContext(memory, observe=False, **SAM)
    await context.add_message(UserMessage(content=request, source="user"))
    return str((await context.get_messages())[-1].content)


@path_of("AutoGen memory")
async def by_memory(memory: Memory, request: str) -> str:
    context = UnboundedChatCompletionContext()
    await context.add_message(UserMessage(content=request, source="user"))
    await JiyiMemory(memory, **SAM).update_context(context)
    return str((await context.get_messages())[-1].content)


@path_of("OpenAI Agents")
async def by_filter(memory: Memory, request: str) -> str:
    given = ModelInputData(input=[{"role": "user", "content": request}], instructions="Be kind.")
    data: Any = CallModelData(model_data=given, agent=None, context=None)  # type: ignore[arg-type]
    shown: Any = (await openai_agents.recall(memory, **SAM)(data)).input
    return "\n".join(str(item["content"]) for item in shown)


@path_of("LangChain tool")
async def by_langchain(memory: Memory, request: str) -> str:
    [search, *_] = langchain_tools(memory, **SAM)
    return str(await search.ainvoke({"query": request}))


@path_of("LangChain middleware")
async def by_middleware(memory: Memory, request: str) -> str:
    given: list[str] = []

    class Scripted(GenericFakeChatModel):
        def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
            given.append(messages[-1].text)
            return super()._generate(messages, *args, **options)

    middleware = JiyiMiddleware(memory, tools=False, observe=False, **SAM)
    agent = create_agent(Scripted(messages=iter([AIMessage("OK.")])), middleware=[middleware])
    await agent.ainvoke({"messages": [("user", request)]})
    return given[0]


@path_of("Agent Framework")
async def by_agent_framework(memory: Memory, request: str) -> str:
    given: list[str] = []

    class Scripted(BaseChatClient):  # type: ignore[misc]
        def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
            async def answer() -> ChatResponse:
                given.append("\n".join([str(options.get("instructions")), *(message.text for message in messages)]))
                return ChatResponse(messages=[ChatMessage(role="assistant", contents=["OK."])])

            return answer()

    provider = JiyiProvider(memory, tools=False, observe=False, **SAM)
    await FrameworkAgent(Scripted(), "Be kind.", context_providers=[provider]).run(request)
    return given[0]


@path_of("Anthropic tools")
async def by_anthropic(memory: Memory, request: str) -> str:
    call = {"type": "tool_use", "id": "1", "name": "search_memories", "input": {"query": request}}
    return str((await MemoryTools(memory, **SAM).answer_anthropic([call]))[0]["content"])


@path_of("MCP")
async def by_mcp(memory: Memory, request: str) -> str:
    async with Client(make_server(memory, **SAM)) as client:
        found = await client.call_tool("search_memories", {"query": request})
        return "\n".join(part.text for part in found.content if part.type == "text")


@path_of("agent in plain Python")
async def by_agent(memory: Memory, request: str) -> str:
    given: list[Any] = []

    def chat(messages: Any) -> str:
        given.extend(messages)
        raise NotAnswered  # so that the turn is not stored

    with suppress(NotAnswered):
        await AgentWithMemory(memory, chat, **SAM).run(request)
    return "\n".join(str(message["content"]) for message in given)


@path_of("Google ADK")
async def by_adk(memory: Memory, request: str) -> str:
    found = await JiyiMemoryService(memory).search_memory(app_name="app", user_id=USER, query=request)
    return "\n".join(entry.content.parts[0].text for entry in found.memories)


@path_of("Pydantic AI")
async def by_pydantic_ai(memory: Memory, request: str) -> str:
    given: list[str] = []

    async def answer(messages: Any, _: Any) -> ModelResponse:
        given.append("\n".join(str(part.content) for part in messages[-1].parts))
        return ModelResponse(parts=[TextPart("OK.")])

    capability = PydanticMemory(memory, tools=False, observe=False, **SAM)
    await Agent(FunctionModel(answer), capabilities=[capability]).run(request)
    return given[0]


@path_of("LlamaIndex")
async def by_llama_index(memory: Memory, request: str) -> str:
    return str(await JiyiMemoryBlock(memory, **SAM).aget([LlamaMessage(role="user", content=request)]))


@path_of("Agno")
async def by_agno(memory: Memory, request: str) -> str:
    return await JiyiLearningStore(memory).arecall(message=request, **SAM)


@path_of("mem0's search")
async def by_mem0(memory: Memory, request: str) -> str:
    api = Mem0(memory=memory, reach=Everyone(), erase=memory.delete_all)
    found = await api.search(request, {"user_id": USER})
    return "\n".join(one["memory"] for one in found)
