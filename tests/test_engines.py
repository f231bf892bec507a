"""External engines: they equal the store after every change, and searches in them return what the store has."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import httpx
import pymongo
import pytest

from engine_servers import EngineServer, start_ferretdb
from jiyi import Memory, SettingsError
from jiyi.engines import Engines
from jiyi.engines.base import user_key
from jiyi.engines.milvus import Milvus
from jiyi.engines.outbox import Outbox
from jiyi.engines.reading import EngineSearch
from jiyi.errors import EngineError
from jiyi.index.query import Candidates
from jiyi.models import utc_now
from jiyi.settings import Settings, load_settings
from jiyi.testing import WordEmbedder
from support import contents

PATIENCE_S = 15.0  # of a search, for a busy machine
DEAD = {"milvus": "http://127.0.0.1:1", "elasticsearch": "http://127.0.0.1:1", "mongodb": "mongodb://127.0.0.1:1/"}


def engine_settings(urls: dict[str, str], *, search: bool = True, in_process: bool = False, **more: Any) -> Settings:
    """Return settings with these engines, under a prefix of their own."""
    prefix = f"t{uuid4().hex[:12]}"
    named = {f"{name}_url": f"{url}{prefix}" if name == "mongodb" else url for name, url in urls.items()}
    legs = {"vectors": "milvus", "words": "elasticsearch"} if search else {}
    return load_settings(
        jobs={"in_process": in_process},
        engines={"prefix": prefix, "timeout_s": 20.0, "search_timeout_s": PATIENCE_S, **named, **legs, **more},
        extraction={"enabled": False},
        cache={"max_searches": 0},
    )


def open_with(place: str | Path, settings: Settings) -> Memory:
    return Memory.open(place, settings=settings, embedder=WordEmbedder(64))


def engines_of(memory: Memory) -> Engines:
    engines = memory._engine.engines
    assert engines is not None
    return engines


async def settled(memory: Memory) -> None:
    """Bring the engines up to date, and compare them with the store."""
    await engines_of(memory).catch_up()
    for report in await memory.maintenance.verify_engines():
        assert report.sound, report
        assert not report.behind, report


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a rebuild no search is under way."""
    monkeypatch.setattr("jiyi.engines.GRACE_S", 0.0)


