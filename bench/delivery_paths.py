"""Paths from a memory to a model, one for each integration, with the real packages. Each returns what a model is given
for a request of the user."""

import json
from collections.abc import Callable
from typing import Any

import openai
from agents.run_config import CallModelData, ModelInputData
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage
from llama_index.core.base.llms.types import ChatMessage
from mcp import Client
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from jiyi import Memory
from jiyi.agents import AgentWithMemory, openai_agents, recall
from jiyi.agents.agno import JiyiLearningStore
from jiyi.agents.autogen import JiyiMemory, MemoryContext
from jiyi.agents.google_adk import JiyiMemoryService
from jiyi.agents.langchain import langchain_tools
from jiyi.agents.llama_index import JiyiMemoryBlock
from jiyi.agents.mcp.server import make_server
from jiyi.agents.openai import remember
from jiyi.agents.pydantic_ai import JiyiMemory as PydanticMemory
from jiyi.agents.tools import MemoryTools
from jiyi.testing import ScriptedModel

from .delivery import USER, DeliveryPath

SAM: Any = {"user_id": USER}
PATHS: dict[str, DeliveryPath] = {}


def path_of(name: str) -> Callable[[DeliveryPath], DeliveryPath]:
    def register(path: DeliveryPath) -> DeliveryPath:
        PATHS[name] = path
        return path

    return register


@path_of("recall")
async def by_recall(memory: Memory, request: str) -> str:
    return (await recall(memory, [{"role": "user", "content": request}], **SAM)).block


@path_of("search tool")
async def by_tool(memory: Memory, request: str) -> str:
    return (await MemoryTools(memory, **SAM).call("search_memories", {"query": request})).text


@path_of("remember()")
async def by_client(memory: Memory, request: str) -> str:
    with ScriptedModel(["OK."]) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            client = remember(plain, memory, observe=False, **SAM)
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": request}])
    return json.dumps(model.requests, ensure_ascii=False)


@path_of("AutoGen context")
async def by_context(memory: Memory, request: str) -> str:
    context = MemoryContext(memory, observe=False, **SAM)
    await context.add_message(UserMessage(content=request, source="user"))
    return str((await context.get_messages())[0].content)


@path_of("AutoGen memory")
async def by_memory(memory: Memory, request: str) -> str:
    context = UnboundedChatCompletionContext()
    await context.add_message(UserMessage(content=request, source="user"))
    await JiyiMemory(memory, **SAM).update_context(context)
    return str((await context.get_messages())[0].content)


@path_of("OpenAI Agents")
async def by_filter(memory: Memory, request: str) -> str:
    given = ModelInputData(input=[{"role": "user", "content": request}], instructions="Be kind.")
    data: Any = CallModelData(model_data=given, agent=None, context=None)  # type: ignore[arg-type]
    return str((await openai_agents.recall(memory, **SAM)(data)).instructions)


@path_of("LangChain tool")
async def by_langchain(memory: Memory, request: str) -> str:
    [search, *_] = langchain_tools(memory, **SAM)
    return str(await search.ainvoke({"query": request}))


@path_of("MCP")
async def by_mcp(memory: Memory, request: str) -> str:
    async with Client(make_server(memory, **SAM)) as client:
        return str((await client.call_tool("search_memories", {"query": request})).content)


@path_of("agent in plain Python")
async def by_agent(memory: Memory, request: str) -> str:
    return (await AgentWithMemory(memory, lambda _: "", **SAM).run(request)).memories


@path_of("Google ADK")
async def by_adk(memory: Memory, request: str) -> str:
    found = await JiyiMemoryService(memory).search_memory(app_name="app", user_id=USER, query=request)
    return "\n".join(entry.content.parts[0].text for entry in found.memories)


@path_of("Pydantic AI")
async def by_pydantic_ai(memory: Memory, request: str) -> str:
    given: list[str] = []

    async def answer(_: Any, info: Any) -> ModelResponse:
        given.append(str(info.instructions))
        return ModelResponse(parts=[TextPart("OK.")])

    capability = PydanticMemory(memory, tools=False, observe=False, **SAM)
    await Agent(FunctionModel(answer), capabilities=[capability]).run(request)
    return given[0]


@path_of("LlamaIndex")
async def by_llama_index(memory: Memory, request: str) -> str:
    return str(await JiyiMemoryBlock(memory, **SAM).aget([ChatMessage(role="user", content=request)]))


@path_of("Agno")
async def by_agno(memory: Memory, request: str) -> str:
    return await JiyiLearningStore(memory).arecall(message=request, **SAM)
