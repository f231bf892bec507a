"""Memories can be filtered by their metadata: exactly, the same on every database and surface, before the limit."""

import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from jiyi import CandidateMemory, InvalidInput, Memory
from jiyi.agents.tools import MemoryTools
from jiyi.cli.app import app
from jiyi.compat.mem0 import AsyncMemory
from jiyi.testing import WordEmbedder
from rest import running

KEYS = ["p", "P", "a.b", "$.p", '"', "%", "p'--", "\\", "中😀", "", "é", "in"]
TEXTS = ["a", "b", "A", "", "1", "中", "😀", "\uffff", "%", "a'b", 'a"b', "\\", "true", "null", "[1]", "2026-05-01"]
NUMBERS = [0, 1, 2, -1, 10**15, 2**53, 0.1, 0.1 + 0.2, 0.3, 1.0, 1.5, -0.0, 1e-300]
scalars = st.sampled_from([*TEXTS, *NUMBERS, True, False, None])
values = scalars | st.sampled_from([10**30, 10**400, 1e300, [], [1, "a"], ["b", [1]], {"p": "a"}])
stored = st.lists(st.dictionaries(st.sampled_from(KEYS), values, max_size=3), min_size=1, max_size=5)
ranged = scalars.filter(lambda value: value is not None and not isinstance(value, bool))
operators = st.dictionaries(st.sampled_from(["gt", "gte", "lt", "lte"]), ranged, min_size=1, max_size=2) | st.one_of(
    st.fixed_dictionaries({"in": st.lists(scalars, max_size=3)}), st.fixed_dictionaries({"eq": scalars})
)
wanted = st.lists(st.dictionaries(st.sampled_from(KEYS), scalars | operators, max_size=2), min_size=4, max_size=8)
new_user = count()


def kind(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "text", type(None): "null"}
    return names.get(type(value), "other")


def equal(held: Any, value: Any) -> bool:
    parts = held if isinstance(held, list) else [held]
    return any(kind(part) == kind(value) and part == value for part in parts)


def holds(held: Any, operator: str, value: Any) -> bool:
    """State what the documentation says, in Python."""
    if operator == "in":
        return any(equal(held, one) for one in value)
    if operator == "eq":
        return equal(held, value)
    if kind(held) != kind(value):
        return False
    return bool({"gt": held > value, "gte": held >= value, "lt": held < value, "lte": held <= value}[operator])


def passes(metadata: dict[str, Any], conditions: dict[str, Any]) -> bool:
    return all(
        key in metadata and holds(metadata[key], operator, value)
        for key, condition in conditions.items()
        for operator, value in (condition if isinstance(condition, dict) else {"eq": condition}).items()
    )


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(stored=stored, asked=wanted)
async def test_it_is_exact_on_every_database(
    memory: Memory, stored: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    user_id = f"user {next(new_user)}"
    rows = [CandidateMemory(content=f"tea {at}", metadata=metadata) for at, metadata in enumerate(stored)]
    await memory.add(rows, user_id=user_id)
    for conditions in asked:
        expected = {f"tea {at}" for at, metadata in enumerate(stored) if passes(metadata, conditions)}
        listed = await memory.list(user_id=user_id, metadata=conditions)
        assert {item.content for item in listed} == expected, conditions
        assert await memory.count(user_id=user_id, metadata=conditions) == len(expected)
        hits = await memory.search("tea", user_id=user_id, metadata=conditions, limit=50)
        assert {hit.content for hit in hits} == expected, conditions


@pytest.fixture
async def projects(memory: Memory) -> AsyncIterator[Memory]:
    """A memory in which the best matches for "tea" belong to another project."""
    others = [CandidateMemory(content=f"tea {at}", metadata={"project": "other", "rank": at}) for at in range(30)]
    mine = CandidateMemory(content="for the meeting we buy biscuits and tea", metadata={"project": "apollo"})
    await memory.add([*others, mine], user_id="mei")
    yield memory


async def test_it_applies_before_the_limit_and_is_part_of_the_cache_key(projects: Memory) -> None:
    for _ in range(2):
        hits = await projects.search("tea", user_id="mei", limit=1, metadata={"project": "apollo"})
        assert [hit.content for hit in hits] == ["for the meeting we buy biscuits and tea"]
        hits = await projects.search("tea", user_id="mei", limit=1, metadata={"project": "other"})
        assert [hit.metadata["project"] for hit in hits] == ["other"]
    assert "biscuits" not in await projects.context("tea", user_id="mei", metadata={"project": "other"})
    assert "biscuits" in await projects.context("biscuits and tea", user_id="mei", metadata={"project": "apollo"})


async def test_a_change_of_metadata_counts_at_once(projects: Memory) -> None:
    [item] = await projects.list(user_id="mei", metadata={"project": "apollo"})
    await projects.update(item.id, user_id="mei", metadata={"project": "gemini"})
    assert not await projects.search("tea", user_id="mei", metadata={"project": "apollo"})
    assert len(await projects.search("tea", user_id="mei", metadata={"project": "gemini"})) == 1


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ("project = apollo", "metadata: must be an object"),
        ({"p": {}}, "metadata.p: has no operator"),
        ({"p": {"like": "a"}}, "metadata.p: has the operator 'like'; eq, in, gt, gte, lt, lte are known"),
        ({"p": ["a"]}, "metadata.p: compares with"),
        ({"p": {"in": "a"}}, "metadata.p: `in` needs a list"),
        ({"p": {"in": [["a"]]}}, "metadata.p: compares with"),
        ({"p": {"gt": True}}, "metadata.p: `gt` needs a number or a text"),
        ({"p": {"gt": None}}, "metadata.p: `gt` needs a number or a text"),
        ({"p": 2**53 + 1}, "numbers go up to"),
        ({"p": float("nan")}, "metadata: must be an object of plain JSON values"),
        ({"p": "\0"}, "metadata: contains a NUL"),
        ({"p": {"in": list(range(501))}}, "the limit is 500"),
        ({str(at): 1 for at in range(51)}, "the limit is 50"),
    ],
)
async def test_a_malformed_filter_is_an_error_that_names_it(path: Path, conditions: Any, problem: str) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for call in (memory.list, memory.count):
            with pytest.raises(InvalidInput, match=problem.replace("(", r"\(")):
                await call(user_id="mei", metadata=conditions)
        with pytest.raises(InvalidInput):
            await memory.search("tea", user_id="mei", metadata=conditions)