@pytest.fixture
def quick_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a process that feeds the engines, a deletion waits for nothing."""
    monkeypatch.setattr("jiyi.engines.CONFIRM_S", 0.0)


async def test_engines_follow_every_change(
    place: str | Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch, quick_confirmation: None
) -> None:
    searched = []
    gather = EngineSearch.gather

    async def spy(self: EngineSearch, query: Any) -> Any:
        found = await gather(self, query)
        searched.append(isinstance(found, Candidates))
        return found

    monkeypatch.setattr(EngineSearch, "gather", spy)
    async with open_with(place, engine_settings(engine_urls)) as memory:
        green = {"colour": "green", "rank": 4}
        tea = (await memory.add("Mei likes green tea", user_id="mei", tags=["drink"], metadata=green)).memories[0]
        said = [{"role": "user", "content": "我喜欢喝咖啡", "name": "梅"}, {"role": "user", "content": "在柏林住"}]
        await memory.add(said, user_id="mei", session_id="s1")
        await memory.add("Bo likes tea too", user_id="bo")
        await settled(memory)
        searched.clear()
        assert contents(await memory.search("green tea", user_id="mei"))[0] == "Mei likes green tea"
        assert contents(await memory.search("咖啡", user_id="mei"))[0] == "我喜欢喝咖啡"
        assert contents(await memory.search("tea", user_id="mei", tags=["drink"])) == ["Mei likes green tea"]
        assert not (await memory.search("tea", user_id="mei", session_id="s1", search_mode="keyword")).hits
        for wanted, expected in (({"rank": {"gt": 3}}, ["Mei likes green tea"]), ({"colour": "red"}, [])):
            assert contents(await memory.search("tea", user_id="mei", metadata=wanted)) == expected
        assert searched == [True] * 6

        # Before the engines know of a change, it is read from the store.
        await memory.update(tea.id, user_id="mei", content="Mei likes black tea")
        assert contents(await memory.search("black tea", user_id="mei"))[0] == "Mei likes black tea"
        await memory.add("Mei plays the cello", user_id="mei")
        assert "Mei plays the cello" in contents(await memory.search("cello", user_id="mei"))
        await settled(memory)
        await memory.delete(tea.id, user_id="mei")
        assert "Mei likes black tea" not in contents(await memory.search("black tea", user_id="mei"))
        await settled(memory)
        done = await memory.delete_all(user_id="bo")
        unconfirmed = [note for note in done.notes if "has not confirmed" in note]
        assert [note.split()[0] for note in unconfirmed] == ["milvus", "elasticsearch", "mongodb"]
        await memory.add("Bo is back", user_id="bo")
        await settled(memory)
        assert contents(await memory.search("Bo", user_id="bo")) == ["Bo is back"]


async def test_engines_hold_statements_as_the_store_does(path: Path, engine_urls: dict[str, str]) -> None:
    """When a fact of a message changes, the message is divided: in the engines, too, its statements take its place."""
    settings = engine_settings(engine_urls)
    settings = settings.model_copy(update={"extraction": load_settings().extraction})
    said = [{"role": "user", "content": "I live in Rome. My dog is called Rex. I play the cello."}]
    async with open_with(path, settings) as memory:
        await memory.add(said, user_id="mei", session_id="s1")
        await settled(memory)
        assert said[0]["content"] in await texts_in(settings)
        [home] = [one for one in (await memory.list(user_id="mei")).items if "Rome" in one.content]
        await memory.update(home.id, user_id="mei", content="I live in Oslo.")
        await settled(memory)
        kinds = {"memory_types": ["message", "fact", "preference"], "user_id": "mei", "limit": 100}
        hits = {name: await memory.search(name, **kinds) for name in ("Rome", "Oslo", "dog", "cello")}
        assert all(found.engines for found in hits.values())
        assert contents(hits["Oslo"])[0] == "I live in Oslo."
        assert not any("Rome" in text for found in hits.values() for text in contents(found))
        there = await texts_in(settings)
        assert said[0]["content"] not in there and not any("Rome" in text for text in there)
        assert there == sorted({text for found in hits.values() for text in contents(found)})


async def texts_in(settings: Settings) -> list[str]:
    """Return the texts of all documents in OpenSearch, which has what can be searched."""
    assert settings.engines.elasticsearch_url is not None
    url = f"{settings.engines.elasticsearch_url.get_secret_value()}/{settings.engines.prefix}-memories/_search"
    async with httpx.AsyncClient() as web:
        found = (await web.post(url, json={"size": 100})).json()
    return sorted({hit["_source"]["content"] for hit in found["hits"]["hits"]})


async def test_a_deletion_is_confirmed_by_every_engine(path: Path, engine_urls: dict[str, str]) -> None:
    async with open_with(path, engine_settings(engine_urls, in_process=True)) as memory:
        added = await memory.add("the code is 4417", user_id="mei")
        await memory.add("Bo likes tea", user_id="bo")
        for _ in range(200):
            if not await engines_of(memory).confirm("mei"):
                break
        engines = [outbox.engine for outbox in engines_of(memory).outboxes]
        assert all([await engine.digests("mei") for engine in engines])
        done = await memory.delete(added.memories[0].id, user_id="mei")
        assert not [note for note in done.notes if "confirmed" in note]
        assert not any([await engine.digests("mei") for engine in engines])
        await memory.add("the code is 4418", user_id="mei")
        done = await memory.delete_all(user_id="mei")
        assert not [note for note in done.notes if "confirmed" in note]
        assert all([await engine.user_keys() == {user_key("bo")} for engine in engines])


async def test_without_its_engines_a_memory_works(path: Path, engine_urls: dict[str, str]) -> None:
    """Engines that cannot be reached: everything is found, the check names them, and they catch up."""
    settings = engine_settings(engine_urls)
    async with open_with(path, settings) as memory:
        await memory.add("Mei likes green tea", user_id="mei")
        await settled(memory)
    down = settings.model_copy(
        update={
            "engines": settings.engines.model_copy(
                update={name: load_settings(engines={name: url}).engines.__getattribute__(name) for name, url in (
                    ("milvus_url", DEAD["milvus"]), ("elasticsearch_url", DEAD["elasticsearch"]),
                    ("mongodb_url", DEAD["mongodb"]),
                )} | {"timeout_s": 0.5}
            )
        }
    )  # fmt: skip
    async with open_with(path, down) as memory:
        await memory.add("Mei plays the cello", user_id="mei")
        assert contents(await memory.search("green tea", user_id="mei"))[0] == "Mei likes green tea"
        assert "Mei plays the cello" in contents(await memory.search("cello", user_id="mei"))
        for outbox in engines_of(memory).outboxes:
            with pytest.raises(EngineError, match=outbox.engine.name):
                await outbox.step()
        troubled = {check.name: check.problem for check in (await memory.health()).checks if check.problem}
        assert {"milvus", "elasticsearch", "mongodb"} <= troubled.keys()
        assert 'engine_failing{engine="milvus"} 1' in await memory.usage.prometheus()
    async with open_with(path, settings) as memory:
        await settled(memory)
        assert not [one for one in (await memory.health()).checks if one.problem and one.name in DEAD]


async def test_a_large_user_is_searched_without_the_engine_that_is_down(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.engines.reading.FALLBACK", 1)
    async with open_with(path, engine_settings(engine_urls)) as memory:
        for text in ("Mei likes green tea", "Mei plays the cello", "Mei lives in Berlin"):
            await memory.add(text, user_id="mei")
        await settled(memory)

        async def down(*_: Any) -> Any:
            raise EngineError("milvus: it is down")

        search = engines_of(memory).search
        assert search is not None
        monkeypatch.setattr(search._milvus, "nearest", down)
        found = await memory.search("green tea", user_id="mei")
        assert contents(found)[0] == "Mei likes green tea"
        assert found.degraded == ("not searched by meaning: milvus: it is down",)


async def test_differences_are_found_and_rebuilt(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.engines.milvus.FLUSH_FROM", 1)
    async with open_with(path, engine_settings(engine_urls)) as memory:
        ids = [(await memory.add(f"Mei likes tea {at}", user_id="mei")).memories[0].id for at in range(5)]
        await settled(memory)
        other = (await memory._engine.store.projected.get("mei", ids[2:3], memory._engine.embedder.id))[0]
        for outbox in engines_of(memory).outboxes:
            engine = outbox.engine
            await engine.write("mei", [replace(other, trust=0.5)], ids[:1])
            await engine.write("stranger", [replace(other, user_id="stranger")], ())
            await engine.refresh()
        for report in await memory.maintenance.verify_engines():
            assert (report.missing, report.different, report.extra) == (1, 1, 1), report
        for name in ("milvus", "elasticsearch", "mongodb"):
            assert (await memory.maintenance.rebuild(name)).sound
        await settled(memory)


async def test_users_are_loaded_together(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.store.upkeep.engine_memories.PAGE", 10)
    monkeypatch.setattr("jiyi.engines.CONFIRM_S", 0.1)
    users = [f"user-{at}" for at in range(7)]
    async with open_with(path, engine_settings(engine_urls, search=False)) as memory:
        await memory.add([f"note {at}" for at in range(25)], user_id="mei")
        for user in users:
            await memory.add([f"note {at} of {user}" for at in range(4)], user_id=user)
        loads: dict[str, list[int]] = {}
        for outbox in engines_of(memory).outboxes:
            numbers, load = loads.setdefault(outbox.engine.name, []), outbox.engine.load

            async def counting(memories: Any, numbers: Any = numbers, load: Any = load) -> None:
                numbers.append(len({memory.user_id for memory in memories}))
                await load(memories)
                if len(numbers) == 2:  # a user of this group leaves, and another one changes
                    await memory.delete_all(user_id=users[3])
                    await memory.add("one more", user_id=users[2])

            monkeypatch.setattr(outbox.engine, "load", counting)
        await engines_of(memory).catch_up()
        assert loads["milvus"][:4] == [2, 2, 2, 1]  # then the user with three pages
        monkeypatch.undo()
        await settled(memory)


async def test_an_error_of_grpc_is_an_error_of_the_engine(path: Path, engine_urls: dict[str, str]) -> None:
    async with open_with(path, engine_settings(engine_urls, search=False)) as memory:

        def late(client: Any) -> None:
            raise grpc.RpcError("Deadline Exceeded")

        engine = engines_of(memory).outbox("milvus").engine
        assert isinstance(engine, Milvus)
        with pytest.raises(EngineError, match="Deadline Exceeded"):
            await engine._call(late)


async def test_of_two_processes_one_feeds_an_engine(path: Path, engine_urls: dict[str, str]) -> None:
    settings = engine_settings(engine_urls, search=False)
    async with open_with(path, settings) as first, open_with(path, settings) as second:
        await first.add("Mei likes tea", user_id="mei")
        assert await engines_of(first).outbox("mongodb").step()
        assert not await engines_of(second).outbox("mongodb").step()
        await engines_of(first).outbox("mongodb").close()
        assert await engines_of(second).outbox("mongodb").step()


@pytest.mark.parametrize("lite", ["milvus_lite", "no server is called that"])
async def test_another_embedder_gets_a_collection_of_its_own(
    path: Path, engine_urls: dict[str, str], lite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.engines.milvus.LITE", lite)  # an exact index, and that of other servers
    settings = engine_settings(engine_urls)
    async with open_with(path, settings) as memory:
        await memory.add("Mei likes green tea", user_id="mei")
        await settled(memory)
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(32)) as memory:
        await memory.maintenance.reindex()
        for name in ("elasticsearch", "mongodb"):
            await memory._engine.store.projections.register(name, "another place")
        found = await memory.search("green tea", user_id="mei")
        assert contents(found) == ["Mei likes green tea"]
        report = await memory.maintenance.rebuild("milvus")
        assert report.sound
        assert report.documents == 1


async def test_an_engine_at_another_place_or_without_its_documents_is_loaded(
    path: Path, engine_urls: dict[str, str]
) -> None:
    settings = engine_settings(engine_urls)
    for at in range(3):
        async with open_with(path, settings) as memory:
            await memory.add(f"Mei likes green tea {at}", user_id="mei")
            await settled(memory)
            assert len((await memory.search("green tea", user_id="mei")).hits) == at + 1
            if at == 0:
                settings = engine_settings(engine_urls)
            for outbox in engines_of(memory).outboxes if at == 1 else ():
                await outbox.engine.drop()


async def test_an_engine_that_is_emptied_while_it_is_loaded_is_loaded_whole(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.store.upkeep.engine_memories.PAGE", 4)
    async with open_with(path, engine_settings(engine_urls, search=False)) as memory:
        for user in ("mei", "bo"):
            await memory.add([f"note {at} of {user}" for at in range(4)], user_id=user)
        for outbox in engines_of(memory).outboxes:
            loaded, load = [], outbox.engine.load

            async def fail_later(memories: Any, loaded: Any = loaded, load: Any = load) -> None:
                if loaded:
                    raise EngineError("no room")
                loaded.append(await load(memories))

            with monkeypatch.context() as patched, pytest.raises(EngineError):
                patched.setattr(outbox.engine, "load", fail_later)
                await outbox.finish()
            await outbox.engine.drop()
        await settled(memory)


@pytest.mark.parametrize("taken", [False, True])
async def test_after_an_error_only_users_who_may_be_there_are_deleted_first(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch, taken: bool
) -> None:
    """A deletion takes an engine longer than loading a user whom it does not have."""
    monkeypatch.setattr("jiyi.store.upkeep.engine_memories.PAGE", 4)
    monkeypatch.setattr("jiyi.engines.outbox.RENEW_S", 0.0)
    async with open_with(path, engine_settings(engine_urls, search=False)) as memory:
        users = [f"user-{at}" for at in range(5)]
        for user in users:
            await memory.add([f"note {at} of {user}" for at in range(4)], user_id=user)
        for outbox in engines_of(memory).outboxes:
            loaded: list[str] = []
            deleted: list[str] = []
            load, delete_keys = outbox.engine.load, outbox.engine.delete_keys

            async def fail_once(memories: Any, loaded: Any = loaded, load: Any = load) -> None:
                loaded.append(memories[0].user_id)
                await load(memories[:1] if len(loaded) == 2 else memories)
                if len(loaded) == 2:
                    raise EngineError("no room")

            async def note(keys: Any, deleted: Any = deleted, delete_keys: Any = delete_keys) -> None:
                deleted.extend(keys)
                await delete_keys(keys)

            with monkeypatch.context() as patched:
                patched.setattr(outbox.engine, "load", fail_once)
                patched.setattr(outbox.engine, "delete_keys", note)
                with pytest.raises(EngineError):
                    await outbox.finish()
                if taken:  # another process fed the engine for a moment
                    later = utc_now() + timedelta(hours=1)
                    await memory._engine.store.projections.claim(outbox.engine.name, "other", later, utc_now())
                await outbox.finish()
            assert len(loaded) == 6
            assert deleted == list(map(user_key, loaded[2:] if taken else [loaded[1]]))
        await settled(memory)


def test_searching_in_engines_needs_both() -> None:
    for given in ({"vectors": "milvus"}, {"words": "elasticsearch"}, {"vectors": "milvus", "words": "elasticsearch"}):
        with pytest.raises(SettingsError, match="engines"):
            Memory.open("memory.db", settings=load_settings(engines=given))


@pytest.fixture
def own_ferretdb(engine_urls: dict[str, str]) -> Any:
    server = start_ferretdb()
    yield server
    server.stop()


async def test_an_engine_that_was_killed_catches_up(path: Path, own_ferretdb: EngineServer) -> None:
    settings = engine_settings({"mongodb": own_ferretdb.url}, search=False, timeout_s=5.0)
    async with open_with(path, settings) as memory:
        await memory.add("Mei likes tea", user_id="mei")
        await settled(memory)
        own_ferretdb.end()
        await memory.add("Mei likes coffee", user_id="mei")
        with pytest.raises(EngineError):
            await engines_of(memory).catch_up()
        await asyncio.to_thread(own_ferretdb.start)
        await settled(memory)


# -- documents ------------------------------------------------------------------------------------------------------


async def test_documents_are_readable_and_can_be_imported(
    path: Path, tmp_path: Path, empty_store: Path, engine_urls: dict[str, str]
) -> None:
    """Every memory is a document with its messages; another store reads them back."""
    settings = engine_settings({"mongodb": engine_urls["mongodb"]}, search=False)
    url = settings.engines.mongodb_url
    assert url is not None
    async with open_with(path, settings) as memory:
        said = [{"role": "user", "content": "I moved to Berlin", "name": "Mei"}]
        await memory.add(said, user_id="mei", session_id="s1")
        await memory.add("Mei likes tea", user_id="mei", memory_type="preference", tags=["drink"])
        await memory.add("Bo went hiking", user_id="bo", memory_type="event")
        await settled(memory)
    client: pymongo.MongoClient[Any] = pymongo.MongoClient(url.get_secret_value())
    database = client.get_default_database()
    (message,) = database.messages.find({"user_id": "mei"})
    assert message["original_data"][0]["content"] == message["narrative"] == "I moved to Berlin"
    assert database.event_logs.find_one({"user_id": "bo"})["narrative"] == "Bo went hiking"
    client.close()
    copy = shutil.copy(empty_store, tmp_path / "copy.db")
    async with Memory.open(copy, embedder=WordEmbedder(64), settings=load_settings()) as memory:
        for new in ({"memory": 2, "message": 1}, {"memory": 0, "message": 0}):
            report = await memory.transfer.import_memories(url.get_secret_value())
            assert (report.format, report.new) == ("mongodb", new)
        (tea,) = (await memory.list(user_id="mei", memory_types=["preference"])).items
        assert tea.tags == ("drink",)


# -- isolation and deletion -----------------------------------------------------------------------------------------

LOOK_ALIKE = ("mei", "Mei", "mei\u200b", 'mei" or "1"=="1', "mei' OR '1'='1", "*", "梅" * 256)


async def test_names_that_look_alike_are_kept_apart(path: Path, engine_urls: dict[str, str]) -> None:
    """Each user, session, tag and agent finds its own, whatever the others are called."""
    names = LOOK_ALIKE
    async with open_with(path, engine_settings(engine_urls)) as memory:
        for at, name in enumerate(names):
            await memory.add(
                f"the secret number {at}", user_id=name, session_id=name, agent_id=name, group_id=name, tags=[name]
            )
            await memory.add(f"the secret other {at}", user_id="all", session_id=name, agent_id=name, tags=[f"t{at}"])
        await settled(memory)
        for at, name in enumerate(names):
            for filters in ({}, {"session_id": name, "agent_id": name, "group_id": name}):
                found = await memory.search("the secret number", user_id=name, limit=50, **filters)
                assert contents(found) == [f"the secret number {at}"]
                assert not found.degraded
            found = await memory.search("the secret", user_id="all", session_id=name, agent_id=name, limit=50)
            assert contents(found) == [f"the secret other {at}"]
            found = await memory.search("the secret", user_id="all", tags=[f"t{at}"], limit=50)
            assert contents(found) == [f"the secret other {at}"]
        for outbox in engines_of(memory).outboxes:  # past Jiyi: each engine divides them too
            for name in names:
                assert len(await outbox.engine.digests(name)) == 1


class IdleOutbox(Outbox):
    def __init__(self) -> None:
        self._wake = asyncio.Event()

    async def step(self, progress: Any = None) -> bool:
        return True


@pytest.mark.parametrize("turns", range(4))
async def test_a_change_at_the_moment_of_closing_does_not_keep_it_open(turns: int) -> None:
    outbox = IdleOutbox()
    task = asyncio.create_task(outbox.run())
    await asyncio.sleep(0.01)
    outbox.wake()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=5)
    assert done


async def test_a_deleted_canary_is_in_no_engine(path: Path, engine_urls: dict[str, str]) -> None:
    canary = "canary-7Q4Z"
    settings = engine_settings(engine_urls, in_process=True)
    async with open_with(path, settings) as memory:
        said = [{"role": "user", "content": f"the password is {canary}", "name": "Mei"}]
        added = await memory.add(said, user_id="mei", session_id="s1", tags=[canary])
        await memory.add("Mei likes tea", user_id="mei")
        while await engines_of(memory).confirm("mei"):
            pass
        assert canary in await everything(settings, engine_urls)
        await memory.delete(added.memories[0].id, user_id="mei", with_sources=True)
        assert canary not in await everything(settings, engine_urls)
        assert "likes tea" in await everything(settings, engine_urls)


@pytest.mark.parametrize("said", ["I moved to Berlin. My locker code is 7Q4Z.", "我搬到了柏林。我的储物柜密码是7Q4Z。"])
async def test_deleted_words_leave_the_documents_of_the_same_message(
    path: Path, engine_urls: dict[str, str], said: str, quick_confirmation: None
) -> None:
    """MongoDB has the messages beside each memory that was made of them."""
    settings = engine_settings({"mongodb": engine_urls["mongodb"]}, search=False)
    settings = settings.model_copy(update={"extraction": load_settings().extraction})
    async with open_with(path, settings) as memory:
        await memory.add([{"role": "user", "content": said}], user_id="mei", session_id="s1")
        await settled(memory)
        for item in (await memory.list(user_id="mei")).items:
            if "7Q4Z" in item.content:
                await memory.delete(item.id, user_id="mei")
        (report,) = await memory.maintenance.verify_engines(full=True)
        assert (report.missing, report.extra, report.different) == (0, 0, 0)
        await settled(memory)
        with pymongo.MongoClient[Any](settings.engines.mongodb_url.get_secret_value()) as client:
            database = client.get_default_database()
            documents = [one for name in database.list_collection_names() for one in database[name].find()]
        assert documents and "7Q4Z" not in str(documents)


async def everything(settings: Settings, urls: dict[str, str]) -> str:
    """Return all documents in OpenSearch and MongoDB as text."""
    import opensearchpy

    words = opensearchpy.AsyncOpenSearch(urls["elasticsearch"])
    found = await words.search(index=f"{settings.engines.prefix}-memories-*", body={"size": 1000})
    await words.close()
    documents: pymongo.MongoClient[Any] = pymongo.MongoClient(settings.engines.mongodb_url.get_secret_value())
    database = documents.get_default_database()
    rows = [document for name in database.list_collection_names() for document in database[name].find()]
    documents.close()
    return f"{found['hits']['hits']} {rows}"
