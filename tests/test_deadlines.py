"""A server of memories that is gone, hangs or is slow: an agent waits for it once, at most as long as the settings say,
then it goes on without memories, uses the server again when it is back, and loses no turn."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import monotonic
from typing import Any

import openai
import pytest
from agents import Agent, RunConfig, Runner, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import AssistantMessage, UserMessage
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from llama_index.core.base.llms.types import ChatMessage as LlamaMessage

from jiyi import Memory
from jiyi.agents import AgentWithMemory, openai_agents
from jiyi.agents.autogen import JiyiMemory, MemoryContext
from jiyi.agents.langchain_middleware import JiyiMiddleware
from jiyi.agents.llama_index import JiyiMemoryBlock
from jiyi.agents.openai import remember
from jiyi.agents.openai_agents import JiyiSession
from jiyi.agents.tools import MemoryTools
from jiyi.areas import sessions
from jiyi.settings import load_settings
from jiyi.testing import ScriptedModel
from rest import Running, running

TIMEOUT_S = 1.0
SLOW_S = 5.0
MEI: Any = {"user_id": "mei", "session_id": "s"}
Turn = Callable[[str], Awaitable[Any]]


class Gateway:
    """A TCP port in front of a server: it can be `up`, `down` (refuses), `hung` (never answers) or `slow`."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._state = "up"
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._listener: asyncio.Server | None = None
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.become("up")

    def become(self, state: str) -> None:
        asyncio.run_coroutine_threadsafe(self._become(state), self._loop).result(10)

    async def _become(self, state: str) -> None:
        self._state = state
        for writer in list(self._open):
            writer.close()
        if state == "down" and self._listener is not None:
            self._listener.close()
            self._listener = None
        elif state != "down" and self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        state = self._state
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if state == "hung":
                await asyncio.sleep(3600)
            if state == "slow":
                await asyncio.sleep(SLOW_S)
            back, out = await asyncio.open_connection("127.0.0.1", self._server_port)
            await asyncio.gather(self._copy(reader, out), self._copy(back, writer))
        self._open.discard(writer)
        writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("deadlines") / "memory.db") as server:
        yield server


@contextlib.asynccontextmanager
async def agent_in_plain_python(memory: Memory) -> AsyncIterator[Turn]:
    agent = AgentWithMemory(memory, lambda _: "OK.", **MEI)

    async def turn(said: str) -> Any:
        reply = await agent.run(said)
        assert reply.text == "OK."
        return reply.memories

    yield turn


@contextlib.asynccontextmanager
async def openai_client(memory: Memory) -> AsyncIterator[Turn]:
    with ScriptedModel(["OK."] * 50) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            client = remember(plain, memory, **MEI)

            async def turn(said: str) -> Any:
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": said}])
                return json.dumps(model.requests[-1], ensure_ascii=False)

            yield turn


@contextlib.asynccontextmanager
async def openai_agents_sdk(memory: Memory) -> AsyncIterator[Turn]:
    set_tracing_disabled(disabled=True)
    session = JiyiSession("s", memory, user_id="mei")
    config = RunConfig(call_model_input_filter=openai_agents.recall(memory, user_id="mei", session_id="s"))
    with ScriptedModel(["OK."] * 50) as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="none") as plain:
            agent = Agent(name="a", model=OpenAIChatCompletionsModel("m", plain))

            async def turn(said: str) -> Any:
                done = await Runner.run(agent, said, session=session, run_config=config)
                assert done.final_output == "OK."
                return json.dumps(model.requests[-1], ensure_ascii=False)

            yield turn


@contextlib.asynccontextmanager
async def langchain(memory: Memory) -> AsyncIterator[Turn]:
    given: list[str] = []

    class Scripted(GenericFakeChatModel):
        def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
            given.append(" ".join(message.text for message in messages))
            return super()._generate(messages, *args, **options)

    middleware = JiyiMiddleware(memory, tools=False, **MEI)

    async def turn(said: str) -> Any:
        agent = create_agent(Scripted(messages=iter([AIMessage("OK.")])), middleware=[middleware])
        await agent.ainvoke({"messages": [("user", said)]})
        return given[-1]

    yield turn


@contextlib.asynccontextmanager
async def llama_index(memory: Memory) -> AsyncIterator[Turn]:
    block = JiyiMemoryBlock(memory=memory, **MEI)

    async def turn(said: str) -> Any:
        messages = [LlamaMessage(role="user", content=said)]
        text = await block.aget(messages)
        await block.aput([*messages, LlamaMessage(role="assistant", content="OK.")])
        return text

    yield turn


