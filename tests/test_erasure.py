"""A deleted user does not return: work that began before the deletion saves nothing, and says so."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import jiyi.client
from engine_proxy import Proxy
from extractors import SpelledOut
from jiyi import Memory, NotFound, UserErased
from jiyi.embed import Vectors
from jiyi.ids import erased
from jiyi.llm import LLMRequest, Reply
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from jiyi.transfer.schema_change import migrate_store
from jiyi.transfer.spool import forget_uploads
from rest import Running, running
from support import NOW, Place, rows_with, stored

VERBATIM = load_settings(extraction={"enabled": False})


class GatedEmbedder(WordEmbedder):
    """An embedder that waits until it is let go; what is embedded stands for any work that takes long."""

    def __init__(self) -> None:
        super().__init__(64)
        self.reached = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.reached.set()
        await self.gate.wait()
        return await super().embed_documents(texts)

    def close(self) -> None:
        self.reached.clear()
        self.gate.clear()


@pytest.fixture
def embedder() -> GatedEmbedder:
    return GatedEmbedder()


@pytest.fixture
async def slow(place: Place, embedder: GatedEmbedder) -> AsyncIterator[Memory]:
    """A memory whose work can be stopped in the middle."""
    async with Memory.open(place, settings=VERBATIM, embedder=embedder) as memory:
        yield memory


@pytest.fixture
async def other(place: Place) -> AsyncIterator[Memory]:
    """The same store in another process, as far as the first one can see."""
    async with Memory.open(place, settings=VERBATIM, embedder=WordEmbedder(64)) as memory:
        yield memory


async def erased_meanwhile(work: Awaitable[Any], embedder: GatedEmbedder, other: Memory, user: str = "mei") -> Any:
    """Begin some work, delete the user elsewhere, and return how it ends."""
    embedder.close()
    task = asyncio.ensure_future(work)
    await asyncio.wait_for(embedder.reached.wait(), 30)
    await other.delete_all(user)
    embedder.gate.set()
    return await asyncio.wait_for(task, 30)


# -- add --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["I like tea", [{"role": "user", "content": "I like tea"}]])
async def test_an_add_that_began_before_saves_nothing(
    slow: Memory, other: Memory, place: Place, embedder: GatedEmbedder, what: Any
) -> None:
    await slow.add("I live in Rome", user_id="mei")
    with pytest.raises(UserErased, match="'mei'"):
        await erased_meanwhile(slow.add(what, user_id="mei", idempotency_key="k"), embedder, other)
    assert rows_with(place, "mei", "tea") == {}
    again = await slow.add(what, user_id="mei", idempotency_key="k")
    assert len(again.memories) == 1 and len(await stored(other)) == 1, "what is new is kept"


async def test_others_and_single_memories_are_not_the_user(
    slow: Memory, other: Memory, embedder: GatedEmbedder
) -> None:
    made = (await slow.add("I live in Rome", user_id="mei")).memories[0]
    await other.add("I live in Rome", user_id="bo")
    embedder.close()
    task = asyncio.create_task(slow.add("I like tea", user_id="mei"))
    await embedder.reached.wait()
    await other.delete(made.id, user_id="mei")
    await other.delete_all("bo")
    await other.delete_all("mei2")
    embedder.gate.set()
    assert (await task).created == 1


async def test_an_epoch_is_kept_by_who_queues_writes(memory: Memory) -> None:
    epoch = await memory.jobs.epoch(user_id="mei")
    await memory.add("I like tea", user_id="mei", epoch=epoch)
    assert await memory.jobs.epoch(user_id="mei") == epoch
    await memory.delete_all("mei")
    assert await memory.jobs.epoch(user_id="bo") == await memory.jobs.epoch(user_id="nobody")
    with pytest.raises(UserErased):
        await memory.add("I like coffee", user_id="mei", epoch=epoch)
    second = await memory.jobs.epoch(user_id="mei")
    await memory.add("I like coffee", user_id="mei", epoch=second)
    await memory.delete_all("mei")
    assert len({epoch, second, await memory.jobs.epoch(user_id="mei")}) == 3
    for old in (epoch, second, "nonsense"):
        with pytest.raises(UserErased):
            await memory.add("I like coffee", user_id="mei", epoch=old)
    assert await memory.users() == []


async def test_a_user_whose_name_looks_like_a_mark_moves_nobodys_epoch(memory: Memory) -> None:
    before = await memory.jobs.epoch(user_id="mei")
    await memory.delete_all("mei")
    epoch = await memory.jobs.epoch(user_id="mei")
    await memory.add("I like tea", user_id=erased("mei"))
    assert await memory.jobs.epoch(user_id="mei") == epoch
    await memory.delete_all(erased("mei"))
    assert await memory.jobs.epoch(user_id="mei") == epoch != before


async def test_a_deletion_by_an_earlier_version_counts_as_none(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mark in the change feed has no id; what began before it had no epoch either."""
    before = await memory.jobs.epoch(user_id="mei")
    with monkeypatch.context() as earlier:
        earlier.setattr("jiyi.store.repositories.deletions.new_id", str)
        await memory.delete_all("mei")
    assert await memory.jobs.epoch(user_id="mei") == before
    await memory.delete_all("mei")
    assert await memory.jobs.epoch(user_id="mei") != before


