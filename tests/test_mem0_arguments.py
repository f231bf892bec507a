"""Every argument of mem0's methods and REST paths works as in mem0 or is refused; none is ignored. What a call deletes
or changes is what it names, and a batch is done whole or not at all."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from jiyi import Memory as Store
from jiyi.compat.mem0 import AsyncMemory
from jiyi.errors import InvalidInput, NotFound
from jiyi.testing import WordEmbedder
from rest import Running, running
from support import each_case
from test_mem0 import ALL, connect, mem0  # noqa: F401 - fixtures

WORDS = {"tea": "Mei drinks green tea", "car": "Mei drives an old car", "cat": "The cat is called Momo"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    generous = {"burst": 100_000, "requests_per_minute": 100_000}
    with running(tmp_path_factory.mktemp("mem0") / "memory.db", server=generous) as server:
        yield server


@pytest.fixture
def client(server: Running, connect: Any) -> Any:  # noqa: F811
    """mem0's client, with memories of three users; two have the run r and the agent hr."""
    client = connect(server, server.key(scopes=ALL))
    for user, run, agent, topic in (("u1", "r", "hr", "a"), ("u1", "s", None, "b"), ("u2", "r", "hr", "a")):
        text = f"{WORDS['tea']}, said {user} in {run}"
        client.add(text, user_id=user, run_id=run, agent_id=agent, metadata={"k": topic}, infer=False)
    client.add(WORDS["car"], run_id="r", infer=False)
    yield client
    for entity in client.users()["results"]:
        server.do(server.memory.delete_all(entity["id"]))


def everything(client: Any) -> list[tuple[str | None, str | None]]:
    """Return user and run of each memory."""
    owners = [entity["id"] for entity in client.users()["results"]]
    found = client.get_all(filters={"OR": [{"user_id": "*"}, {"run_id": "*"}]})["results"] if owners else []
    return sorted(((one["user_id"], one["run_id"]) for one in found), key=str)


WHOLE: list[tuple[str | None, str | None]] = [("u1", "r"), ("u1", "s"), ("u2", "r"), (None, "r")]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"user_id": "u1"}, [("u2", "r"), (None, "r")]),
        ({"user_id": "u1", "run_id": "r"}, [("u1", "s"), ("u2", "r"), (None, "r")]),
        ({"run_id": "r"}, [("u1", "s")]),
        ({"run_id": " r "}, [("u1", "s")]),
        ({"agent_id": "hr"}, [("u1", "s"), (None, "r")]),
        ({"user_id": "u1", "agent_id": "*"}, [("u1", "s"), ("u2", "r"), (None, "r")]),
        ({"agent_id": "*"}, [("u1", "s"), (None, "r")]),
        ({"user_id": "*"}, [(None, "r")]),
        ({"user_id": "*", "run_id": "r"}, [("u1", "s"), (None, "r")]),
        ({"user_id": "*", "agent_id": "*", "app_id": "p", "run_id": "*"}, WHOLE),
        ({"user_id": "*", "agent_id": "*", "app_id": "*", "run_id": "*"}, []),
    ],
)
def test_delete_all_deletes_what_it_names(client: Any, given: dict[str, str], left: list[Any]) -> None:
    assert everything(client) == sorted(WHOLE, key=str)
    assert ("nothing" in client.delete_all(**given)["message"]) == (left == WHOLE)
    assert everything(client) == sorted(left, key=str)


@each_case(
    "given",
    [
        {"user_id": "u1", "metadata": {"k": "a"}},
        {"user_id": "u1", "filters": {"metadata": {"k": "a"}}},
        {"user_id": "u1", "categories": ["a"]},
        {"user_id": "u1", "memory_ids": ["x"]},
        {"user_id": "u1", "session_id": "r"},
        {"user_id": "u1", "run": "r"},
        {"user_id": "", "run_id": "r"},
        {"user_id": " ", "run_id": "r"},
        {"user_id": "u1", "org_id": "elsewhere"},
        {},
    ],
)
def test_delete_all_refuses_what_it_does_not_know(client: Any, given: dict[str, Any]) -> None:
    from mem0.exceptions import ValidationError

    with pytest.raises(ValidationError):
        client.delete_all(**given)
    assert everything(client) == sorted(WHOLE, key=str)


def test_deleting_nothing_is_not_called_a_success(client: Any) -> None:
    for given in ({"user_id": "nobody"}, {"run_id": "nothing"}, {"user_id": "u1", "run_id": "nothing"}):
        assert client.delete_all(**given)["message"] == "No memories matched: nothing was deleted"
    assert everything(client) == sorted(WHOLE, key=str)


def test_a_listing_and_a_search_by_run_show_what_delete_all_deletes(client: Any) -> None:
    listed = client.get_all(filters={"run_id": "r"})["results"]
    assert {(one["user_id"], one["run_id"]) for one in listed} == {("u1", "r"), ("u2", "r"), (None, "r")}
    found = client.search("green tea", filters={"agent_id": "hr"}, top_k=10)["results"]
    assert {one["user_id"] for one in found} == {"u1", "u2"}


