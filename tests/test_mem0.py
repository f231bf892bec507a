"""mem0's own Python client, unmodified, against a running server; and mem0's classes over a store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from foreign_packages import fetched, mem0_client, mem0_npm_client
from jiyi import Memory as Store
from jiyi import sync
from jiyi.compat.mem0 import AsyncMemory, Memory
from jiyi.errors import InvalidInput
from jiyi.testing import WordEmbedder
from rest import Running, running
from support import each_case

ALL = ("read", "write", "delete")
CHAT = [
    {"role": "user", "content": "Hi, I'm Mei. My favorite color is blue."},
    {"role": "assistant", "content": "Nice to meet you! I'll remember that your favorite color is blue."},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    generous = {"burst": 100_000, "requests_per_minute": 100_000}
    place = tmp_path_factory.mktemp("mem0") / "memory.db"
    with running(place, server=generous, extraction={"enabled": True}) as server:
        yield server


@pytest.fixture(scope="module")
def mem0(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The package mem0, without its telemetry and with a folder of its own."""
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(tmp_path_factory.mktemp("mem0-config"))
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mem0
    return mem0


Connect = Callable[[Running, str], Any]


@pytest.fixture(scope="module")
def connect(mem0: Any) -> Iterator[Connect]:
    """mem0's client for a server and a key. It never closes its connection; the test gives it one, and closes it."""
    with ExitStack() as connections:

        def connect(server: Running, key: str) -> Any:
            http = connections.enter_context(httpx.Client(timeout=60, verify=False))
            return mem0.MemoryClient(api_key=key, host=server.url, client=http)

        yield connect


@pytest.fixture(scope="module")
def client(server: Running, connect: Connect) -> Any:
    return connect(server, server.key(scopes=ALL))


@pytest.fixture(scope="module")
def seeded(client: Any) -> Any:
    """A client whose user `mei` has two memories, one of them of an agent and with metadata."""
    client.add(CHAT, user_id="mei")
    client.add("I work as a nurse in Berlin", user_id="mei", agent_id="hr", run_id="r1", metadata={"topic": "work"})
    client.add("I play chess", user_id="lin")
    return client


def texts(answer: dict[str, Any]) -> list[str]:
    return [one["memory"] for one in answer["results"]]


def test_a_memory_lives_its_whole_life_through_the_client(client: Any) -> None:
    added = client.add(CHAT, user_id="ann", metadata={"source": "chat"})
    assert added["status"] == "SUCCEEDED" and added["event_id"]
    assert [one["event"] for one in added["results"]] == ["ADD"]
    listed = client.get_all(filters={"user_id": "ann"})
    assert listed["count"] == 1 and listed["next"] is None and texts(listed) == ["My favorite color is blue."]
    one = listed["results"][0]
    assert one["user_id"] == "ann" and one["metadata"] == {"source": "chat"} and len(one["id"]) == 36
    assert client.get(one["id"]) == one

    changed = client.update(one["id"], text="My favorite color is green", metadata={"source": "call"})
    assert changed["memory"] == "My favorite color is green" and changed["metadata"] == {"source": "call"}
    events = client.history(one["id"])
    assert [(event["event"], event["old_memory"], event["new_memory"]) for event in events] == [
        ("ADD", None, "My favorite color is blue."),
        ("UPDATE", "My favorite color is blue.", "My favorite color is green"),
    ]
    assert client.update(one["id"], expiration_date="2999-12-31")["expiration_date"] == "2999-12-31"
    assert client.update(one["id"], expiration_date=None)["expiration_date"] is None
    assert client.delete(one["id"])["message"] == "Memory deleted successfully!"
    assert client.get_all(filters={"user_id": "ann"})["count"] == 0


def test_a_single_statement_is_a_memory_and_a_single_question_is_none(client: Any) -> None:
    assert texts(client.add("Likes pizza", user_id="stated")) == ["Likes pizza"]
    assert texts(client.add("Which pizza is good here?", user_id="stated")) == []
    assert texts(client.get_all(filters={"user_id": "stated"})) == ["Likes pizza"]