# -- queues and jobs --------------------------------------------------------------------------------------------------


async def test_observed_turns_that_wait_are_not_stored(
    slow: Memory, other: Memory, place: Place, embedder: GatedEmbedder
) -> None:
    embedder.close()
    for number in range(5):
        await slow.observe(f"turn {number}", "yes", user_id="mei", session_id="s")
    await embedder.reached.wait()
    await other.delete_all("mei")
    await slow.observe("I am back", user_id="mei", session_id="s")
    embedder.gate.set()
    assert (await slow.sessions.flush()).failed == 5, "it is counted"
    assert [one.content for one in await stored(other)] == ["I am back"]
    assert rows_with(place, "turn") == {}


async def test_a_worker_saves_nothing_for_a_deleted_user(place: Place, other: Memory) -> None:
    model = SpelledOut(gate=asyncio.Event())
    settings = load_settings(jobs={"in_process": True, "lease_s": 5})
    async with Memory.open(place, settings=settings, embedder=WordEmbedder(64), extractor=model) as memory:
        talk = [{"role": "user", "content": "Mei home = Rome"}]
        adding = asyncio.create_task(memory.add(talk, user_id="mei", session_id="s"))
        while not model.seen:
            await asyncio.sleep(0.01)
        await other.delete_all("mei")
        back = await other.add("I am back", user_id="mei")
        model.gate.set()  # type: ignore[union-attr]
        with pytest.raises(UserErased):
            await adding
        assert await memory.jobs.work() == 0
    assert [one.id for one in await stored(other)] == [back.memories[0].id]
    with pytest.raises(NotFound):
        await other.jobs.wait("0" * 26, user_id="mei")


class GatedLLM:
    """A language model that answers when it is let go."""

    id = "testing:gated"

    def __init__(self) -> None:
        self.requests: list[LLMRequest] = []
        self.gate = asyncio.Event()

    async def reply(self, request: LLMRequest) -> Reply:
        self.requests.append(request)
        await self.gate.wait()
        return Reply(text=json.dumps({request.task: []}), cut_off=False, usage=None)

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_model_is_asked_and_counted_for_nobody_who_was_deleted(place: Place, other: Memory) -> None:
    model = GatedLLM()
    settings = load_settings(jobs={"in_process": True, "concurrency": 1})
    async with Memory.open(place, settings=settings, embedder=WordEmbedder(64), llm=model) as memory:
        for number in range(3):
            talk = [{"role": "user", "content": f"I moved to Rome {number} years ago"}]
            await memory.add(talk, user_id="mei", session_id=f"s{number}", wait=False)
        while not model.requests:
            await asyncio.sleep(0.01)
        asked = len(model.requests)
        await other.delete_all("mei")
        model.gate.set()
        await memory.jobs.work()
        assert len(model.requests) == asked
    assert rows_with(place, "mei") == {}


# -- imports ----------------------------------------------------------------------------------------------------------


def chat(folder: Path, number: int = 1000) -> Path:
    said = ({"role": "user", "content": f"tea {at}", "timestamp": 1_700_000_000 + at} for at in range(number))
    (folder / "chat.jsonl").write_text("".join(json.dumps(one) + "\n" for one in said))
    return folder / "chat.jsonl"


def mem0(folder: Path, *users: str) -> Path:
    found = [{"id": f"{user}{at}", "memory": f"tea {at}", "user_id": user} for user in users for at in range(300)]
    (folder / "mem0.json").write_text(json.dumps(found))
    return folder / "mem0.json"


