"""Forty messages of two to four facts, one of which is edited, archived, deleted or ended by a later message, as every
reader shows them: search, context, an agent's recall, the tool, mem0's API, REST, the files and the console."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from jiyi import Memory, MemoryItem
from jiyi.agents import recall
from jiyi.agents.tools import MemoryTools
from jiyi.compat.mem0 import AsyncMemory
from jiyi.server.serve import server_over
from support import NOW, rows_with
from told_messages import MESSAGES, Told

pytestmark = pytest.mark.usefixtures("as_installed")
RELEVANT = 0.6

# Messages of which the reader does not see that the later one ends a fact; of 14, mem0's search shows one of the two
# facts that the later message states, and not the one that is looked for. The list may only get shorter.
NOT_ENDED = frozenset({14, 18, 31, 38})


@dataclass(frozen=True)
class Line:
    """What a reader shows: a text and its score, if it has one."""

    text: str
    score: float = 1.0


@dataclass(frozen=True)
class Asked:
    """A question to a store, over all its surfaces."""

    memory: Memory
    question: str
    client: httpx.AsyncClient
    folder: Path


Reader = Callable[[Asked], Awaitable[Sequence[Line]]]


async def search(asked: Asked) -> Sequence[Line]:
    found = await asked.memory.search(asked.question, user_id="mei", limit=50)
    return [Line(f"{hit.content} {hit.summary} {hit.content_preview}", hit.relevance_score) for hit in found.hits]


async def context(asked: Asked) -> Sequence[Line]:
    return [Line(await asked.memory.context(asked.question, user_id="mei", max_tokens=4000))]


async def recalled(asked: Asked) -> Sequence[Line]:
    return [Line((await recall(asked.memory, asked.question, user_id="mei")).block)]


async def tool(asked: Asked) -> Sequence[Line]:
    shown = await MemoryTools(asked.memory, user_id="mei").call("search_memories", {"query": asked.question})
    results: Sequence[Mapping[str, Any]] = shown.data["results"]
    return [Line(str(one), float(one["relevance_score"])) for one in results]


async def mem0(asked: Asked) -> Sequence[Line]:
    found = await AsyncMemory(memory=asked.memory).search(asked.question, user_id="mei", limit=50)
    return [Line(str(one), one["score"]) for one in found["results"]]


async def rest(asked: Asked) -> Sequence[Line]:
    answer = await asked.client.post("/v1/search", params={"user_id": "mei"}, json={"query": asked.question})
    return [Line(str(one), one["relevance_score"]) for one in answer.json()["hits"]]


async def files(asked: Asked) -> Sequence[Line]:
    await asked.memory.workspace.sync(user_id="mei")
    return [Line(line) for path in asked.folder.rglob("*.md") for line in path.read_text(encoding="utf-8").splitlines()]


async def console(asked: Asked) -> Sequence[Line]:
    mei = {"user_id": "mei"}
    listed = await asked.client.get("/v1/memories", params=mei)
    profile = await asked.client.get("/v1/profile", params=mei)
    shown = await asked.client.post("/v1/recall", params=mei, json={"said": asked.question})
    assert listed.is_success and profile.is_success and shown.is_success
    return [Line(listed.text), Line(profile.text), Line(shown.json()["block"])]


READERS: Mapping[str, Reader] = {
    "search": search, "context": context, "recall": recalled, "tool": tool, "mem0": mem0, "rest": rest,
    "files": files, "console": console,
}  # fmt: skip


async def shown_by(memory: Memory, question: str, folder: Path) -> dict[str, Sequence[Line]]:
    transport = httpx.ASGITransport(app=server_over(memory, host="127.0.0.1").config.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        asked = Asked(memory, question, client, folder)
        return {name: await read(asked) for name, read in READERS.items()}


async def told(memory: Memory, text: str, days_ago: int) -> None:
    at = (NOW - timedelta(days=days_ago)).isoformat()
    message = {"role": "user", "content": text, "timestamp": at}
    await memory.add([message], user_id="mei", session_id=f"{days_ago} days ago")


async def fact(memory: Memory, word: str) -> MemoryItem:
    return next(one for one in (await memory.list(user_id="mei")).items if word in one.content)


def names(lines: Sequence[Line], word: str) -> bool:
    return any(word in line.text for line in lines)


async def edit(memory: Memory, one: Told) -> None:
    await memory.update((await fact(memory, one.word)).id, user_id="mei", content=one.new)


async def archive(memory: Memory, one: Told) -> None:
    await memory.update((await fact(memory, one.word)).id, user_id="mei", status="archived")


async def delete(memory: Memory, one: Told) -> None:
    await memory.delete((await fact(memory, one.word)).id, user_id="mei")


async def end(memory: Memory, one: Told) -> None:
    await told(memory, one.later, 5)


@pytest.mark.parametrize("act", [edit, archive, delete, end], ids=lambda act: act.__name__)
@pytest.mark.parametrize("number", range(len(MESSAGES)))
async def test_every_reader_shows_what_holds(
    path: Path, tmp_path: Path, number: int, act: Callable[[Memory, Told], Awaitable[None]]
) -> None:
    one = MESSAGES[number]
    options = {"workspace": tmp_path / "notes", "workspace_user": "mei"}
    async with Memory.open(path, **options) as memory:
        await told(memory, one.text, 40)
        await memory.workspace.sync(user_id="mei")
        layer = (await fact(memory, one.word)).layer
        await act(memory, one)
        shown = await shown_by(memory, one.question, tmp_path / "notes")
        wrong = problems(shown, one, act, in_files=layer == "semantic")
        others = await memory.search(one.other, user_id="mei", limit=3)
        if not any(one.other in hit.content for hit in others.hits):
            wrong.append("search: the other facts are not found")
        if act is delete:
            wrong += [f"{table} has the words" for table in rows_with(path, one.word)]
    if act is end and number in NOT_ENDED:
        assert wrong, "the fact ends now: remove its number from NOT_ENDED"
    else:
        assert wrong == [], "\n".join(wrong)


def problems(
    shown: Mapping[str, Sequence[Line]], one: Told, act: Callable[..., object], *, in_files: bool
) -> list[str]:
    """Return what the readers show wrongly."""
    old = {name: [line for line in lines if one.word in line.text] for name, lines in shown.items()}
    if act in (archive, delete):
        return [f"{name}: {lines}" for name, lines in old.items() if lines]
    wanted = one.new if act is edit else one.now
    missing = [name for name, lines in shown.items() if not names(lines, wanted) and (in_files or name != "files")]
    wrong = [f"{name}: without {wanted}" for name in missing]
    if act is edit:
        return wrong + [f"{name}: {lines}" for name, lines in old.items() if lines and one.word not in one.new]
    for name, lines in shown.items():
        first = next((line for line in lines if wanted in line.text or one.word in line.text), None)
        if first is not None and wanted not in first.text:
            wrong.append(f"{name}: {one.word} before {wanted}")
        over = [line for line in old[name] if line.score >= RELEVANT and line.text not in one.later]
        wrong += [f"{name}: {line.text} at {line.score}" for line in over if wanted not in line.text]
    return wrong