def test_a_key_for_some_users_deletes_a_run_of_these_only(server: Running, client: Any, connect: Any) -> None:  # noqa: F811
    connect(server, server.key("u2", "u3", scopes=ALL)).delete_all(run_id="r")
    assert everything(client) == sorted([("u1", "r"), ("u1", "s"), (None, "r")], key=str)
    connect(server, server.key("u1", scopes=ALL)).delete_all(run_id="r")
    assert everything(client) == sorted([("u1", "s"), (None, "r")], key=str)


REFUSED: list[tuple[str, str, dict[str, Any], dict[str, Any] | None]] = [
    ("DELETE", "/v1/memories/", {"user_id": "u1", "metadata": "{}"}, None),
    ("DELETE", "/v1/memories/", {"user_id": "u1"}, {"metadata": {"k": "a"}}),
    ("DELETE", "/v1/memories/", {"user_id": ["u1", "u2"]}, None),
    ("DELETE", "/v1/memories/{id}/", {"delete_linked": "true"}, None),
    ("DELETE", "/v1/memories/{id}/", {"user_id": "u2"}, None),
    ("DELETE", "/v1/memories/{id}/", {}, {"user_id": "u2"}),
    ("DELETE", "/v2/entities/user/u1/", {"run_id": "r"}, None),
    ("DELETE", "/v2/entities/user/u1/", {}, {"run_id": "r"}),
    ("DELETE", "/v1/batch/", {}, {"memories": [{"memory_id": "{id}", "run_id": "r"}]}),
    ("DELETE", "/v1/batch/", {}, {"memories": [{"memory_id": "{id}"}], "user_id": "u2"}),
    ("DELETE", "/v1/batch/", {}, {"memories": [{"memory_id": "{id}"}, {"memory_id": "{id}"}]}),
    ("DELETE", "/v1/batch/", {"user_id": "u2"}, {"memories": [{"memory_id": "{id}"}]}),
    ("PUT", "/v1/batch/", {}, {"memories": [{"memory_id": "{id}", "text": "x", "immutable": True}]}),
    ("PUT", "/v1/batch/", {}, {"memories": [{"memory_id": "{id}", "text": "x"}, {"memory_id": "{id}", "text": "y"}]}),
    ("PUT", "/v1/memories/{id}/", {}, {"text": "x", "user_id": "u2"}),
    ("PUT", "/v1/memories/{id}/", {"version": "2"}, {"text": "x"}),
    ("POST", "/v3/memories/", {}, {"filters": {"user_id": "u1"}, "user_id": "u1"}),
    ("POST", "/v3/memories/", {}, {"filters": {"user_id": "u1"}, "show_expired": True}),
    ("POST", "/v3/memories/", {}, {"filters": {"user_id": "u1"}, "latest_only": False}),
    ("POST", "/v3/memories/", {"run_id": "r"}, {"filters": {"user_id": "u1"}}),
    ("POST", "/v3/memories/", {}, {"filters": {"user_id": {}}}),
    ("POST", "/v3/memories/search/", {}, {"query": "tea", "filters": {"user_id": "u1"}, "run_id": "r"}),
    ("POST", "/v3/memories/search/", {}, {"query": "tea", "filters": {"user_id": "u1"}, "rerank": True}),
    ("POST", "/v3/memories/search/", {}, {"query": "tea", "filters": {"user_id": "u1"}, "output_format": "v1.0"}),
    ("POST", "/v3/memories/add/", {}, {"messages": "x", "user_id": "u1", "custom_instructions": "none"}),
    ("POST", "/v3/memories/add/", {}, {"messages": "x", "user_id": "u1", "filters": {"user_id": "u2"}}),
    ("POST", "/v3/memories/add/", {}, {"messages": "x", "filters": {"user_id": "u1", "topic": "a"}}),
    ("GET", "/v1/memories/{id}/", {"user_id": "u2"}, None),
    ("GET", "/v1/memories/{id}/history/", {"limit": "1"}, None),
    ("GET", "/v1/entities/", {"type": "agent"}, None),
]


@each_case(("method", "path", "query", "body"), REFUSED)
def test_no_path_ignores_what_is_sent(
    server: Running, client: Any, method: str, path: str, query: dict[str, Any], body: dict[str, Any] | None
) -> None:
    name = client.get_all(filters={"user_id": "u1", "run_id": "r"})["results"][0]["id"]
    sent = (
        None if body is None else httpx.Request("POST", "http://x", json=body).content.replace(b"{id}", name.encode())
    )
    headers = {"Authorization": f"Bearer {server.key(scopes=ALL)}", "Content-Type": "application/json"}
    before = client.get(name)
    answer = httpx.request(
        method, server.url + path.replace("{id}", name), params=query, content=sent, headers=headers, timeout=30
    )
    assert answer.status_code == 422, answer.text
    assert everything(client) == sorted(WHOLE, key=str) and client.get(name) == before