async def test_an_import_ends_when_its_user_is_deleted(
    slow: Memory, other: Memory, place: Place, embedder: GatedEmbedder, tmp_path: Path
) -> None:
    for work in (
        slow.transfer.import_chats(chat(tmp_path), user_id="mei"),
        slow.transfer.import_memories(mem0(tmp_path, "bo"), user_id="mei"),
        slow.transfer.import_memories(mem0(tmp_path, "mei")),
    ):
        with pytest.raises(UserErased):
            await erased_meanwhile(work, embedder, other)
        assert rows_with(place, "mei", "tea") == {}
    assert (await slow.transfer.import_chats(chat(tmp_path, 3), user_id="mei")).new == 3, "what is new is kept"


async def test_an_import_of_several_users_knows_who_was_deleted_before_their_turn(
    slow: Memory, other: Memory, embedder: GatedEmbedder, tmp_path: Path
) -> None:
    with pytest.raises(UserErased, match="'mei'"):
        await erased_meanwhile(slow.transfer.import_memories(mem0(tmp_path, "bo", "mei")), embedder, other)
    assert await other.users() == ["bo"]
    await slow.transfer.import_memories(mem0(tmp_path, "bo", "mei"))
    assert await other.users() == ["bo", "mei"]


@pytest.mark.parametrize("whose", [None, "mei"])
async def test_a_restored_export_ends_when_its_user_is_deleted(
    memory: Memory, other: Memory, place: Place, tmp_path: Path, whose: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.transfer.imports.BATCH", 5)
    for number in range(12):
        await memory.add([{"role": "user", "content": f"tea {number}"}], user_id="mei")
    await memory.transfer.export(tmp_path / "all.jsonl")
    await memory.delete_all("mei")

    class Stop(Exception):
        pass

    def progress(what: str, done: int, _: int) -> None:
        if what == "importing" and done >= 10:
            raise Stop

    with pytest.raises(Stop):
        await memory.transfer.import_memories(tmp_path / "all.jsonl", user_id=whose, progress=progress)
    assert rows_with(place, "tea")
    epoch = await memory.jobs.epoch(user_id="mei")
    await other.delete_all("mei")
    with pytest.raises(UserErased):
        await memory.transfer.import_memories(tmp_path / "all.jsonl", user_id="mei", epoch=epoch)
    assert rows_with(place, "mei", "tea") == {}
    await memory.transfer.import_memories(tmp_path / "all.jsonl", user_id=whose)
    assert len(await stored(other)) == 12


# -- files, compression, recalls --------------------------------------------------------------------------------------


@pytest.fixture
async def notes(path: Path, tmp_path: Path, embedder: GatedEmbedder) -> AsyncIterator[tuple[Memory, Path]]:
    folder = tmp_path / "notes"
    async with Memory.open(path, settings=VERBATIM, embedder=embedder, workspace=folder) as memory:
        await memory.add("has a cat", user_id="mei")
        await memory.workspace.sync(user_id="mei")
        yield memory, folder / "mei/context/memory.md"


async def test_a_sync_of_files_that_began_before_saves_nothing(
    notes: tuple[Memory, Path], path: Path, embedder: GatedEmbedder
) -> None:
    memory, file = notes
    file.write_text(file.read_text("utf-8") + "- has a dog\n", "utf-8")
    async with Memory.open(path, settings=VERBATIM, embedder=WordEmbedder(64)) as other:
        with pytest.raises(UserErased):
            await erased_meanwhile(memory.workspace.sync(user_id="mei"), embedder, other)
        assert rows_with(path, "mei") == {}
        assert "has a cat" not in file.read_text("utf-8"), "what was stored has left the file"
        await memory.add("has a bird", user_id="mei")
        await memory.workspace.sync(user_id="mei")
        assert "has a bird" in file.read_text("utf-8")
    assert not (await memory.maintenance.verify()).drift


async def test_lines_that_were_not_read_yet_are_deleted_too(notes: tuple[Memory, Path], path: Path) -> None:
    memory, file = notes
    file.write_text(file.read_text("utf-8") + "- has a dog\n", "utf-8")
    await memory.delete_all("mei")
    assert await stored(memory) == [] and "has a" not in file.read_text("utf-8")


async def test_compression_that_began_before_saves_nothing(
    place: Place, other: Memory, embedder: GatedEmbedder
) -> None:
    settings = load_settings(extraction={"enabled": False}, maintenance={"compress_after_days": 0})
    async with Memory.open(place, settings=settings, embedder=embedder) as memory:
        for day in range(1, 5):
            told = {"content": f"Saw heron {day} on the hill.", "occurred_at": NOW - timedelta(days=day)}
            await memory.add(told, user_id="mei", memory_type="log")
        plan = await memory.maintenance.compress_plan(user_id="mei")
        assert plan.bundles
        with pytest.raises(UserErased):
            await erased_meanwhile(memory.maintenance.compress(user_id="mei", plan=plan), embedder, other)
        assert rows_with(place, "mei", "heron") == {}
        done = await memory.maintenance.compress(user_id="mei", plan=plan)
        assert done.made == 0 and done.left and rows_with(place, "mei", "heron") == {}


async def test_no_query_of_a_deleted_user_is_written_later(slow: Memory, other: Memory, place: Place) -> None:
    await slow.add("has a heron", user_id="mei")
    await slow.search("where is the heron?", user_id="mei")
    await other.delete_all("mei")
    await slow._engine.accesses.flush()
    assert rows_with(place, "mei", "heron") == {}


async def test_the_epoch_moves_with_the_store(path: Path, tmp_path: Path, database: str) -> None:
    async with Memory.open(path, settings=VERBATIM, embedder=WordEmbedder(64)) as memory:
        await memory.add("has a heron", user_id="mei")
        old = await memory.jobs.epoch(user_id="mei")
        await memory.delete_all("mei")
        epoch = await memory.jobs.epoch(user_id="mei")
        await memory.transfer.backup(tmp_path / "backup.db")
    await migrate_store(path, database, settings=VERBATIM)
    for place in (database, tmp_path / "backup.db"):
        async with Memory.open(place, settings=VERBATIM, embedder=WordEmbedder(64)) as memory:
            assert await memory.jobs.epoch(user_id="mei") == epoch
            with pytest.raises(UserErased):
                await memory.add("has a heron", user_id="mei", epoch=old)


# -- uploads ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(place: Place, tmp_path: Path) -> Iterator[Running]:
    with running(place, server={"upload_dir": tmp_path / "spool"}) as server:
        yield server


def eventually(holds: Callable[[], Any]) -> None:
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.02)
    pytest.fail("it did not happen")