def test_messages_are_kept_as_they_are_without_infer(client: Any) -> None:
    assert texts(client.add(CHAT, user_id="raw", infer=False)) == [message["content"] for message in CHAT]


def test_search_returns_scores_best_first_and_at_most_top_k(seeded: Any) -> None:
    found = seeded.search("Which color do I like?", filters={"user_id": "mei"})["results"]
    assert "blue" in found[0]["memory"] and 0 < found[0]["score"] <= 1
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    assert len(seeded.search("Which color do I like?", filters={"user_id": "mei"}, top_k=1)["results"]) == 1
    assert seeded.search("Which color do I like?", filters={"user_id": "mei"}, threshold=1.0)["results"] == []
    only = seeded.search("Which color do I like?", filters={"user_id": "mei"}, top_k=1, fields=["memory"])
    assert set(only["results"][0]) == {"id", "memory"}


WORK = "I work as a nurse in Berlin"
COLOR = "My favorite color is blue."


@each_case(
    ("filters", "expected"),
    [
        ({"user_id": "mei"}, {WORK, COLOR}),
        ({"AND": [{"user_id": "mei"}, {"agent_id": "hr"}]}, {WORK}),
        ({"user_id": "mei", "run_id": "r1"}, {WORK}),
        ({"user_id": "mei", "run_id": "*"}, {WORK}),
        ({"user_id": "mei", "metadata": {"topic": "work"}}, {WORK}),
        ({"user_id": "mei", "topic": {"in": ["work", "play"]}}, {WORK}),
        ({"AND": [{"user_id": "mei"}, {"NOT": [{"agent_id": "hr"}]}]}, {COLOR}),
        ({"AND": [{"user_id": "mei"}, {"created_at": {"gte": "2020-01-01", "lt": "2999-01-01"}}]}, {WORK, COLOR}),
        ({"AND": [{"user_id": "mei"}, {"created_at": {"lt": "2020-01-01"}}]}, set()),
        ({"AND": [{"user_id": "mei"}, {"keywords": {"icontains": "BLUE"}}]}, {COLOR}),
        ({"OR": [{"user_id": "mei"}, {"user_id": "lin"}]}, {WORK, COLOR, "I play chess"}),
        ({"user_id": {"in": ["lin", "nobody"]}}, {"I play chess"}),
        ({"userId": "lin"}, {"I play chess"}),
        ({"user_id": "nobody"}, set()),
    ],
)
def test_filters(seeded: Any, filters: dict[str, Any], expected: set[str]) -> None:
    assert set(texts(seeded.get_all(filters=filters))) == expected
    hits = seeded.search("tell me about blue, chess and work", filters=filters, top_k=50)["results"]
    assert {one["memory"] for one in hits} <= expected | {message["content"] for message in CHAT} | {COLOR}


def test_pages(client: Any) -> None:
    for number in range(5):
        client.add(f"The code of door {number} is {number * 111}", user_id="paged", infer=False)
    first = client.get_all(filters={"user_id": "paged"}, page=1, page_size=2)
    last = client.get_all(filters={"user_id": "paged"}, page=3, page_size=2)
    assert first["count"] == last["count"] == 5 and first["previous"] is None and "page=2" in first["next"]
    assert len(last["results"]) == 1 and last["next"] is None and "page=2" in last["previous"]


def test_memories_of_an_agent_alone_need_no_user(client: Any) -> None:
    client.add("Always answer in French", agent_id="chef")
    found = client.get_all(filters={"agent_id": "chef"})["results"]
    assert [(one["memory"], one["agent_id"], one["user_id"]) for one in found] == [
        ("Always answer in French", "chef", None)
    ]
    client.delete_all(agent_id="chef")
    assert client.get_all(filters={"agent_id": "chef"})["count"] == 0


