"""Files and index agree, whoever changed what: a person in an editor, or the engine."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from conftest import verbatim
from jiyi import InvalidInput, Memory, MemoryItem, SyncReport, WorkspaceError
from jiyi.ids import new_id
from jiyi.keep.erase import erase
from jiyi.testing import FailingEmbedder, WordEmbedder
from support import contents, dump, stored


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture
async def memory(path: Path, folder: Path) -> AsyncIterator[Memory]:
    """Files are written when a test says so."""
    async with open_at(path, folder) as memory:
        memory._engine.store.database.after_write = lambda users: None
        yield memory


def open_at(where: str | Path, folder: Path, **options: object) -> Memory:
    return Memory.open(
        where,
        settings=verbatim(),
        embedder=WordEmbedder(512),
        workspace=folder,
        workspace_user="mei",
        **options,  # type: ignore[arg-type]
    )


async def sync(memory: Memory, **options: bool) -> SyncReport:
    [report] = await memory.workspace.sync(user_id="mei", **options)
    return report


async def known(memory: Memory) -> dict[str, MemoryItem]:
    return {item.content: item for item in await stored(memory)}


def actions(report: SyncReport) -> list[str]:
    return [step.action for step in report.steps]


def note(folder: Path, name: str = "memory") -> Path:
    return folder / f"context/{name}.md"


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, (old, text)
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def line_with(path: Path, text: str) -> str:
    [line] = [line for line in path.read_text(encoding="utf-8").splitlines() if text in line]
    return line


async def settled(memory: Memory) -> None:
    """A sync changes nothing any more, neither here nor there."""
    before = await stored(memory)
    files = memory.workspace.files.workspace.root
    texts = {path: path.read_bytes() for path in files.rglob("*.md")}
    assert (await sync(memory)).steps == ()
    assert {path: path.read_bytes() for path in files.rglob("*.md")} == texts
    assert await stored(memory) == before


# -- from the engine into the files -----------------------------------------------------------------------------------


async def test_memories_become_lines_under_the_heading_of_their_type(memory: Memory, folder: Path) -> None:
    await memory.add("喝绿茶", user_id="mei", memory_type="preference", importance=0.8, tags=["饮食"])
    await memory.add("has a cat", user_id="mei")
    await memory.add("back up, then migrate", user_id="mei", memory_type="lesson")
    await memory.add("run a marathon", user_id="mei", memory_type="goal")
    await memory.add([{"role": "user", "content": "hello"}], user_id="mei")
    await sync(memory)
    text = note(folder).read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line.startswith("##")] == [
        "## Preferences",
        "## Facts",
        "## goal <!-- jiyi:type=goal -->",
    ]
    assert "importance=0.8 tags=饮食 -->" in line_with(note(folder), "喝绿茶")
    assert "back up, then migrate" in note(folder, "learnings").read_text(encoding="utf-8")
    assert "hello" not in text
    await settled(memory)


async def test_the_files_follow_without_being_asked(path: Path, folder: Path) -> None:
    async with open_at(path, folder) as memory:
        await memory.add("has a cat", user_id="mei")
        await memory.add("has a dog", user_id="mei")
    assert "has a cat" in note(folder).read_text(encoding="utf-8"), "closing waits for it"
    assert "has a dog" in note(folder).read_text(encoding="utf-8")


async def test_files_that_nobody_changed_are_not_noted_again(path: Path, folder: Path) -> None:
    async with open_at(path, folder) as memory:
        await memory.add("likes jasmine tea", user_id="mei")
        await sync(memory)
    before = dump(path)["files"]
    async with open_at(path, folder) as memory:
        assert (await sync(memory)).steps == ()
    assert dump(path)["files"] == before


async def test_changes_of_the_engine_appear(memory: Memory, folder: Path) -> None:
    for text in ("has a cat", "has a dog", "has a bird", "has a fish"):
        await memory.add(text, user_id="mei")
    await sync(memory)
    there = await known(memory)
    await memory.update(there["has a cat"].id, user_id="mei", content="has two cats", importance=0.9, tags=["pets"])
    await memory.update(there["has a dog"].id, user_id="mei", status="archived")
    await memory.update(there["has a bird"].id, user_id="mei", memory_type="skill")
    await memory.delete(there["has a fish"].id, user_id="mei")
    await sync(memory)
    text = note(folder).read_text(encoding="utf-8")
    assert line_with(note(folder), "has two cats").endswith("importance=0.9 tags=pets -->")
    assert "dog" not in text and "bird" not in text and "fish" not in text
    assert "has a bird" in note(folder, "learnings").read_text(encoding="utf-8")
    await settled(memory)


async def test_what_a_person_wrote_stays_where_it_is(memory: Memory, folder: Path) -> None:
    note(folder).parent.mkdir(parents=True, exist_ok=True)
    own = (
        "---\ntitle: 我的记忆\n---\n# Mine\r\n\r\nprose\n\n## Facts\n- written by me\n\n"
        "| a |\n|---|\n\n```\n- x\n```\nend"
    )
    note(folder).write_bytes(own.encode())
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    text = note(folder).read_bytes().decode()
    mine = line_with(note(folder), "has a cat")
    marked = line_with(note(folder), "written by me")
    assert text.replace(mine + "\n", "").replace(marked, "- written by me") == own
    await settled(memory)


# -- from the files into the engine -----------------------------------------------------------------------------------


async def test_a_new_bullet_becomes_a_memory(memory: Memory, folder: Path) -> None:
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    edit(note(folder), ("## Facts\n", "## Facts\n\n- 住在上海\n  浦东新区\n"))
    assert contents(await memory.search("浦东", user_id="mei"))[0] == "住在上海\n浦东新区", "found without being told"
    made = (await known(memory))["住在上海\n浦东新区"]
    assert made.memory_type == "fact" and made.id in line_with(note(folder), "住在上海")
    [revision] = await memory.history(made.id, user_id="mei")
    assert revision.actor == "edited by hand" and "memory.md" in str(revision.reason)
    await settled(memory)


async def test_an_edited_line_updates_its_memory(memory: Memory, folder: Path) -> None:
    receipt = await memory.add("lives in Berlin", user_id="mei")
    await sync(memory)
    edit(note(folder), ("lives in Berlin", "lives in Munich"), (" -->\n", " importance=0.9 tags=home -->\n"))
    assert actions(await sync(memory)) == ["update"]
    item = await memory.get(receipt.memories[0].id, user_id="mei")
    assert (item.content, item.importance, item.tags) == ("lives in Munich", 0.9, ("home",))
    assert contents(await memory.search("Munich", user_id="mei")) == ["lives in Munich"]
    history = await memory.history(item.id, user_id="mei")
    assert [(one.action, one.actor) for one in history] == [("add", "user"), ("update", "edited by hand")]
    await settled(memory)


async def test_a_removed_line_archives_its_memory_and_can_come_back(memory: Memory, folder: Path) -> None:
    for at in range(10):
        await memory.add(f"fact number {at}", user_id="mei")
    await sync(memory)
    line = line_with(note(folder), "number 3")
    edit(note(folder), (line + "\n", ""))
    assert actions(await sync(memory)) == ["archive"]
    [archived] = await stored(memory, status="archived")
    assert archived.content == "fact number 3"
    await settled(memory)
    edit(note(folder), ("## Facts\n", f"## Facts\n\n{line}\n"))
    assert actions(await sync(memory)) == ["restore"]
    assert (await known(memory))["fact number 3"].id == archived.id
    await settled(memory)
    await memory.update(archived.id, user_id="mei", status="archived")
    await sync(memory)
    await memory.restore(archived.id, user_id="mei")
    await sync(memory)
    assert "number 3" in note(folder).read_text(encoding="utf-8"), "restored by the engine, the line is back too"


async def test_a_moved_line_keeps_its_identity_and_a_heading_gives_the_type(memory: Memory, folder: Path) -> None:
    cat = (await memory.add("a cat", user_id="mei")).memories[0].id
    tea = (await memory.add("tea", user_id="mei", memory_type="preference")).memories[0].id
    await sync(memory)
    line = line_with(note(folder), "a cat")
    edit(note(folder), (line + "\n", ""))
    note(folder, "learnings").write_text(f"## 技能\n\n{line}\n", encoding="utf-8")
    assert actions(await sync(memory)) == ["update"]
    moved = await memory.get(cat, user_id="mei")
    assert (moved.memory_type, moved.layer) == ("skill", "procedural")
    edit(note(folder), ("## Preferences", "## Habits"))
    await sync(memory)
    assert (await memory.get(tea, user_id="mei")).memory_type == "pattern"
    edit(note(folder), ("## Habits", "## Whatever I like"))
    await sync(memory)
    assert (await memory.get(tea, user_id="mei")).memory_type == "pattern", "this heading says nothing"
    await settled(memory)


async def test_a_line_whose_comment_was_stripped_is_known_by_its_text(memory: Memory, folder: Path) -> None:
    for text in ("has a cat", "has a dog", "has a bird"):
        await memory.add(text, user_id="mei")
    await sync(memory)
    before = {item.id for item in await stored(memory)}
    lines = [line.split(" <!-- jiyi")[0] for line in note(folder).read_text(encoding="utf-8").splitlines()]
    note(folder).write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert actions(await sync(memory)) == ["mark"] * 3
    assert {item.id for item in await stored(memory)} == before
    await settled(memory)


async def test_a_copied_line_is_a_memory_of_its_own_once_it_says_something_else(memory: Memory, folder: Path) -> None:
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    line = line_with(note(folder), "has a cat")
    edit(note(folder), (line, f"{line}\n{line}"))
    report = await sync(memory)
    assert report.steps == () and "one memory" in report.problems[0]
    edit(note(folder), (f"{line}\n{line}", f"{line.replace('cat', 'dog')}\n{line}"))
    await sync(memory)
    there = await known(memory)
    assert set(there) == {"has a cat", "has a dog"}
    assert there["has a cat"].id in line, "the one that stayed keeps the id"
    await settled(memory)


@pytest.mark.parametrize("change", ["another text", "another type", "deleted"])
async def test_a_copy_goes_the_way_of_its_line(memory: Memory, folder: Path, change: str) -> None:
    await memory.add("has a cat", user_id="mei")
    await memory.add("has a garden", user_id="mei")
    await sync(memory)
    line = line_with(note(folder), "has a cat")
    edit(note(folder), (line, f"{line}\nmy own words\n\n{line}"))
    await sync(memory)
    memory_id = (await known(memory))["has a cat"].id
    if change == "deleted":
        await memory.delete(memory_id, user_id="mei")
    else:
        changed = {"content": "has a dog"} if change == "another text" else {"memory_type": "preference"}
        await memory.update(memory_id, user_id="mei", **changed)  # type: ignore[arg-type]
    report = await sync(memory)
    assert not [problem for problem in report.problems if "could not be written" in problem]
    text = note(folder).read_text(encoding="utf-8")
    assert "my own words" in text and "has a garden" in text
    assert text.count("has a dog") == (2 if change == "another text" else 0)
    assert text.count("has a cat") == (1 if change == "another type" else 0)
    assert (await sync(memory)).steps == ()


async def test_a_copy_of_an_edited_line_is_not_overwritten(memory: Memory, folder: Path) -> None:
    """Two lines with one id that a person has made the same, beside the one that the engine changes."""
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    line = line_with(note(folder), "has a cat")
    dog = line.replace("cat", "dog")
    edit(note(folder), (line, f"{dog}\n{dog}\n{line}"))
    await memory.update((await known(memory))["has a cat"].id, user_id="mei", content="has a fish")
    before = note(folder).read_text(encoding="utf-8")
    report = await sync(memory)
    assert note(folder).read_text(encoding="utf-8").count("has a dog") == before.count("has a dog") == 2
    assert report.problems, "which of them is the memory's, only a person can say"


async def test_a_line_that_repeats_another_is_left_alone(memory: Memory, folder: Path) -> None:
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    edit(note(folder), ("## Facts\n", "## Facts\n\n- has a  cat\n"))
    report = await sync(memory)
    assert report.steps == () and "same content" in report.problems[0]
    assert len(await known(memory)) == 1


@pytest.mark.parametrize("how", ["another text", "another type"])
async def test_a_line_is_a_memory_once_the_one_that_said_the_same_says_something_else(
    memory: Memory, folder: Path, how: str
) -> None:
    note(folder).parent.mkdir()
    note(folder).write_text("## Facts\n- runs\n## Preferences\n- tea\n", encoding="utf-8")
    await sync(memory)
    line = line_with(note(folder), "runs")
    edit(note(folder), ("## Preferences", "- runs\n## Preferences"))
    assert "same content" in (await sync(memory)).problems[0]
    if how == "another text":
        edit(note(folder), (line, line.replace("runs", "walks")))
    else:
        edit(note(folder), (line + "\n", ""), ("## Preferences", f"## Preferences\n{line}"))
    assert sorted(actions(await sync(memory))) == ["create", "update"]
    await settled(memory)
    runs = [(item.content, item.memory_type) for item in await stored(memory)]
    other = ("walks", "fact") if how == "another text" else ("runs", "preference")
    assert sorted(runs) == sorted([("runs", "fact"), other, ("tea", "preference")])


async def test_lines_may_exchange_their_texts_or_become_equal(memory: Memory, folder: Path) -> None:
    one = (await memory.add("alpha", user_id="mei")).memories[0].id
    two = (await memory.add("beta", user_id="mei")).memories[0].id
    await sync(memory)
    edit(note(folder), ("- alpha", "- gamma"), ("- beta", "- alpha"), ("- gamma", "- beta"))
    await sync(memory)
    assert (await memory.get(one, user_id="mei")).content == "beta"
    assert (await memory.get(two, user_id="mei")).content == "alpha"
    edit(note(folder), ("- beta", "- alpha"))
    await sync(memory)
    assert (await memory.get(one, user_id="mei")).content == "alpha"
    await settled(memory)


async def test_two_lines_may_be_edited_to_say_the_same(memory: Memory, folder: Path) -> None:
    made = [(await memory.add(text, user_id="mei")).memories[0].id for text in ("alpha", "beta")]
    await sync(memory)
    edit(note(folder), ("- alpha", "- gamma"), ("- beta", "- gamma"))
    await sync(memory)
    assert [(await memory.get(one, user_id="mei")).content for one in made] == ["gamma", "gamma"]
    await settled(memory)


# -- both at once -----------------------------------------------------------------------------------------------------


async def test_changes_of_different_fields_go_together(memory: Memory, folder: Path) -> None:
    cat = (await memory.add("has a cat", user_id="mei")).memories[0].id
    await sync(memory)
    edit(note(folder), ("has a cat", "has a black cat"))
    await memory.update(cat, user_id="mei", importance=0.9)
    report = await sync(memory)
    item = await memory.get(cat, user_id="mei")
    assert (item.content, item.importance) == ("has a black cat", 0.9) and report.conflicts == ()
    assert "importance=0.9" in line_with(note(folder), "has a black cat")
    await settled(memory)


async def test_a_true_conflict_keeps_both_and_says_so(memory: Memory, folder: Path) -> None:
    cat = (await memory.add("has a cat", user_id="mei")).memories[0].id
    await sync(memory)
    edit(note(folder), ("has a cat", "has a black cat"))
    await memory.update(cat, user_id="mei", content="has a white cat")
    report = await sync(memory)
    there = await known(memory)
    assert set(there) == {"has a black cat", "has a white cat"}
    assert there["has a black cat"].id == cat, "the hand keeps the id"
    assert there["has a white cat"].id in line_with(note(folder), "white")
    assert "both are kept" in report.conflicts[0] and "tags=conflict" in line_with(note(folder), "white")
    await settled(memory)


async def test_a_hand_wins_over_extraction_and_re_extraction_does_not_reset_it(path: Path, folder: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(512), workspace=folder, workspace_user="mei") as memory:
        chat = [{"role": "user", "content": "I live in Berlin."}]
        await memory.add(chat, user_id="mei", session_id="s")
        await sync(memory)
        lines = note(folder).read_text(encoding="utf-8").splitlines()
        line = next(line for line in lines if line.startswith("- ") and "Berlin" in line)
        edit(note(folder), (line, line.replace("Berlin", "Hamburg")))
        await sync(memory)
        await memory.add(chat, user_id="mei", session_id="s")
        await memory.maintenance.reindex()
        await sync(memory)
        assert line.replace("Berlin", "Hamburg").split(" <!--")[0] in note(folder).read_text(encoding="utf-8")
        changed = [item for item in await stored(memory) if "Hamburg" in item.content]
        [history] = [await memory.history(item.id, user_id="mei") for item in changed]
        assert "edited by hand" in {one.actor for one in history}


async def test_what_was_deleted_on_one_side_and_edited_on_the_other_is_kept(memory: Memory, folder: Path) -> None:
    ids = [(await memory.add(text, user_id="mei")).memories[0].id for text in ("alpha", "beta", "gamma", "delta")]
    await sync(memory)
    edit(note(folder), ("- alpha", "- alpha by hand"), ("- beta", "- beta by hand"))
    await erase(
        memory._engine.store, memory._engine.embedder, memory._engine.rules, "mei", [ids[0]], with_sources=False
    )  # past the files
    await memory.update(ids[1], user_id="mei", status="archived")
    edit(note(folder), (line_with(note(folder), "gamma") + "\n", ""))
    await memory.update(ids[2], user_id="mei", content="gamma by the engine")
    told = "\n".join((await sync(memory)).conflicts)
    assert set(await known(memory)) == {"alpha by hand", "beta by hand", "gamma by the engine", "delta"}
    assert "while its memory was deleted" in told and "active again" in told and "written again" in told
    await settled(memory)


# -- guards -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accident", ["emptied", "missing", "a third"])
async def test_a_loss_that_looks_like_an_accident_deletes_nothing(memory: Memory, folder: Path, accident: str) -> None:
    for at in range(9):
        await memory.add(f"fact number {at}", user_id="mei")
    await sync(memory)
    whole = note(folder).read_text(encoding="utf-8")
    if accident == "emptied":
        note(folder).write_text("", encoding="utf-8")
    elif accident == "missing":
        note(folder).unlink()
    else:
        kept = [line for line in whole.splitlines() if not any(f"number {at}" in line for at in (1, 2, 3))]
        note(folder).write_text("\n".join(kept) + "\n", encoding="utf-8")
    await memory.add("something new", user_id="mei")
    report = await sync(memory)
    assert report.withheld == (3 if accident == "a third" else 9) and "nothing is archived" in report.problems[-1]
    assert len(await known(memory)) == 10
    assert (await sync(memory)).withheld == report.withheld, "and not the next time either"
    if accident != "a third":
        assert not note(folder).exists() or note(folder).read_bytes() == b"", "nor is it written to"
        await sync(memory, restore=True)
        assert all(f"number {at}" in note(folder).read_text(encoding="utf-8") for at in range(9))
    else:
        assert actions(await sync(memory, confirm=True)) == ["archive"] * 3
    await settled(memory)


async def test_a_folder_that_is_not_mounted_is_no_workspace(memory: Memory, folder: Path) -> None:
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    away = folder.rename(folder.with_name("away"))
    folder.mkdir()
    with pytest.raises(WorkspaceError, match="disk is not mounted"):
        await sync(memory)
    found = await memory.search("cat", user_id="mei")
    assert contents(found) == ["has a cat"] and "files could not be read" in found.degraded[0]
    assert list(folder.iterdir()) == [], "nothing is written there"
    folder.rmdir()
    away.rename(folder)
    await settled(memory)


async def test_links_and_odd_files_are_refused_by_name(memory: Memory, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("## Facts\n- secret\n", encoding="utf-8")
    note(folder).parent.mkdir(parents=True)
    note(folder).symlink_to(outside)
    os.mkfifo(note(folder, "learnings"))
    await memory.add("has a cat", user_id="mei")
    report = await sync(memory)
    assert "symbolic link" in report.problems[0] and "not a regular file" in report.problems[1]
    assert outside.read_text(encoding="utf-8") == "## Facts\n- secret\n"
    assert set(await known(memory)) == {"has a cat"}
    note(folder).unlink()
    await sync(memory)
    assert "has a cat" in note(folder).read_text(encoding="utf-8"), "it waits for a file it can be written to"


async def test_permissions_and_line_ends_are_kept(memory: Memory, folder: Path) -> None:
    note(folder).parent.mkdir(parents=True)
    note(folder).write_bytes(b"\xef\xbb\xbf## Facts\r\n\r\n- mine\r\n")
    note(folder).chmod(0o640)
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    data = note(folder).read_bytes()
    assert data.startswith(b"\xef\xbb\xbf## Facts\r\n") and data.count(b"\n") == data.count(b"\r\n") == 4
    assert stat.S_IMODE(note(folder).stat().st_mode) == 0o640
    await memory.add("a lesson", user_id="mei", memory_type="lesson")
    await sync(memory)
    assert stat.S_IMODE(note(folder, "learnings").stat().st_mode) == 0o600, "new ones are the owner's alone"


async def test_an_unfinished_merge_is_waited_for(memory: Memory, folder: Path) -> None:
    for text in ("has a cat", "has a dog"):
        await memory.add(text, user_id="mei")
    await sync(memory)
    whole = note(folder).read_text(encoding="utf-8")
    note(folder).write_text("<<<<<<< HEAD\n=======\n>>>>>>> theirs\n", encoding="utf-8")
    await memory.add("has a bird", user_id="mei")
    report = await sync(memory)
    assert "merge" in report.problems[0] and report.steps == ()
    assert note(folder).read_text(encoding="utf-8") == "<<<<<<< HEAD\n=======\n>>>>>>> theirs\n"
    note(folder).write_text(whole, encoding="utf-8")
    await sync(memory)
    assert "has a bird" in note(folder).read_text(encoding="utf-8") and len(await known(memory)) == 3


# -- several ----------------------------------------------------------------------------------------------------------


async def test_each_user_has_a_folder_and_sees_no_other(path: Path, folder: Path) -> None:
    from support import ODD_NAMES

    users = [name for name in ODD_NAMES if name.strip() and "\u200b" not in name]
    async with Memory.open(path, settings=verbatim(), embedder=WordEmbedder(64), workspace=folder) as memory:
        for user in users:
            await memory.add(f"secret of {user}"[:200], user_id=user)
        await memory.workspace.sync()
        assert len(list(folder.glob("*/context/memory.md"))) == len(users)
        for user in users:
            path = folder / memory.workspace.files.workspace.user_folder(user) / "context/memory.md"
            text = path.read_text(encoding="utf-8")
            assert text.count("- secret of") == 1
            path.write_text(text + "- by hand\n", encoding="utf-8")
        assert sorted(memory.workspace.files.workspace.users()) == sorted(users)
        await memory.workspace.sync()
        for user in users:
            assert {item.content for item in await stored(memory, user)} == {f"secret of {user}"[:200], "by hand"}


async def test_a_workspace_of_one_user_leaves_the_others_alone(memory: Memory, folder: Path) -> None:
    await memory.add("mine", user_id="mei")
    await memory.add("not mine", user_id="bob")
    await memory.workspace.sync()
    assert "not mine" not in note(folder).read_text(encoding="utf-8")
    with pytest.raises(InvalidInput, match="is 'mei'"):
        await memory.workspace.sync(user_id="bob")


async def test_a_lost_index_is_brought_back_from_the_files(tmp_path: Path, folder: Path) -> None:
    async with open_at(tmp_path / "one.db", folder) as memory:
        await memory.add("喝绿茶", user_id="mei", memory_type="preference", importance=0.8, tags=["饮食"])
        await memory.add("has a cat", user_id="mei", agent_id="a 1", session_id="s")
        data = {"category": "design", "key": "color_scheme", "value": "blue -->", "备注": ["a b", {"c=d": None}]}
        given = {"memory_type": "preference", "content": "用户偏好使用蓝色配色方案", "structured_data": data}
        await memory.add(given, user_id="mei", metadata={"project": "凤凰 <1>"})
        await sync(memory)
        with note(folder).open("a", encoding="utf-8") as file:
            file.write("\n## Project Phoenix\n\n- the launch is on May 7\n")
        await sync(memory)
        before = await known(memory)
        assert before["用户偏好使用蓝色配色方案"].data == data
        assert before["the launch is on May 7"].memory_type == "fact"
        texts = note(folder).read_bytes()
    async with open_at(tmp_path / "two.db", folder) as memory:
        await sync(memory)
        after = await known(memory)
        assert note(folder).read_bytes() == texts
    for content, item in before.items():
        for name in ("id", "memory_type", "importance", "tags", "agent_id", "session_id", "data", "metadata"):
            assert getattr(after[content], name) == getattr(item, name)


@pytest.mark.parametrize(
    ("heading", "text"), [("## Project Phoenix", "the launch is on May 7"), ("## 凤凰项目", "五月七日上线")]
)
async def test_a_bullet_below_a_heading_of_ones_own_is_a_memory(
    heading: str, text: str, memory: Memory, folder: Path
) -> None:
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    with note(folder).open("a", encoding="utf-8") as file:
        file.write(f"\n{heading}\n\nprose\n\n- {text}\n")
    assert actions(await sync(memory)) == ["create"]
    item = (await known(memory))[text]
    assert item.memory_type == "fact"
    written = note(folder).read_text(encoding="utf-8")
    assert f"{heading}\n\nprose\n\n- {text} <!-- jiyi:{item.id} -->\n" in written
    edit(note(folder), (text, f"{text}!"))
    assert actions(await sync(memory)) == ["update"]
    assert actions(await sync(memory)) == []


async def test_what_is_erased_goes_from_the_files_too(memory: Memory, folder: Path) -> None:
    await memory.add("a secret", user_id="mei")
    await sync(memory)
    edit(note(folder), ("## Facts", "my own prose\n\n## Facts"))
    await memory.delete_all("mei")
    await sync(memory)
    text = note(folder).read_text(encoding="utf-8")
    assert "secret" not in text and "my own prose" in text
    assert await stored(memory) == []
    assert not [path for path in folder.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


async def test_a_dry_run_tells_and_changes_nothing(memory: Memory, folder: Path) -> None:
    await memory.add("has a cat", user_id="mei")
    await sync(memory)
    edit(note(folder), ("has a cat", "has a dog"))
    text = note(folder).read_bytes()
    report = await sync(memory, dry_run=True)
    assert report.dry_run and [(step.action, step.text, step.line) for step in report.steps] == [
        ("update", "has a dog", 7)
    ]
    [status] = await memory.workspace.status()
    assert status.pending == report and [file.lines for file in status.files] == [1, 0]
    assert note(folder).read_bytes() == text


async def test_without_an_embedder_lines_are_kept_and_it_is_told(path: Path, folder: Path) -> None:
    async with Memory.open(
        path, settings=verbatim(), embedder=FailingEmbedder(), workspace=folder, workspace_user="mei"
    ) as memory:
        note(folder).parent.mkdir(parents=True, exist_ok=True)
        note(folder).write_text("## Facts\n- has a cat\n", encoding="utf-8")
        report = await sync(memory)
        assert "not found by meaning yet" in report.problems[0]
        assert set(await known(memory)) == {"has a cat"}


async def test_an_unknown_id_is_taken_as_it_is(memory: Memory, folder: Path) -> None:
    memory_id = new_id()
    note(folder).parent.mkdir(parents=True, exist_ok=True)
    note(folder).write_text(f"## Facts\n- from elsewhere <!-- jiyi:{memory_id} importance=0.7 -->\n", encoding="utf-8")
    await sync(memory)
    item = await memory.get(memory_id, user_id="mei")
    assert (item.content, item.importance) == ("from elsewhere", 0.7)
    await settled(memory)


async def test_both_databases_keep_files_the_same_way(place: str | Path, folder: Path) -> None:
    async with open_at(place, folder) as memory:
        cat = (await memory.add("has a cat", user_id="mei", tags=["宠物"])).memories[0].id
        for at in range(5):
            await memory.add(f"fact number {at}", user_id="mei")
        await sync(memory)
        edit(note(folder), ("has a cat", "has a black cat"), ("## Facts\n", "## Facts\n\n- 住在上海\n"))
        edit(note(folder), (line_with(note(folder), "number 4") + "\n", ""))
        await memory.update(cat, user_id="mei", importance=0.9)
        await memory.delete((await known(memory))["fact number 3"].id, user_id="mei")
        await sync(memory)
        assert set(await known(memory)) == {"has a black cat", "住在上海", *(f"fact number {at}" for at in range(3))}
        assert "importance=0.9 tags=宠物" in line_with(note(folder), "has a black cat")
        await settled(memory)