def spooled(folder: Path) -> list[str]:
    return [str(file) for file in folder.rglob("*") if file.is_file() and b"mei" in file.read_bytes()]


def test_an_upload_that_is_still_coming_in_is_not_taken(server: Running, tmp_path: Path) -> None:
    def body(then: Callable[[], Any]) -> Iterator[bytes]:
        yield b'{"role": "user", "content": "I am mei"}\n'
        then()
        yield b'{"role": "user", "content": "mei likes tea"}\n'

    params = {"user_id": "mei", "filename": "chat.jsonl"}

    def delete() -> None:
        eventually(lambda: spooled(tmp_path / "spool"))
        server.do(server.memory.delete_all("mei"))
        assert spooled(tmp_path / "spool") == [], "what has come in is gone"

    with server.client() as web:
        told = web.post("/v1/imports", params=params, content=body(delete))
        assert (told.status_code, told.json()["code"], told.json()["error"]) == (409, "user_erased", "UserErased")
        assert web.get("/v1/imports", params={"user_id": "mei"}).json()["items"] == []
        assert spooled(tmp_path / "spool") == []
        assert web.post("/v1/imports", params=params, content=body(lambda: None)).status_code == 202


def test_a_deletion_elsewhere_ends_an_upload(server: Running, place: Place, tmp_path: Path) -> None:
    """Another machine has the database, but not the folder of the uploads."""
    with server.client() as web:
        uploads = server.server._shared.uploads
        uploads._slots = asyncio.Semaphore(0)
        params = {"user_id": "mei", "filename": "chat.jsonl"}
        waiting = web.post("/v1/imports", params=params, content=chat(tmp_path).read_bytes())
        assert waiting.status_code == 202 and spooled(tmp_path / "spool")

        async def elsewhere() -> None:
            settings = load_settings(server={"upload_dir": tmp_path / "another"})
            async with Memory.open(place, settings=settings, embedder=WordEmbedder(64)) as other:
                await other.delete_all("mei")

        asyncio.run(elsewhere())
        server._loop.call_soon_threadsafe(uploads._slots.release)
        eventually(lambda: spooled(tmp_path / "spool") == [])
        assert web.get(waiting.headers["location"], params={"user_id": "mei"}).status_code == 404
        assert server.do(server.memory.users()) == []