def test_deleting_a_run_keeps_the_rest_of_the_user(client: Any) -> None:
    client.add("I was born in May", user_id="bo", run_id="one")
    client.add("I own a red bicycle", user_id="bo", run_id="two")
    client.delete_all(user_id="bo", run_id="one")
    assert texts(client.get_all(filters={"user_id": "bo"})) == ["I own a red bicycle"]
    assert all("May" not in text for text in texts(client.search("when was I born?", filters={"user_id": "bo"})))


def test_deleting_a_run_of_an_agent_keeps_its_other_runs(client: Any) -> None:
    client.add("Answer kindly", agent_id="cook", run_id="one", infer=False)
    client.add("Answer briefly", agent_id="cook", run_id="two", infer=False)
    client.delete_all(agent_id="cook", run_id="one")
    assert texts(client.get_all(filters={"agent_id": "cook"})) == ["Answer briefly"]


async def test_deleting_what_an_agent_stored_includes_what_no_list_shows(tmp_path: Path) -> None:
    """Archived, expired and superseded memories are deleted too; those of other agents stay."""
    async with Store.open(tmp_path / "memory.db") as store:
        memory = AsyncMemory(memory=store)
        for agent in ("hr", "it"):
            await store.add("My badge is in the drawer", user_id="mei", agent_id=agent)
        archived = (await store.list(user_id="mei", agent_id="hr")).items[0]
        await store.update(archived.id, user_id="mei", status="archived")
        await memory.add("Parking until May", user_id="mei", agent_id="hr", expiration_date="2020-05-31", infer=False)
        for home in ("I live in Bonn.", "I live in Rome now."):
            await memory.add(home, user_id="mei", agent_id="hr")
        await memory.delete_all(user_id="mei", agent_id="hr")
        await store.transfer.export(tmp_path / "rest.jsonl", user_id="mei")
    rest = (tmp_path / "rest.jsonl").read_text("utf-8")
    assert [word for word in ("Parking", "Bonn", "Rome", '"hr"') if word in rest] == []
    assert rest.count("My badge is in the drawer") > 0


@each_case(
    "message",
    [
        {"role": "assistant", "content": "I live in Paris now."},
        {"role": "tool", "content": "I moved to Paris."},
        {"role": "user", "name": "Carl", "content": "I live in Paris now."},
    ],
)
@each_case("infer", [True, False])
async def test_only_the_user_changes_the_users_facts(tmp_path: Path, message: dict[str, str], infer: bool) -> None:
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        memory, user = AsyncMemory(memory=store), f"{message} {infer}"
        await memory.add("I live in Berlin.", user_id=user)
        await memory.add([message], user_id=user, infer=infer)
        found = {item.content: item for item in await store.timeline(user_id=user)}
        assert found["I live in Berlin."].valid_to is None
        said = found.get(message["content"])
        assert said is None or (said.data.get("speaker") or said.data["role"]) == message.get("name", message["role"])


