"""Names of an earlier version work, with a warning, and mean what they meant; two names for one value are an error."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import jiyi.sync
from jiyi import CandidateMemory, InvalidInput, Memory, Message, VersionConflict
from jiyi.cli.app import app
from jiyi.testing import WordEmbedder
from rest import running

NAIVE = datetime(2024, 5, 1)  # noqa: DTZ001
OLD: Any = CandidateMemory  # a type checker refuses the old names


def test_a_candidate_takes_its_old_names_with_a_warning() -> None:
    with pytest.warns(DeprecationWarning, match="'text' is now 'content'"):
        made = OLD(text="喜欢绿茶", memory_type="preference")
    with pytest.warns(DeprecationWarning, match="'type' is now 'memory_type'"):
        assert OLD(content="喜欢绿茶", type="preference") == made
    assert made == CandidateMemory(content="喜欢绿茶", memory_type="preference")
    with pytest.raises(InvalidInput, match="leave 'text' out"):
        OLD(text="likes tea", content="likes coffee")


async def test_an_object_with_content_or_text_is_a_candidate_unless_somebody_says_it(memory: Memory) -> None:
    for given in ({"content": "likes tea", "memory_type": "preference"}, {"text": "likes tea", "type": "preference"}):
        added = await memory.add(given, user_id="mei")
        assert [item.memory_type for item in added.memories] == ["preference"]
    assert await memory.count(user_id="mei") == 1
    with pytest.raises(InvalidInput, match="leave 'text' out"):
        await memory.add({"content": "a", "text": "b"}, user_id="mei")
    await memory.add({"role": "user", "content": "我喜欢咖啡"}, user_id="mei")
    assert [message.text for message in (await memory.messages(user_id="mei"))] == ["我喜欢咖啡"]


@pytest.mark.parametrize("make", [CandidateMemory, Message])
def test_a_wrong_field_of_a_value_is_an_error_of_ours(make: Any) -> None:
    said = {"text": "likes tea"} if make is Message else {"content": "likes tea"}
    time = "sent_at" if make is Message else "occurred_at"
    with pytest.raises(InvalidInput, match=f"{time}: has no time zone; use datetime.now"):
        make(**said, **{time: NAIVE})
    with pytest.raises(InvalidInput, match=r"^(text|content): Field required$"):
        make()


async def use_old_names(memory: Any) -> None:
    """Use each old name of `update`, `update_many`, `restore` and `undo`."""
    made = (await memory.add("likes tea", user_id="mei")).memories[0]
    with pytest.warns(DeprecationWarning, match="'version' is now 'expected_version'"):
        await memory.update(made.id, user_id="mei", content="likes coffee", version=1)
    with pytest.warns(DeprecationWarning), pytest.raises(VersionConflict):
        await memory.update(made.id, user_id="mei", content="likes milk", version=1)
    with pytest.warns(DeprecationWarning, match="'version' is now 'to_version'"):
        assert (await memory.restore(made.id, user_id="mei", version=1)).content == "likes tea"
    with pytest.raises(InvalidInput, match="leave 'version' out"):
        await memory.restore(made.id, user_id="mei", version=1, to_version=2)
    await memory.update(made.id, user_id="mei", content="likes milk", actor="crawler", expected_version=3)
    with pytest.warns(DeprecationWarning, match="'actor' is now 'source_actor'"):
        plan = await memory.maintenance.undo_plan(actor="crawler", user_id="mei")
    assert [step.memory_id for step in plan.steps] == [made.id]
    with pytest.warns(DeprecationWarning, match="'by' is now 'actor'"):
        await memory.maintenance.undo(source_actor="crawler", user_id="mei", by="mei")
    assert (await memory.get(made.id, user_id="mei")).content == "likes tea"
    with pytest.raises(InvalidInput, match="source_actor"):
        await memory.maintenance.undo(actor="crawler", user_id="mei")


async def test_verbs_take_old_names_with_a_warning(memory: Memory) -> None:
    await use_old_names(memory)
    [made] = await memory.list(user_id="mei")
    with pytest.warns(DeprecationWarning, match="'version' is now 'expected_version'"):
        await memory.update_many([{"memory_id": made.id, "tags": ["drink"], "version": 5}], user_id="mei")
    assert (await memory.history(made.id, user_id="mei"))[-2].actor == "mei"


async def test_keys_are_made_by_an_actor(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        first = await memory.keys.create("first", all_users=True)
        with pytest.warns(DeprecationWarning, match="'by' is now 'actor'"):
            await memory.keys.create("second", user_ids=["mei"], by=first.id)  # type: ignore[call-arg]
        await memory.keys.create("third", user_ids=["mei"], actor=first.id)
        assert [entry.key_id for entry in await memory.keys.audit()] == [first.id, first.id, None]


def test_synchronous_verbs_take_old_names(path: Path) -> None:
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
        made = memory.add("likes tea", user_id="mei").memories[0]
        with pytest.warns(DeprecationWarning):
            memory.update(made.id, user_id="mei", content="likes coffee", version=1)  # type: ignore[call-arg]
        with pytest.warns(DeprecationWarning):
            back = memory.restore(made.id, user_id="mei", version=1)  # type: ignore[call-arg]
        assert back.content == "likes tea"


async def test_clients_and_requests_take_old_names(path: Path) -> None:
    with running(path) as server:
        async with Memory.open(server.url) as client:
            await use_old_names(client)
        with server.client() as web:
            who = {"user_id": "bo"}
            old = [{"text": "likes tea", "type": "preference", "occurred_at": "2024-05-01T00:00:00Z"}]
            new = [{"content": "likes tea", "memory_type": "preference", "occurred_at": "2024-05-01T00:00:00Z"}]
            [made] = web.post("/v1/memories", params=who, json={"candidates": old}).json()["memories"]
            again = web.post("/v1/memories", params=who, json={"candidates": new}).json()
            assert (made["memory_type"], again["created"]) == ("preference", 0)
            address = f"/v1/memories/{made['id']}"
            web.patch(address, params=who, json={"content": "likes coffee", "actor": "crawler"})
            answer = web.post(f"{address}/restore", params=who, json={"version": 1, "to_version": 1})
            assert (answer.status_code, "leave 'version' out" in answer.text) == (422, True)
            assert web.post(f"{address}/restore", params=who, json={"version": 1}).json()["content"] == "likes tea"
            changes = [{"memory_id": made["id"], "tags": ["drink"], "version": 3}]
            assert web.post("/v1/memories/update", params=who, json={"changes": changes}).status_code == 200
            plan = web.post("/v1/undo/plan", params=who, json={"actor": "crawler"}).json()
            assert "crawler" in plan["why"]
            late = [{"role": "user", "content": "hi", "sent_at": "2024-05-01T00:00:00"}]
            answer = web.post("/v1/memories", params=who, json={"messages": late})
            assert answer.json()["errors"][0] == {
                "argument": "body.messages.0.sent_at",
                "problem": "has no time zone; use datetime.now(UTC) or .replace(tzinfo=…)",
            }


def test_the_command_line_takes_old_names(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_URL", str(path))
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
        made = memory.add("likes tea", user_id="default", occurred_at=datetime(2024, 5, 1, tzinfo=UTC)).memories[0]
    cli = CliRunner()
    for arguments in (
        ["update", made.id, "--content", "likes coffee", "--version", "1", "--actor", "crawler"],
        ["restore", made.id, "--version", "1"],
        ["undo", "--actor", "crawler", "--dry-run"],
    ):
        done = cli.invoke(app, arguments)
        assert done.exit_code == 0, done.output