async def test_agents_filter_by_metadata(projects: Memory) -> None:
    tools = MemoryTools(projects, user_id="mei")
    everything = await tools.call("search_memories", {"query": "tea"})
    assert '"tea 29"' in everything.text
    found = await tools.call("search_memories", {"query": "tea", "metadata": {"project": "apollo"}})
    assert "biscuits" in found.text
    assert "tea 29" not in found.text
    for conditions in ({"project": "apollo"}, json.dumps({"project": "apollo"})):
        listed = await tools.call("list_memories", {"metadata": conditions})
        assert "biscuits" in listed.text
        assert "tea 29" not in listed.text
    refused = await tools.call("search_memories", {"query": "tea", "metadata": {"project": {"like": "a"}}})
    assert "like" in refused.text


async def test_mem0_narrows_the_search_and_keeps_its_tree(projects: Memory) -> None:
    mem0 = AsyncMemory(memory=projects)

    async def found(*conditions: dict[str, Any], top_k: int = 50) -> int:
        tree = {"AND": [{"user_id": "mei"}, *conditions]}
        return len((await mem0.search("tea", filters=tree, top_k=top_k))["results"])

    assert await found({"project": "apollo"}, top_k=1) == 1
    assert await found({"metadata": {"project": {"in": ["apollo", "gemini"]}}}) == 1
    assert await found({"rank": {"gte": 27}}) == 3
    assert await found({"rank": {"gte": 20}}, {"rank": {"gte": 28}}) == 2, "both hold"
    assert await found({"OR": [{"rank": 1}, {"project": "apollo"}]}) == 2
    assert await found({"NOT": [{"project": "other"}]}) == 1
    assert await found({"rank": None}) == 1, "null is what is missing, as in mem0"


def test_the_command_line_filters_by_metadata(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_URL", str(path))
    cli = CliRunner()
    for project in ("apollo", "gemini"):
        made = cli.invoke(app, ["add", f"tea for {project}", "--metadata", json.dumps({"project": project})])
        assert made.exit_code == 0, made.output
    for command in (["search", "tea"], ["list"]):
        shown = cli.invoke(app, [*command, "--metadata", '{"project": "apollo"}'])
        assert "apollo" in shown.output
        assert "gemini" not in shown.output
    assert cli.invoke(app, ["list", "--metadata", "["]).exit_code != 0


async def test_the_server_and_its_client_filter_by_metadata(path: Path) -> None:
    with running(path) as server:
        async with Memory.open(server.url) as client:
            for project in ("apollo", 'g"emini&'):
                made = CandidateMemory(content=f"tea for {project}", metadata={"project": project, "rank": 4})
                await client.add([made], user_id="mei")
            for project in ("apollo", 'g"emini&'):
                conditions: dict[str, Any] = {"project": {"in": [project]}, "rank": {"gte": 4, "lt": 5}}
                hits = await client.search("tea", user_id="mei", metadata=conditions)
                assert [hit.content for hit in hits] == [f"tea for {project}"]
                page = await client.list(user_id="mei", metadata=conditions)
                assert [item.content for item in page] == [f"tea for {project}"]
                assert await client.count(user_id="mei", metadata=conditions) == 1
                assert project[-4:] in await client.context("tea", user_id="mei", metadata=conditions)
            with pytest.raises(InvalidInput, match="like"):
                await client.list(user_id="mei", metadata={"project": {"like": "a"}})
        async with httpx.AsyncClient(base_url=server.url, params={"user_id": "mei"}) as web:
            for wrong in ("[", "[1]", '{"p": {"like": 1}}'):
                answer = await web.get("/v1/memories", params={"metadata": wrong})
                assert (answer.status_code, "metadata" in answer.text) == (422, True), answer.text
            answer = await web.post("/v1/search", json={"query": "tea", "metadata": {"p": {"like": 1}}})
            assert (answer.status_code, "like" in answer.text) == (422, True)
