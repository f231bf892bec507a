"""Episodes and events as notes of the day they happened on; and where there are none, lines that a person wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jiyi import Memory, SyncReport
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import contents, stored

EVENING = datetime(2025, 5, 7, 18, 30, tzinfo=UTC)


def open_at(path: Path, folder: Path, *, daily_notes: bool) -> Memory:
    settings = load_settings(extraction={"enabled": False}, workspace={"daily_notes": daily_notes})
    return Memory.open(path, settings=settings, embedder=WordEmbedder(512), workspace=folder, workspace_user="mei")


@pytest.fixture
async def daily(path: Path, tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_at(path, tmp_path / "notes", daily_notes=True) as memory:
        memory._engine.store.database.after_write = lambda users: None
        yield memory


@pytest.fixture
async def plain(path: Path, tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_at(path, tmp_path / "notes", daily_notes=False) as memory:
        memory._engine.store.database.after_write = lambda users: None
        yield memory


@pytest.fixture
def context(tmp_path: Path) -> Path:
    return tmp_path / "notes/context"


async def sync(memory: Memory, **options: bool) -> SyncReport:
    [report] = await memory.workspace.sync(user_id="mei", **options)
    return report


async def agreed(memory: Memory) -> None:
    assert (await sync(memory)).steps == ()
    assert await memory.workspace.verify() == []


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


async def test_episodes_and_events_stand_in_the_file_of_their_day(daily: Memory, context: Path) -> None:
    await daily.add("和安娜去公园散步", user_id="mei", memory_type="episode", occurred_at=EVENING)
    await daily.add("gave the talk", user_id="mei", memory_type="event", occurred_at=EVENING.replace(day=8))
    await daily.add("likes tea", user_id="mei", memory_type="preference", occurred_at=EVENING)
    await sync(daily)
    assert sorted(path.name for path in (context / "daily").iterdir()) == ["2025-05-07.md", "2025-05-08.md"]
    first = (context / "daily/2025-05-07.md").read_text(encoding="utf-8")
    assert first.startswith("# 每日记录\n") and "## 情景\n\n- 和安娜去公园散步 <!-- jiyi:" in first
    assert "at=2025-05-07T18:30:00Z -->" in first and "tea" not in first
    assert "## Events" in (context / "daily/2025-05-08.md").read_text(encoding="utf-8")
    await agreed(daily)
    edit(context / "daily/2025-05-07.md", "公园散步", "湖边散步")
    assert contents(await daily.search("湖边", user_id="mei")) == ["和安娜去湖边散步"]
    [walk] = [item for item in await stored(daily) if item.memory_type == "episode"]
    assert walk.occurred_at == EVENING
    await daily.update(walk.id, user_id="mei", content="和安娜去湖边散步，下雨了")
    await sync(daily)
    assert "下雨了" in (context / "daily/2025-05-07.md").read_text(encoding="utf-8")
    await daily.delete(walk.id, user_id="mei")
    await sync(daily)
    assert "安娜" not in (context / "daily/2025-05-07.md").read_text(encoding="utf-8")
    await agreed(daily)


async def test_what_a_person_notes_on_a_day_happened_on_that_day(daily: Memory, context: Path) -> None:
    day, today = context / "daily/2024-02-29.md", context / f"daily/{datetime.now(UTC).date()}.md"
    write(day, "slept badly\n\n## Episodes\n\n- cooked noodles\n- met Bo <!-- x -->\n")
    write(today, "## 事件\n\n- 今天搬家\n")
    write(context / "daily/2024-02-30.md", "## Episodes\n\n- on a day that never was\n")
    write(context / "daily/ideas.md", "## Episodes\n\n- nobody's line\n")
    await sync(daily)
    there = {item.content: item for item in await stored(daily)}
    assert set(there) == {"cooked noodles", "met Bo <!-- x -->", "今天搬家", "on a day that never was"}
    assert there["cooked noodles"].occurred_at == datetime(2024, 2, 29, tzinfo=UTC)
    assert there["今天搬家"].occurred_at.date() == datetime.now(UTC).date() and "at=" not in today.read_text("utf-8")
    text = day.read_text(encoding="utf-8")
    assert text.startswith("slept badly\n\n") and f"- cooked noodles <!-- jiyi:{there['cooked noodles'].id} at=" in text
    assert "at=2024-02-29 -->" in text
    await agreed(daily)
    line = next(line for line in text.splitlines() if "noodles" in line)
    edit(day, line + "\n", "")
    write(context / "daily/2024-03-01.md", f"## Episodes\n\n{line}\n")
    await sync(daily)
    moved = await daily.get(there["cooked noodles"].id, user_id="mei")
    assert moved.status == "active" and moved.occurred_at.day == 29, "a moved line keeps identity and time"
    await agreed(daily)


async def test_the_notes_of_a_day_that_are_missing_archive_nothing(daily: Memory, context: Path) -> None:
    for day in range(1, 10):
        at = EVENING.replace(day=day)
        await daily.add(f"walk number {day}", user_id="mei", memory_type="episode", occurred_at=at)
    await sync(daily)
    (context / "daily/2025-05-03.md").unlink()
    report = await sync(daily)
    assert report.withheld == 1 and "nothing is archived" in report.problems[-1]
    assert len(await stored(daily)) == 9
    await sync(daily, restore=True)
    assert "walk number 3" in (context / "daily/2025-05-03.md").read_text(encoding="utf-8")
    (context / "daily/2025-05-03.md").unlink()
    assert [step.action for step in (await sync(daily, confirm=True)).steps] == ["archive"]
    await agreed(daily)


async def test_an_index_comes_back_from_the_notes_of_all_days(daily: Memory, context: Path, tmp_path: Path) -> None:
    for day in range(1, 4):
        at = EVENING.replace(day=day)
        await daily.add(f"walk number {day}", user_id="mei", memory_type="episode", occurred_at=at)
    await sync(daily)
    before = {(item.id, item.content, item.occurred_at) for item in await stored(daily)}
    async with open_at(tmp_path / "new.db", context.parent, daily_notes=False) as memory:  # the workspace knows
        await sync(memory)
        assert {(item.id, item.content, item.occurred_at) for item in await stored(memory)} == before


# -- without notes of days --------------------------------------------------------------------------------------------


OWN = "## Episodes\n\n- met Anna\n\n## To do <!-- jiyi:type=task -->\n\n- 买牛奶\n\n## Facts\n\n" + "".join(
    f"- fact {at}\n" for at in range(8)
)


async def test_episodes_and_tasks_have_no_lines_but_those_that_a_person_writes_stay(
    plain: Memory, context: Path, path: Path
) -> None:
    note = context / "memory.md"
    await plain.add("went home", user_id="mei", memory_type="episode", occurred_at=EVENING)
    await plain.add("买牛奶", user_id="mei", memory_type="task")
    write(note, OWN)
    await sync(plain)
    marked = note.read_text(encoding="utf-8")
    assert "- met Anna <!-- jiyi:" in marked and "- 买牛奶 <!-- jiyi:" in marked and "went home" not in marked
    assert not (context / "daily").exists()
    assert [item.content for item in await stored(plain)].count("买牛奶") == 1, "that one was known"
    await agreed(plain)
    await plain.maintenance.reindex()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM changes")  # so that everything has to be looked at
        connection.commit()
    await agreed(plain)
    assert note.read_text(encoding="utf-8") == marked, "a line that a person wrote is nothing to take away"
    edit(note, "met Anna", "met Anna and Bo")
    await sync(plain)
    [met] = [item for item in await stored(plain) if "Anna" in item.content]
    assert (met.content, met.memory_type) == ("met Anna and Bo", "episode")
    edit(note, next(line for line in note.read_text(encoding="utf-8").splitlines() if "Anna" in line) + "\n", "")
    assert [step.action for step in (await sync(plain)).steps] == ["archive"]
    await agreed(plain)


async def test_a_memory_that_becomes_a_task_loses_its_line_unless_a_person_has_edited_it(
    plain: Memory, context: Path
) -> None:
    ids = [(await plain.add(text, user_id="mei")).memories[0].id for text in ("alpha", "beta", "gamma")]
    await sync(plain)
    note = context / "memory.md"
    text = note.read_text(encoding="utf-8")
    await plain.update(ids[0], user_id="mei", memory_type="task")
    await plain.update(ids[1], user_id="mei", memory_type="task")
    note.write_text(text.replace("- beta", "- beta by hand"), encoding="utf-8")
    await sync(plain)
    assert "alpha" not in note.read_text(encoding="utf-8") and "- beta by hand <!--" in note.read_text(encoding="utf-8")
    kept = await plain.get(ids[1], user_id="mei")
    assert (kept.content, kept.memory_type) == ("beta by hand", "task")
    assert (await plain.get(ids[0], user_id="mei")).status == "active"
    await agreed(plain)
