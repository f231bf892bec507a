"""One of several facts in a message is edited, archived, ended or deleted: no reader shows the old words again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from jiyi import Memory, MemoryItem
from jiyi.agents import recall
from jiyi.agents.tools import MemoryTools
from jiyi.compat.mem0 import AsyncMemory
from jiyi.server.serve import server_over
from jiyi.testing import WordEmbedder
from support import Place, rows_with, said


@dataclass(frozen=True)
class Told:
    """A message with several facts: the word of one of them, what replaces it, and a question about it."""

    text: str
    word: str
    other: str  # a word of another fact
    new: str
    question: str


MESSAGES = (
    Told("I live in Rome. My dog is called Rex. I like Lazio.", "Rome", "Rex", "I live in Milan.", "Where do I live?"),
    Told(
        "I'm training for the Berlin marathon. My target time is 3:45. My sister Ada runs too.",
        "3:45",
        "Berlin",
        "My target time is 3:30.",
        "What is my target time?",
    ),
    Told(
        "My son Leo is allergic to walnuts. We moved to Graz in May. My wife is a nurse.",
        "walnuts",
        "Graz",
        "My son Leo is allergic to cashews.",
        "What is my son allergic to?",
    ),
    Told(
        "I drive a red Fiat. I drink oolong tea every morning. My boss is called Ines.",
        "oolong",
        "Fiat",
        "I drink rooibos tea every morning.",
        "Which tea do I drink?",
    ),
    Told("我住在苏州。我养了一只猫叫团子。我对虾过敏。", "团子", "苏州", "我养了一只猫叫元宝。", "我的猫叫什么？"),
    Told("我在大疆工作。我女儿叫朵朵。我每周三打羽毛球。", "大疆", "朵朵", "我在比亚迪工作。", "我在哪里工作？"),
    Told(
        "我的车牌是闽D8812。我妈下周二做手术。我不吃香菜。",
        "闽D8812",
        "香菜",
        "我的车牌是闽D6650。",
        "我的车牌是多少？",
    ),
    Told(
        "我打算九月去冰岛旅行。我喜欢喝乌龙茶。我家在十二楼。",
        "冰岛",
        "乌龙茶",
        "我打算九月去挪威旅行。",
        "我打算去哪里旅行？",
    ),
)


@pytest.fixture
async def memory(place: str | Path, tmp_path: Path) -> AsyncIterator[Memory]:
    options = {"workspace": tmp_path / "notes", "workspace_user": "mei"}
    async with Memory.open(place, embedder=WordEmbedder(512), **options) as memory:
        yield memory


# What a reader shows for a question.
Reader = Callable[[Memory, str], Awaitable[str]]


async def search(memory: Memory, question: str) -> str:
    return (await memory.search(question, user_id="mei", limit=50)).model_dump_json()


async def context(memory: Memory, question: str) -> str:
    return await memory.context(question, user_id="mei", max_tokens=4000)


async def recalled(memory: Memory, question: str) -> str:
    return (await recall(memory, question, user_id="mei")).block


async def tool(memory: Memory, question: str) -> str:
    return (await MemoryTools(memory, user_id="mei").call("search_memories", {"query": question})).text


async def mem0(memory: Memory, question: str) -> str:
    return str(await AsyncMemory(memory=memory).search(question, user_id="mei", limit=50))


async def rest(memory: Memory, question: str) -> str:
    transport = httpx.ASGITransport(app=server_over(memory, host="127.0.0.1").config.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post("/v1/search", params={"user_id": "mei"}, json={"query": question})
        assert answer.is_success, answer.text
        return answer.text


async def listing(memory: Memory, question: str) -> str:
    pages = [await memory.list(user_id="mei", memory_types=types) for types in (None, ["message"])]
    return "".join(page.model_dump_json() for page in pages)


READERS: Mapping[str, Reader] = {
    "search": search, "context": context, "recall": recalled, "tool": tool, "mem0": mem0, "rest": rest,
    "list": listing,
}  # fmt: skip


async def fact(memory: Memory, word: str) -> MemoryItem:
    return next(one for one in (await memory.list(user_id="mei")).items if word in one.content)


async def shown_by(memory: Memory, question: str, folder: Path) -> dict[str, str]:
    await memory.workspace.sync(user_id="mei")
    files = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.md"))
    return {"memory.md": files} | {name: await read(memory, question) for name, read in READERS.items()}


@pytest.mark.parametrize("told", MESSAGES, ids=[told.word for told in MESSAGES])
async def test_an_edit_reaches_every_reader(memory: Memory, tmp_path: Path, told: Told) -> None:
    await said(memory, told.text)
    edited = await fact(memory, told.word)
    await memory.update(edited.id, user_id="mei", content=told.new)
    shown = await shown_by(memory, told.question, tmp_path / "notes")
    assert [name for name, text in shown.items() if told.word in text] == []
    without = [name for name, text in shown.items() if told.new not in text]
    assert without == ([] if edited.layer == "semantic" else ["memory.md"])
    assert told.other in await search(memory, told.other)


@pytest.mark.parametrize("told", MESSAGES, ids=[told.word for told in MESSAGES])
async def test_what_is_archived_reaches_no_reader(memory: Memory, tmp_path: Path, told: Told) -> None:
    await said(memory, told.text)
    await memory.update((await fact(memory, told.word)).id, user_id="mei", status="archived")
    shown = await shown_by(memory, told.question, tmp_path / "notes")
    assert [name for name, text in shown.items() if told.word in text] == []
    assert told.other in await search(memory, told.other)


@pytest.mark.parametrize("told", MESSAGES, ids=[told.word for told in MESSAGES])
async def test_what_is_deleted_is_nowhere_left(memory: Memory, place: Place, tmp_path: Path, told: Told) -> None:
    await said(memory, told.text)
    await memory.workspace.sync(user_id="mei")
    gone = await memory.delete((await fact(memory, told.word)).id, user_id="mei")
    assert "without these words" in " ".join(gone.notes)
    [message] = await memory.messages(user_id="mei")
    assert "[deleted]" in message.text and told.other in message.text
    shown = await shown_by(memory, told.question, tmp_path / "notes")
    assert [name for name, text in shown.items() if told.word in text] == []
    kept = await fact(memory, told.other)
    assert told.other in await search(memory, told.other)
    [source] = await memory.sources(kept.id, user_id="mei")
    assert source.span is not None
    assert told.other in source.text[slice(*source.span)]
    assert rows_with(place, told.word) == {}


async def test_deleting_with_sources_keeps_the_other_facts_of_a_message(memory: Memory) -> None:
    await said(memory, "I live in Rome. My dog is called Rex.")
    await memory.delete((await fact(memory, "Rome")).id, user_id="mei", with_sources=True)
    assert (await fact(memory, "Rex")).content == "My dog is called Rex."


async def test_the_echo_of_an_assistant_is_deleted_too(memory: Memory, place: Place) -> None:
    talk = [
        {"role": "user", "content": "My target time is 3:45. I run with my sister Ada."},
        {"role": "assistant", "content": "A target time of 3:45 is ambitious! Have you booked a hotel in Berlin?"},
        {"role": "user", "content": "我女儿叫朵朵。我家在十二楼。"},
        {"role": "assistant", "content": "朵朵是你女儿，真好听的名字。十二楼风景一定不错。"},
    ]
    await memory.add(talk, user_id="mei", session_id="s")
    for word in ("3:45", "朵朵"):
        await memory.delete((await fact(memory, word)).id, user_id="mei")
        assert rows_with(place, word) == {}
    texts = [message.text for message in await memory.messages(user_id="mei")]
    assert any("Berlin" in text for text in texts) and any("风景" in text for text in texts)


async def test_a_history_that_is_sent_again_brings_nothing_back(memory: Memory, place: Place) -> None:
    talk = [
        {"id": "m1", "role": "user", "content": "I live in Rome. My dog is called Rex. I was late today, sorry."},
        {"id": "m2", "role": "assistant", "content": "Noted."},
    ]
    await memory.add(talk, user_id="mei", session_id="s")
    await memory.delete((await fact(memory, "Rome")).id, user_id="mei")
    before = await search(memory, "dog")
    await memory.add(talk, user_id="mei", session_id="s")
    assert rows_with(place, "Rome") == {}
    assert len(await search(memory, "dog")) == len(before)