def test_an_upload_right_after_the_deletion_stays(
    server: Running, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there before the deletion comes to the folder of the uploads."""
    params = {"user_id": "mei", "filename": "chat.jsonl"}
    began: list[httpx.Response] = []

    def sweep(*given: Any) -> int:
        with server.client() as web:
            began.append(web.post("/v1/imports", params=params, content=chat(tmp_path, 3).read_bytes()))
        return forget_uploads(*given)

    monkeypatch.setattr("jiyi.engine.forget_uploads", sweep)
    with server.client() as web:
        assert web.delete("/v1/memories", params={"user_id": "mei", "all": True}).status_code == 200
        where = began[0].headers["location"]
        eventually(lambda: web.get(where, params={"user_id": "mei"}).json()["state"] == "done")
        assert len(web.get("/v1/messages", params={"user_id": "mei"}).json()["items"]) == 3


def test_an_export_of_a_killed_server_goes_with_its_user(server: Running, place: Place, tmp_path: Path) -> None:
    server.do(server.memory.add("I am mei", user_id="mei"))
    folder = server.do(server.server._shared.uploads.export_folder("mei"))
    server.do(server.memory.transfer.export(folder / "memories", user_id="mei"))
    assert spooled(tmp_path / "spool")
    server.do(server.memory.delete_all("mei"))
    assert spooled(tmp_path / "spool") == []


# -- over HTTP --------------------------------------------------------------------------------------------------------


async def test_a_client_keeps_the_epoch_too(server: Running, tmp_path: Path) -> None:
    async with jiyi.client.Memory(server.url) as memory:
        epoch = await memory.jobs.epoch(user_id="mei")
        await memory.add("I like tea", user_id="mei", epoch=epoch)
        told: list[int] = []

        def delete_once(done: int, _: int) -> None:
            told.append(done)
            if len(told) == 1:
                server.do(server.memory.delete_all("mei"))

        with pytest.raises(UserErased):
            await asyncio.to_thread(
                asyncio.run, _imported(server.url, chat(tmp_path), delete_once)
            )  # a loop of its own: the server's is asked inside
        with pytest.raises(UserErased):
            await memory.add("I like tea", user_id="mei", epoch=epoch)
        assert await memory.count(user_id="mei") == 0
        await memory.observe("I am back", user_id="mei")
        assert (await memory.sessions.flush()).accepted == 1
        assert len((await memory.messages(user_id="mei")).items) == 1


async def test_a_turn_for_a_server_that_was_away_is_not_stored_after_the_deletion_of_its_user(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """The erasure epoch could not be read when the turn was observed."""
    settings = load_settings(client={"retry_timeout_s": 0.01})
    async with Proxy(server.url) as proxy, jiyi.client.Memory(proxy.url, settings=settings) as memory:
        await proxy.set("dead")
        await memory.observe("I like tea", user_id="mei")
        await memory.observe("I like tea", user_id="bo")
        while caplog.text.count("is stored in 0.2 s") < 2:
            await asyncio.sleep(0.01)
        server.do(server.memory.delete_all("mei"))
        await asyncio.sleep(0.01)
        await proxy.set("open")
        await memory.observe("I am back", user_id="mei")
        done = await memory.sessions.flush()
        assert (done.accepted, done.failed) == (2, 1)
        assert [one.text for one in (await memory.messages(user_id="mei")).items] == ["I am back"]
        assert [one.text for one in (await memory.messages(user_id="bo")).items] == ["I like tea"]


async def _imported(url: str, file: Path, progress: Callable[[int, int], None]) -> Any:
    async with jiyi.client.Memory(url) as memory:
        return await memory.transfer.import_chats(file, user_id="mei", progress=progress)


def test_an_upload_by_a_client_names_the_deletion(server: Running, tmp_path: Path) -> None:
    server.do(server.memory.add("I like tea", user_id="mei"))
    server.do(server.memory.transfer.export(tmp_path / "mei.jsonl", user_id="mei"))
    uploads = server.server._shared.uploads
    uploads._slots = asyncio.Semaphore(0)

    async def work() -> None:
        async with jiyi.client.Memory(server.url) as memory:
            importing = asyncio.create_task(memory.transfer.import_memories(tmp_path / "mei.jsonl", user_id="mei"))
            while not uploads._uploads:
                await asyncio.sleep(0.02)
            await memory.delete_all("mei")
            with pytest.raises(UserErased):
                await importing

    asyncio.run(work())


def test_the_epoch_needs_a_key_that_writes(server: Running) -> None:
    reader, writer = server.key("mei", scopes=("read",)), server.key("mei", scopes=("write",))
    with server.client(writer) as web:
        assert web.get("/v1/epoch").json() == {"epoch": ""}
        assert web.get("/v1/epoch", params={"user_id": "bo"}).status_code == 404
    with server.client(reader) as web:
        assert web.get("/v1/epoch").status_code == 403
