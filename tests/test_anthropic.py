"""Claude's memory tool over a workspace, driven by Anthropic's own package."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import jiyi.sync
from jiyi import Memory, WorkspaceError
from jiyi.agents.memory_folder import MemoryFolder
from jiyi.files import safe
from jiyi.testing import ScriptedModel, WordEmbedder

ROOT = "/memories"


@pytest.fixture
async def memory(path: Path, tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(
        path, embedder=WordEmbedder(64), workspace=tmp_path / "notes", workspace_user="mei"
    ) as memory:
        yield memory


@pytest.fixture
def context(memory: Memory, tmp_path: Path) -> Path:
    return tmp_path / "notes/context"


@pytest.fixture
def folder(memory: Memory) -> MemoryFolder:
    return MemoryFolder(memory, user_id="mei")


async def refused(folder: MemoryFolder, **command: Any) -> str:
    with pytest.raises((WorkspaceError, ValueError)) as caught:
        await folder.run(command)
    return str(caught.value)


async def found(memory: Memory, query: str) -> list[str]:
    return [hit.summary for hit in (await memory.search(query, user_id="mei", search_mode="keyword")).hits]


# -- Anthropic's package ----------------------------------------------------------------------------------------------


SCRIPT = (
    {"command": "view", "path": ROOT},
    {"command": "create", "path": f"{ROOT}/travel.md", "file_text": "# Travel\n\nMei flies to Osaka in May.\n"},
    {"command": "str_replace", "path": f"{ROOT}/travel.md", "old_str": "Osaka", "new_str": "京都"},
    {"command": "insert", "path": f"{ROOT}/travel.md", "insert_line": 3, "insert_text": "She takes the night train."},
    {"command": "view", "path": f"{ROOT}/travel.md", "view_range": [3, 4]},
    {"command": "rename", "old_path": f"{ROOT}/travel.md", "new_path": f"{ROOT}/trips/may.md"},
    {"command": "create", "path": f"{ROOT}/../../escape.md", "file_text": "out"},
)
ASKED: dict[str, Any] = {
    "model": "claude-test",
    "max_tokens": 100,
    "betas": ["context-management-2025-06-27"],
    "messages": [{"role": "user", "content": "Remember my trip"}],
}


def assert_done(model: ScriptedModel) -> None:
    assert model.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [request["messages"][-1]["content"][0] for request in model.requests[1:]]
    told = [one["content"] if isinstance(one["content"], str) else one["content"][0]["text"] for one in results]
    assert told[0].startswith("Here're the files and directories up to 2 levels deep in /memories")
    assert told[1] == "File created successfully at: /memories/travel.md"
    assert "     3\tMei flies to 京都 in May." in told[2]
    assert told[4].endswith("     3\tMei flies to 京都 in May.\n     4\tShe takes the night train.")
    assert told[5] == "Successfully renamed /memories/travel.md to /memories/trips/may.md"
    assert [bool(one.get("is_error")) for one in results] == [False] * 6 + [True]


async def test_the_runner_of_the_package_drives_it(memory: Memory, context: Path) -> None:
    from anthropic import AsyncAnthropic  # a large package

    from jiyi.agents.anthropic import AsyncMemoryTool

    with ScriptedModel([*({"memory": command} for command in SCRIPT), "Done."]) as model:
        client = AsyncAnthropic(api_key="k", base_url=model.root_url)
        runner = client.beta.messages.tool_runner(tools=[AsyncMemoryTool(memory, user_id="mei")], **ASKED)
        assert (await runner.until_done()).content[0].text == "Done."  # type: ignore[union-attr]
    assert_done(model)
    assert (context / "trips/may.md").read_text(encoding="utf-8").count("京都") == 1
    assert not list(context.parent.parent.glob("escape*"))
    [hit] = (await memory.search("京都", user_id="mei", search_mode="keyword")).hits
    assert (hit.memory_type, hit.memory_key) == ("file", "/memories/trips/may.md")
    assert "night train" in hit.content_preview


def test_the_synchronous_runner_drives_it_too(path: Path, tmp_path: Path) -> None:
    from anthropic import Anthropic
    from anthropic.lib.tools import ToolError

    from jiyi.agents.anthropic import MemoryTool

    with (
        ScriptedModel([*({"memory": command} for command in SCRIPT), "Done."]) as model,
        jiyi.sync.Memory.open(path, embedder=WordEmbedder(64), workspace=tmp_path, workspace_user="mei") as memory,
    ):
        tool = MemoryTool(memory, user_id="mei")
        client = Anthropic(api_key="k", base_url=model.root_url)
        assert client.beta.messages.tool_runner(tools=[tool], **ASKED).until_done() is not None
        assert_done(model)
        [hit] = memory.search("京都", user_id="mei", search_mode="keyword").hits
        assert hit.memory_key == "/memories/trips/may.md"
        with pytest.raises(ToolError, match="does not exist"):
            tool.call({"command": "delete", "path": f"{ROOT}/nothing.md"})


# -- lines of memory.md -----------------------------------------------------------------------------------------------


async def test_what_claude_writes_into_memory_md_is_a_memory(memory: Memory, folder: MemoryFolder) -> None:
    await memory.add("likes green tea", user_id="mei", memory_type="preference")
    shown = await folder.view(f"{ROOT}/memory.md")
    assert "likes green tea" in shown
    line = next(int(text.split("\t")[0]) for text in shown.splitlines() if "likes green tea" in text)
    await folder.insert(f"{ROOT}/memory.md", line, "- 对花生过敏")
    assert await found(memory, "花生") == ["对花生过敏"]
    await folder.str_replace(f"{ROOT}/memory.md", "likes green tea", "likes oolong tea")
    [kept] = (await memory.list(user_id="mei", memory_types=["preference"], limit=1)).items[:1]
    assert await found(memory, "oolong") == ["likes oolong tea"]
    assert await found(memory, "green") == []
    assert [revision.actor for revision in await memory.history(kept.id, user_id="mei")][-1] == "edited by hand"


async def test_a_line_under_any_heading_or_none_is_a_memory(folder: MemoryFolder, memory: Memory) -> None:
    text = "# Notes\nMei likes tea\n- allergic to peanuts\n\n## Travel\n1. flies to Kyoto in May\n## Facts\n- has a cat"
    told = await folder.run({"command": "create", "path": f"{ROOT}/memory.md", "file_text": text})
    assert "3 lines were moved" in told
    await folder.run({"command": "insert", "path": f"{ROOT}/memory.md", "insert_line": 0, "insert_text": "住在柏林"})
    kept = {item.content: item.memory_type for item in (await memory.list(user_id="mei")).items}
    assert kept == dict.fromkeys(
        ("Mei likes tea", "allergic to peanuts", "flies to Kyoto in May", "has a cat", "住在柏林"), "fact"
    )
    shown = await folder.run({"command": "view", "path": f"{ROOT}/memory.md"})
    assert "# Notes" in shown and "## Travel" in shown and shown.count("Mei likes tea") == 1


async def test_memory_md_cannot_be_removed_or_moved(memory: Memory, folder: MemoryFolder) -> None:
    await memory.add("likes green tea", user_id="mei", memory_type="preference")
    await folder.view(ROOT)
    assert "cannot be removed" in await refused(folder, command="delete", path=f"{ROOT}/memory.md")
    moved = {"command": "rename", "old_path": f"{ROOT}/memory.md", "new_path": f"{ROOT}/x.md"}
    assert "cannot be removed" in await refused(folder, **moved)
    assert "cannot" in (await refused(folder, command="delete", path=ROOT)).lower()
    assert "already exists" in await refused(folder, command="create", path=f"{ROOT}/memory.md", file_text="x")
    assert await found(memory, "green") == ["likes green tea"]


async def test_too_much_gone_at_once_is_kept_and_claude_is_told(memory: Memory, folder: MemoryFolder) -> None:
    for number in range(10):
        await memory.add(f"fact number {number}", user_id="mei", memory_type="fact")
    text = "\n".join(line.partition("\t")[2] for line in (await folder.view(f"{ROOT}/memory.md")).splitlines()[1:])
    start, end = text.index("- fact number 0") if "- fact number 0" in text else 0, len(text)
    said = await folder.str_replace(f"{ROOT}/memory.md", text[start:end].rstrip("\n"), "")
    assert "are kept although their lines are gone" in said
    assert await memory.count(user_id="mei", memory_types=["fact"]) == 10


# -- other files ------------------------------------------------------------------------------------------------------


async def test_a_file_is_one_memory_with_a_history(memory: Memory, folder: MemoryFolder, context: Path) -> None:
    note = f"{ROOT}/notes.md"
    await folder.create(note, "Anna likes jazz\n")
    await folder.str_replace(note, "jazz", "爵士乐")
    (context / "notes.md").write_text("Anna likes blues\n", encoding="utf-8")  # a person, with an editor
    await folder.view(ROOT)
    kept = await memory.get(note, user_id="mei")
    assert (kept.memory_type, kept.content) == ("file", "Anna likes blues")
    assert len(await memory.history(kept.id, user_id="mei")) == 3
    assert not (context / "memory.md").exists(), "a file is no line"
    await folder.str_replace(note, "Anna likes blues\n", "")
    assert await found(memory, "blues") == [], "a file without text says nothing"
    await folder.delete(note)
    assert (await memory.get(note, user_id="mei")).status == "archived"
    await folder.create(note, "Anna is back\n")
    assert await found(memory, "Anna") == ["Anna is back"]


@pytest.mark.parametrize("accident", ["emptied folder", "missing folder", "a third"])
async def test_files_that_vanish_at_once_are_kept_and_claude_is_told(
    memory: Memory, folder: MemoryFolder, context: Path, accident: str
) -> None:
    for number in range(6):
        await folder.create(f"{ROOT}/people/{number}.md", f"person number {number}")
    if accident == "missing folder":
        shutil.rmtree(context)
    for number in range(2 if accident == "a third" else 6):
        (context / f"people/{number}.md").unlink(missing_ok=True)
    seen = await folder.view(ROOT)
    told = await folder.create(f"{ROOT}/new.md", "new")
    for notes in (seen, told):
        assert "\nNote: " in notes and "are gone at once" in notes and "/memories/people/0.md" in notes
    assert await memory.count(user_id="mei", memory_types=["file"]) == 7
    await folder.delete(f"{ROOT}/people/1.md")
    assert (await memory.get(f"{ROOT}/people/1.md", user_id="mei")).status == "archived", "now it is meant"
    await folder.delete(f"{ROOT}/people")
    assert [item.content for item in (await memory.list(user_id="mei", memory_types=["file"])).items] == ["new"]
    assert "does not exist" in await refused(folder, command="delete", path=f"{ROOT}/people")


async def test_one_file_removed_or_a_folder_moved_by_hand_is_believed(
    memory: Memory, folder: MemoryFolder, context: Path
) -> None:
    for number in range(6):
        await folder.create(f"{ROOT}/people/{number}.md", f"person number {number}")
    (context / "people/0.md").unlink()
    await folder.view(ROOT)
    assert (await memory.get(f"{ROOT}/people/0.md", user_id="mei")).status == "archived"
    (context / "people").rename(context / "friends")
    assert "gone" not in await folder.create(f"{ROOT}/new.md", "new")
    found = await memory.list(user_id="mei", memory_types=["file"])
    assert sorted(item.memory_key for item in found.items) == [
        *(f"{ROOT}/friends/{number}.md" for number in range(1, 6)),
        f"{ROOT}/new.md",
    ]


async def test_folders(folder: MemoryFolder, memory: Memory) -> None:
    await folder.create(f"{ROOT}/people/anna.md", "Anna: violin")
    await folder.create(f"{ROOT}/people/old/bo.md", "Bo: piano")
    shown = await folder.view(ROOT)
    assert "/memories/people/anna.md" in shown and "/memories/people/old/" in shown and "bo.md" not in shown
    assert "bo.md" in await folder.view(f"{ROOT}/people/")
    await folder.rename(f"{ROOT}/people", f"{ROOT}/friends")
    assert (await memory.get(f"{ROOT}/friends/old/bo.md", user_id="mei")).content == "Bo: piano"
    assert "lies inside" in await refused(
        folder, command="rename", old_path=f"{ROOT}/friends", new_path=f"{ROOT}/friends/x"
    )
    await folder.delete(f"{ROOT}/friends")
    assert await memory.count(user_id="mei", memory_types=["file"]) == 0


async def test_what_the_tool_says_when_it_cannot(folder: MemoryFolder) -> None:
    await folder.create(f"{ROOT}/a.md", "one\ntwo\none\n")
    say = f"{ROOT}/a.md"
    assert "already exists" in await refused(folder, command="create", path=say, file_text="")
    assert "in lines: 1, 3" in await refused(folder, command="str_replace", path=say, old_str="one", new_str="x")
    assert "did not appear verbatim" in await refused(folder, command="str_replace", path=say, old_str="three")
    assert "[0, 3]" in await refused(folder, command="insert", path=say, insert_line=4, insert_text="x")
    assert "does not exist" in await refused(folder, command="view", path=f"{ROOT}/b.md")
    assert "already exists" in await refused(folder, command="rename", old_path=say, new_path=say)
    assert "must be one of" in await refused(folder, command="chmod", path=say)
    assert "is needed" in await refused(folder, command="insert", path=say)
    assert "[1, 4]" in await refused(folder, command="view", path=say, view_range=[9, 12])
    assert "two line numbers" in await refused(folder, command="view", path=say, view_range=5)
    assert "[0, 3]" in await refused(folder, command="insert", path=say, insert_line=True, insert_text="x")
    assert "not a valid name" in await refused(folder, command="create", path=f"{ROOT}//b.md", file_text="x")


@pytest.mark.parametrize(
    "asked",
    [
        "/etc/passwd",
        "memories/a.md",
        "/memoriesx/a.md",
        "/memories/../secret.md",
        "/memories/a/../../secret.md",
        "/memories/./a.md",
        "/memories/.jiyi/workspace.json",
        "/memories/a\x00.md",
        "/memories/a\n.md",
        "/memories/..\\secret.md",
        "/memories/" + "x" * 300,
        "/memories/" + "/".join("abcdefghijkl"),
        "/memories/" + "/".join(["y" * 60] * 5),
        "/memories/link/secret.md",
        "",
        None,
        7,
    ],
)
async def test_nothing_outside_can_be_named(folder: MemoryFolder, context: Path, asked: Any, tmp_path: Path) -> None:
    await folder.create(f"{ROOT}/a.md", "mine")
    (tmp_path / "secret.md").write_text("secret")
    (context / "link").symlink_to(tmp_path)
    for command in (
        {"command": "view", "path": asked},
        {"command": "create", "path": asked, "file_text": "x"},
        {"command": "str_replace", "path": asked, "old_str": "secret", "new_str": "x"},
        {"command": "insert", "path": asked, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": asked},
        {"command": "rename", "old_path": asked, "new_path": f"{ROOT}/b.md"},
        {"command": "rename", "old_path": f"{ROOT}/a.md", "new_path": asked},
    ):
        assert await refused(folder, **command)
    assert (tmp_path / "secret.md").read_text() == "secret"
    assert (context / "a.md").read_text() == "mine"


async def test_users_have_folders_of_their_own(path: Path, tmp_path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(64), workspace=tmp_path / "all") as memory:
        mei, bo = (MemoryFolder(memory, user_id=user) for user in ("mei", "bo"))
        await mei.create(f"{ROOT}/a.md", "Mei's diary")
        assert "does not exist" in await refused(bo, command="view", path=f"{ROOT}/a.md")
        assert "a.md" not in await bo.view(ROOT)
        assert (await memory.search("diary", user_id="bo")).hits == ()


async def test_a_file_is_written_while_no_sync_removes_temporary_files(
    folder: MemoryFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_file, tried = safe.replace_file, []

    def replace_with_a_sync_beside_it(path: Path, *given: Any, **options: Any) -> None:
        workspace = folder._workspace
        with pytest.raises(WorkspaceError, match="locked"), safe.lock(workspace.lock_path("mei"), wait_s=0):
            pass
        tried.append(path.name)
        replace_file(path, *given, **options)

    monkeypatch.setattr(safe, "replace_file", replace_with_a_sync_beside_it)
    await folder.run({"command": "create", "path": f"{ROOT}/travel.md", "file_text": "Mei flies to Osaka in May.\n"})
    assert "travel.md" in tried and (tmp_path / "notes/context/travel.md").read_text()