@contextlib.asynccontextmanager
async def autogen_context(memory: Memory) -> AsyncIterator[Turn]:
    context = MemoryContext(memory, **MEI)

    async def turn(said: str) -> Any:
        await context.add_message(UserMessage(content=said, source="user"))
        messages = await context.get_messages()
        await context.add_message(AssistantMessage(content="OK.", source="a"))
        return " ".join(str(message.content) for message in messages)

    yield turn


@contextlib.asynccontextmanager
async def autogen_memory(memory: Memory) -> AsyncIterator[Turn]:
    ours, context = JiyiMemory(memory, **MEI), UnboundedChatCompletionContext()

    async def turn(said: str) -> Any:
        await context.add_message(UserMessage(content=said, source="user"))
        await ours.update_context(context)
        await memory.observe(said, "OK.", **MEI)
        return " ".join(str(message.content) for message in await context.get_messages())

    yield turn


@contextlib.asynccontextmanager
async def search_tool(memory: Memory) -> AsyncIterator[Turn]:
    tools = MemoryTools(memory, **MEI)

    async def turn(said: str) -> Any:
        tools.turn()
        found = await tools.call("search_memories", {"query": said})
        await memory.observe(said, "OK.", **MEI)
        return found.text

    yield turn


PATHS = (
    agent_in_plain_python,
    openai_client,
    openai_agents_sdk,
    langchain,
    llama_index,
    autogen_context,
    autogen_memory,
    search_tool,
)


async def until_it_recalls(turn: Turn) -> None:
    for attempt in range(100):
        if "allergic" in str(await turn(f"May I eat peanuts, {attempt}?")):
            return
        await asyncio.sleep(0.2)
    pytest.fail("it does not recall")


@pytest.mark.parametrize("state", ["down", "hung", "slow"])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)
async def test_an_agent_waits_once_and_loses_nothing(
    path: Any, state: str, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "RETRY_PAUSES_S", (0.1,) * 200)
    monkeypatch.setattr(openai_agents, "RETRY_PAUSES_S", (0.1,) * 200)
    server.do(server.memory.delete_all("mei"))
    server.do(server.memory.add("I'm allergic to peanuts.", user_id="mei", session_id="earlier"))
    gateway = Gateway(server.port)
    settings = load_settings(tools={"recall_timeout_s": TIMEOUT_S, "calls_per_minute": 1000})
    async with Memory.open(gateway.url, settings=settings) as memory, path(memory) as turn:
        await until_it_recalls(turn)
        await memory.sessions.flush()
        gateway.become(state)
        began = monotonic()
        assert "allergic" not in str(await turn("May I eat peanuts on the second day?"))
        first = monotonic() - began
        began = monotonic()
        for day in ("third", "fourth", "fifth"):
            await turn(f"May I eat peanuts on the {day} day?")
        further = monotonic() - began
        assert first < SLOW_S - 1, "it waits for the deadline only"
        assert further < TIMEOUT_S, "and then not at all"
        gateway.become("up")
        await until_it_recalls(turn)
        assert not (await memory.sessions.flush()).failed
        if path is openai_agents_sdk:  # its items are on the way beside
            for _ in range(100):
                said = [message.text for message in server.do(server.memory.messages(user_id="mei")).items]
                if any("fifth" in text for text in said):
                    break
                await asyncio.sleep(0.1)
    said = [message.text for message in server.do(server.memory.messages(user_id="mei")).items]
    for day in ("second", "third", "fourth", "fifth"):
        assert said.count(f"May I eat peanuts on the {day} day?") == 1, said


async def test_a_client_that_closes_while_the_server_is_gone_says_what_is_lost(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sessions, "CLOSING_S", 0.2)
    monkeypatch.setattr(sessions, "MAX_WAITING", 3)
    gateway = Gateway(server.port)
    async with Memory.open(gateway.url) as memory:
        gateway.become("down")
        for at in range(5):
            await memory.observe(f"我今天吃了{at}个苹果", user_id="lin")
        counts = await memory.usage.observed()
        assert (counts.waiting, counts.failed) == (3, 2)
    assert caplog.text.count("an observed turn is dropped") == 2
    assert "3 observed turns are lost" in caplog.text
