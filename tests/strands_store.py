"""Tests of the store for Strands Agents, run by `test_providers.py` in a process where the package can be imported."""

from __future__ import annotations

import runpy
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from strands import Agent
from strands.memory import MemoryManager
from strands.models import Model

import jiyi.sync
from jiyi import Memory
from jiyi.agents.strands import JiyiMemoryStore
from jiyi.testing import WordEmbedder

FACT = "I'm allergic to peanuts."
ASKED = "Book a table for us"


class Scripted(Model):
    """A model that calls a tool, then answers; it keeps the requests."""

    def __init__(self, tool: str, arguments: str) -> None:
        self.requests: list[tuple[str, list[str]]] = []
        self._call = tool, arguments

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, tool_specs: Any = None, *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.requests.append((str(messages), [tool["name"] for tool in tool_specs]))
        yield {"messageStart": {"role": "assistant"}}
        if len(self.requests) == 1:
            name, arguments = self._call
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": "1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            yield {"contentBlockDelta": {"delta": {"text": "Done."}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[jiyi.sync.Memory]:
    with jiyi.sync.Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(512)) as memory:
        memory.add([{"role": "user", "content": FACT}], user_id="mei", session_id="earlier")
        yield memory


def agent(model: Model, store: JiyiMemoryStore) -> Agent:
    manager = MemoryManager(stores=[store], add_tool_config=True)
    return Agent(model=model, system_prompt="Be kind.", memory_manager=manager, callback_handler=None)


def test_a_call_recalls_searches_and_stores_the_turn(memory: jiyi.sync.Memory) -> None:
    model = Scripted("search_memory", '{"query": "peanuts"}')
    reply = agent(model, JiyiMemoryStore(memory, user_id="mei", session_id="s1"))(ASKED)
    assert str(reply).strip() == "Done."
    (first, tools), (second, _) = model.requests
    assert "allergic to peanuts" in first and set(tools) == {"search_memory", "add_memory"}
    assert "toolResult" in second and "allergic to peanuts" in second.partition("toolResult")[2]
    memory.sessions.flush()
    said = [(one.content, one.session_id) for one in memory.list(user_id="mei", memory_types=["message"])]
    assert sorted(said) == sorted([(FACT, "earlier"), (ASKED, "s1"), ("Done.", "s1")])


def test_the_model_saves_and_another_user_sees_nothing(memory: jiyi.sync.Memory) -> None:
    model = Scripted("add_memory", '{"entries": ["likes green tea"]}')
    agent(model, JiyiMemoryStore(memory, user_id="mei", observe=False))(ASKED)
    assert "likes green tea" in {one.content for one in memory.list(user_id="mei")}
    assert memory.count(user_id="mei", memory_types=["message"]) == 1
    other = Scripted("search_memory", '{"query": "peanuts"}')
    agent(other, JiyiMemoryStore(memory, user_id="bo"))(ASKED)
    assert not any("allergic" in request for request, _ in other.requests)


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[1] / "examples" / "strands_store.py"
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path / "example.db")])
    runpy.run_path(str(example), run_name="__main__")
    assert "Book a table for us → Booked, without nuts." in capsys.readouterr().out


async def test_an_asynchronous_program(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "other.db", embedder=WordEmbedder(512)) as memory:
        await memory.add(FACT, user_id="mei")
        model = Scripted("search_memory", '{"query": "peanuts"}')
        helper = agent(model, JiyiMemoryStore(memory, user_id="mei", session_id="s1"))
        await helper.invoke_async(ASKED)
        await helper.memory_manager.flush()
        await memory.sessions.flush()
        assert "allergic to peanuts" in model.requests[0][0]
        assert await memory.count(user_id="mei", memory_types=["message"]) == 2