def test_a_batch_is_done_whole_or_not_at_all(client: Any) -> None:
    """Also with memories of several users."""
    from mem0.exceptions import MemoryNotFoundError, ValidationError

    client.add(WORDS["cat"], user_id="u1", metadata={"k": "c"}, infer=False)
    found = client.get_all(filters={"OR": [{"user_id": "u1"}, {"user_id": "u2"}]})["results"]
    ids = [one["id"] for one in found]
    nobody = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(MemoryNotFoundError):
        client.batch_delete([{"memory_id": name} for name in (*ids, nobody)])
    with pytest.raises(MemoryNotFoundError):
        client.batch_update([{"memory_id": name, "text": f"new {name}"} for name in (*ids, nobody)])
    with pytest.raises(ValidationError):  # two memories of a user cannot say the same
        client.batch_update([{"memory_id": name, "text": "all the same"} for name in ids])
    with pytest.raises(ValidationError):
        client.batch_update([*({"memory_id": name, "text": f"new {name}"} for name in ids[1:]), {"memory_id": ids[0]}])
    assert [client.get(name)["memory"] for name in ids] == [one["memory"] for one in found]
    client.batch_update([{"memory_id": name, "text": f"new {name}", "metadata": {"n": "1"}} for name in ids])
    assert [client.get(name)["memory"] for name in ids] == [f"new {name}" for name in ids]
    assert [client.get(name)["metadata"] for name in ids] == [{**one["metadata"], "n": "1"} for one in found]
    client.batch_delete([{"memory_id": name} for name in ids])
    assert everything(client) == [(None, "r")]


async def test_a_batch_that_fails_in_the_store_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jiyi.compat.mem0.api import Everyone, Mem0
    from jiyi.store.repositories import deletions

    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        api = Mem0(memory=store, reach=Everyone(), erase=store.delete_all)
        ids = []
        for user in ("a", "b", "c"):
            added = await api.add(f"{user} likes tea", user_id=user, infer=False)
            ids.append(added["results"][0]["id"])
        remove, seen = deletions._remove, []

        def fail_at_last(session: Any, user_id: str, *rest: Any) -> Any:
            seen.append(user_id)
            if len(seen) == len(ids):
                raise NotFound("the store fails")
            return remove(session, user_id, *rest)

        monkeypatch.setattr(deletions, "_remove", fail_at_last)
        with pytest.raises(NotFound, match="the store fails"):
            await api.delete_many(ids)
        assert len(seen) == 3
        for name in ids:
            await api.get(name)


OWN_METHODS = ("add", "get", "get_all", "search", "update", "delete", "delete_all", "history", "reset")


@each_case("name", OWN_METHODS)
def test_every_argument_of_mem0s_class_is_one_of_ours(mem0: Any, name: str) -> None:  # noqa: F811
    theirs = inspect.signature(getattr(mem0.Memory, name)).parameters
    ours = inspect.signature(getattr(AsyncMemory, name)).parameters
    assert [argument for argument in theirs if argument != "kwargs" and argument not in ours] == []
    positional = [argument for argument, one in theirs.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert [
        argument for argument in positional if ours[argument].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD
    ] == []


@each_case(
    ("method", "args", "given"),
    [
        ("add", ("x",), {"user_id": "u", "prompt": "be brief"}),
        ("add", ("x",), {"user_id": "u", "memory_type": "procedural_memory"}),
        ("add", ("x",), {"user_id": ""}),
        ("search", ("x",), {"filters": {"user_id": "u"}, "explain": True}),
        ("search", ("x",), {"filters": {"user_id": "u"}, "rerank": True}),
        ("search", ("x",), {"filters": {"user_id": "u"}, "show_expired": True}),
        ("search", ("x",), {"filters": {"user_id": {}}}),
        ("get_all", (), {"filters": {"user_id": ""}}),
        ("get_all", (), {"filters": {"user_id": "u"}, "show_expired": True}),
        ("delete_all", (), {"user_id": "", "run_id": "r"}),
        ("delete_all", (), {}),
    ],
)
async def test_what_is_not_offered_is_refused(tmp_path: Path, method: str, args: Any, given: dict[str, Any]) -> None:
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        with pytest.raises(InvalidInput):
            await getattr(AsyncMemory(memory=store), method)(*args, **given)


async def test_ids_are_read_as_mem0_reads_them(tmp_path: Path) -> None:
    """Numbers are names, and spaces around a name do not count."""
    async with Store.open(tmp_path / "memory.db", embedder=WordEmbedder()) as store:
        memory = AsyncMemory(memory=store)
        await memory.add("I like tea", user_id=7, infer=False)  # type: ignore[arg-type]
        await memory.add("I like rain", user_id=" 7 ", infer=False)
        found = await memory.get_all(filters={"user_id": 7})
        assert [one["user_id"] for one in found["results"]] == ["7", "7"]
        await memory.delete_all(user_id=7)  # type: ignore[arg-type]
        assert (await memory.get_all(filters={"user_id": "7"}))["results"] == []