async def test_a_statement_of_a_named_speaker_is_theirs(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        await AsyncMemory(memory=store).add([{"role": "user", "name": "Carl", "content": "Likes pizza"}], user_id="mei")
        assert [item.data["speaker"] for item in await store.list(user_id="mei")] == ["Carl"]


@each_case("operand", [5, None, "work", {"in": 1}])
async def test_a_filter_on_metadata_that_makes_no_sense_is_refused(tmp_path: Path, operand: Any) -> None:
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        memory = AsyncMemory(memory=store)
        await memory.add("I play chess", user_id="mei", metadata={"topic": "play"}, infer=False)
        for condition in ({"in": operand}, {"between": operand}):
            with pytest.raises(InvalidInput, match="filters"):
                await memory.get_all(filters={"user_id": "mei", "metadata": {"topic": condition}})


async def test_the_last_day_of_the_calendar_means_never(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        memory = AsyncMemory(memory=store)
        added = await memory.add("I play chess", user_id="mei", expiration_date="9999-12-31", infer=False)
        assert added["results"][0]["expiration_date"] == "9999-12-31"


def test_batches_and_entities(client: Any) -> None:
    for text in ("I like tea", "I like rain"):
        client.add(text, user_id="batch", infer=False)
    ids = [one["id"] for one in client.get_all(filters={"user_id": "batch"})["results"]]
    client.batch_update([{"memory_id": ids[0], "text": "I like snow"}])
    assert client.get(ids[0])["memory"] == "I like snow"
    client.batch_delete([{"memory_id": name} for name in ids])
    assert client.get_all(filters={"user_id": "batch"})["count"] == 0
    client.add("I like tea", user_id="batch", infer=False)
    [entity] = [one for one in client.users()["results"] if one["name"] == "batch"]
    assert entity["type"] == "user" and entity["total_memories"] == 1
    client.delete_users(user_id="batch")
    assert "batch" not in [one["name"] for one in client.users()["results"]]


def test_errors_arrive_as_mem0s_own(server: Running, client: Any, connect: Connect) -> None:
    from mem0 import exceptions
    from mem0.exceptions import AuthenticationError, MemoryNotFoundError, ValidationError

    with pytest.raises(MemoryNotFoundError, match="no memory"):
        client.get("00000000-0000-0000-0000-000000000000")
    with pytest.raises(ValidationError, match="not a UUID"):
        client.get("nonsense")
    with pytest.raises(ValidationError, match="one of user_id"):
        client.get_all(filters={})
    with pytest.raises(ValidationError, match="operator 'near'"):
        client.search("tea", filters={"user_id": "mei", "price": {"near": 3}})
    with pytest.raises(ValidationError, match="one of user_id"):
        client.delete_all()
    with pytest.raises(exceptions.MemoryError, match="does not offer mem0's feedback"):
        client.feedback(memory_id="x", feedback="POSITIVE")
    with pytest.raises(ValueError, match="a valid key is required"):
        connect(server, "wrong")
    reader = connect(server, server.key("mei", scopes=["read"]))
    with pytest.raises(AuthenticationError, match="may not write"):
        reader.add("I like tea", user_id="mei")


def test_a_key_for_one_user_reaches_no_other(server: Running, seeded: Any, connect: Connect) -> None:
    """By id, by filter, by entity and by wildcard."""
    from mem0 import exceptions

    theirs = seeded.get_all(filters={"user_id": "lin"})["results"][0]["id"]
    for users in (["mei"], ["mei", "ann"]):
        own = connect(server, server.key(*users, scopes=ALL))
        attempts = [
            lambda own: own.get(theirs),
            lambda own: own.update(theirs, text="mine now"),
            lambda own: own.delete(theirs),
            lambda own: own.history(theirs),
            lambda own: own.batch_delete([{"memory_id": theirs}]),
            lambda own: own.batch_update([{"memory_id": theirs, "text": "mine now"}]),
            lambda own: own.get_all(filters={"user_id": "lin"}),
            lambda own: own.search("chess", filters={"user_id": "lin"}),
            lambda own: own.add("I like tea", user_id="lin"),
            lambda own: own.delete_all(user_id="lin"),
            lambda own: own.delete_all(user_id="*"),
            lambda own: own.delete_users(user_id="lin"),
        ]
        for attempt in attempts:
            with pytest.raises(exceptions.MemoryError) as refused:
                attempt(own)
            assert "chess" not in str(refused.value)
        if len(users) == 1:
            everyone = own.get_all(filters={"OR": [{"user_id": "lin"}, {"user_id": "*"}]})["results"]
            assert {one["user_id"] for one in everyone} <= {"mei"}
            assert [one["name"] for one in own.users()["results"]] == ["mei"]
    assert seeded.get(theirs)["memory"] == "I play chess"


def test_every_path_of_mem0_needs_a_key(server: Running) -> None:
    key = server.key("mei", scopes=["read"])
    with server.client() as nobody:
        for path in ("/v3/memories/", "/v3/memories/search/", "/v1/ping/", "/v2/entities/user/mei/", "/api/v1/orgs/"):
            answer = nobody.post(path, json={})
            assert (answer.status_code, answer.headers["content-type"]) == (401, "application/json"), path
    for scheme in ("Token", "Bearer"):
        assert httpx.get(f"{server.url}/v1/ping/", headers={"Authorization": f"{scheme} {key}"}).status_code == 200


async def test_the_asynchronous_client(server: Running, mem0: Any) -> None:
    http = httpx.AsyncClient(timeout=60, verify=False)
    async with mem0.AsyncMemoryClient(api_key=server.key(scopes=ALL), host=server.url, client=http) as client:
        await client.add(CHAT, user_id="async")
        found = await client.search("Which color do I like?", filters={"user_id": "async"})
        assert "blue" in found["results"][0]["memory"]
        await client.delete_all(user_id="async")
        assert (await client.get_all(filters={"user_id": "async"}))["count"] == 0


def test_reset_deletes_everything(tmp_path: Path, connect: Connect) -> None:
    with running(tmp_path / "memory.db") as own:
        client = connect(own, own.key(scopes=ALL))
        client.add("I like tea", user_id="mei", infer=False)
        client.add("Be brief", agent_id="chef", infer=False)
        assert {(one["type"], one["name"]) for one in client.users()["results"]} == {("user", "mei"), ("agent", "chef")}
        client.reset()
        assert client.users()["count"] == 0


def test_memory_has_mem0s_arguments(tmp_path: Path) -> None:
    with sync.Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(128)) as store, Memory(memory=store) as memory:
        added = memory.add("I live in Oslo", user_id="mei", run_id="r1", metadata={"topic": "home"})
        name = added["results"][0]["id"]
        assert texts(memory.search("Where do I live?", filters={"user_id": "mei"}, top_k=1)) == ["I live in Oslo"]
        assert texts(memory.search("Where do I live?", user_id="mei", limit=1)) == ["I live in Oslo"]
        assert texts(memory.get_all(filters={"user_id": "mei", "run_id": "r1"}, top_k=5)) == ["I live in Oslo"]
        memory.update(name, data="I live in Bergen")
        found = memory.get(name)
        assert found is not None and found["memory"] == "I live in Bergen" and found["run_id"] == "r1"
        assert [event["event"] for event in memory.history(name)] == ["ADD", "UPDATE"]
        memory.delete(name)
        assert memory.get(name) is None and memory.history(name) == []
        with pytest.raises(ValueError, match="not found"):
            memory.delete(name)
        with pytest.raises(ValueError, match="one of user_id"):
            memory.search("tea")
        with pytest.raises(TypeError, match="colour"):
            memory.search("tea", user_id="mei", colour="red")
        memory.add(["I like tea", "I like rain"], agent_id="chef", infer=False)
        memory.reset()
        assert texts(memory.get_all(filters={"agent_id": "chef"})) == []
        with pytest.warns(UserWarning, match="has no effect"):
            Memory({"vector_store": {"provider": "qdrant"}}, memory=store)


async def test_async_memory(tmp_path: Path) -> None:
    opened = Store.open(tmp_path / "memory.db", embedder=WordEmbedder(128))
    async with opened as store, AsyncMemory(memory=store) as memory:
        await memory.add(CHAT, user_id="mei")
        assert "blue" in texts(await memory.search("favorite color", filters={"user_id": "mei"}))[0]
        await memory.delete_all(user_id="mei")
        assert texts(await memory.get_all(filters={"user_id": "mei"})) == []


async def test_wishes_that_bear_on_a_query_are_among_the_results(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        await store.add("From now on, answer in British English.", user_id="mei")
        for animal in ("dragon", "horse", "cat", "dog", "owl", "fox", "cow", "hen", "pig", "bee", "ant", "elk"):
            await store.add(f"Tell me about the {animal}s of my story.", user_id="mei")
        memory = AsyncMemory(memory=store)
        found = await memory.search("Tell me a story about a dragon.", filters={"user_id": "mei"}, top_k=10)
        assert len(found["results"]) == 10
        assert "From now on" in str(found) or all(one["score"] >= 0.6 for one in found["results"])
        cut = await memory.search("Tell me a story about a dragon.", filters={"user_id": "mei"}, threshold=0.3)
        assert "From now on" not in str(cut)


async def test_a_search_returns_what_the_listing_has(tmp_path: Path) -> None:
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        memory = AsyncMemory(memory=store)
        await memory.add(CHAT, user_id="mei")
        await memory.add([{"role": "user", "content": "哈哈，今天地铁特别挤"}], user_id="mei", run_id="monday")
        listed = {one["id"] for one in (await memory.get_all(filters={"user_id": "mei"}))["results"]}
        for query in ("blue", "今天地铁挤吗？", "What did I say?"):
            for options in ({}, {"threshold": 0.0}, {"top_k": 100}):
                found = await memory.search(query, filters={"user_id": "mei"}, **options)
                assert {one["id"] for one in found["results"]} <= listed


@pytest.mark.parametrize("number", ["0.1.118", "1.0.0", None])
def test_three_versions_of_the_python_client_pass_one_script(
    number: str | None, server: Running, tmp_path: Path
) -> None:
    package = {} if number is None else {"PYTHONPATH": str(fetched(partial(mem0_client, number)))}
    script = [sys.executable, Path(__file__).with_name("mem0_script.py")]
    passes_script(script, server, f"python-{number}", package | {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(tmp_path)})


@pytest.mark.parametrize(("number", "style"), [("1.0.39", "text"), ("2.4.6", "object"), ("3.3.1", "new")])
def test_three_versions_of_the_npm_client_pass_one_script(
    number: str, style: str, server: Running, tmp_path: Path
) -> None:
    script = ["node", Path(__file__).with_name("mem0_script.mjs"), fetched(partial(mem0_npm_client, number)), style]
    passes_script(script, server, f"npm-{number}", {"MEM0_TELEMETRY": "false", "HOME": str(tmp_path)})


def passes_script(script: Sequence[object], server: Running, user_id: str, variables: dict[str, str]) -> None:
    """Run a program with a client of mem0 for a user of its own and look at its report."""
    done = subprocess.run(
        [*map(str, script), server.url, server.key(user_id, scopes=ALL), user_id],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    allergic = ["I'm allergic to peanuts."]
    assert report["found"] == report["listed"] == allergic and report["byUser"] == [allergic, allergic]
    assert report["updated"] == "我对花生和芝麻过敏。" and report["history"] == 2 and report["users"] == [user_id]
    assert report["deleted"] == "Memory deleted successfully!" and report["all"] == "Memories deleted successfully!"


async def test_the_last_day_counts_and_mongo_names_are_understood(server: Running) -> None:
    with server.client(server.key("hua")) as web:

        def listed(**body: Any) -> list[str]:
            answer = web.post("/v3/memories/", json=body)
            assert answer.status_code == 200, answer.text
            return [one["memory"] for one in answer.json()["results"]]

        call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
        assert web.post("/v3/memories/add/", json={"messages": [call], "user_id": "hua"}).status_code == 200
        said = {"messages": "我住在杭州。", "user_id": "hua", "metadata": {"kind": "home"}}
        assert web.post("/v3/memories/add/", json=said).status_code == 200
        today = datetime.now(UTC).date().isoformat()
        owner = {"user_id": "hua"}
        assert listed(filters=owner, start_date=today, end_date=today)
        assert listed(filters={**owner, "$or": [{"metadata": {"kind": "home"}}, {"metadata": {"kind": "work"}}]})
        assert not listed(filters={**owner, "$not": [{"metadata": {"kind": "home"}}]})
        refused = web.post("/v3/memories/", json={"filters": {**owner, "$nor": [owner]}})
        assert refused.status_code == 422 and "$nor" in refused.text
