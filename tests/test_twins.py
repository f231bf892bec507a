"""Two users with the same ids, texts and sessions: every verb does for one what it does without the other.

Ids are unique within a user only: a file that is imported may name those of another user."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.testing import Clock, WordEmbedder
from support import DAY, MONDAY, dump, said, stored

SETTINGS = load_settings(jobs={"in_process": False})
TOLD = (
    "I live in Paris.",
    "My manager is Tom Baker.",
    "I moved to Rome.",
    "I am allergic to peanuts.",
    "我女朋友小雯是护士。",
)
REPAIRS = (
    "My bicycle was repaired in the old harbour shop by Anna Weber, it cost 42 euros.",
    "My laptop was repaired in the old harbour shop by Tom Beckett, it cost 310 euros.",
    "My watch was repaired in the old harbour shop by Ruth Adler, it cost 77 euros.",
    "My guitar was repaired in the old harbour shop by Omar Haddad, it cost 95 euros.",
)
# Values of one run.
MADE_UP = re.compile(
    r"\b[0-9a-z]{26}\b|[0-9a-f]{20,64}|/\S*/(?:alone|both)|size_bytes=\d+|Timing\([^)]*\)|synced_at=[^)]*\)"
)
Step = Callable[[Memory, Path], Awaitable[Any]]


def opened(folder: Path) -> Memory:
    return Memory.open(folder / "memory.db", settings=SETTINGS, embedder=WordEmbedder(64), workspace=folder / "files")


async def prepare(folder: Path, clock: Clock) -> None:
    """Give Mei something of everything."""
    async with opened(folder) as memory:
        await memory.add([{"content": text} for text in REPAIRS], user_id="mei", memory_type="fact", tags=["shop"])
        clock.now += 60 * DAY
        await memory.maintenance.compress(user_id="mei")
        await said(memory, *TOLD)
        await memory.jobs.work()
        for text, key in (("likes jasmine tea", "drink"), ("the camera is lent", "camera"), ("keeps bees", "bees")):
            note = {"content": text, "memory_key": key}
            await memory.add(note, user_id="mei", session_id="s0", agent_id="a", group_id="g")
        await memory.update("camera", user_id="mei", content="the camera is back")
        await memory.update("camera", user_id="mei", importance=0.9)
        await memory.synonyms.add([("tea", "oolong")], user_id="mei")
        await memory.sessions.add_summary("They spoke of tea.", user_id="mei", session_id="s0")
        await memory.sessions.record_skill("brewing", ["boil", "pour"], user_id="mei")
        await memory.search("jasmine tea", user_id="mei")
        await memory.workspace.sync(user_id="mei")
        await memory.jobs.work()
        await memory.add([{"content": "I sail.", "sent_at": clock.now}], user_id="mei", session_id="later", wait=False)
        await memory.transfer.export(folder / "earlier.jsonl", user_id="mei")


def double(path: Path) -> None:
    """Copy every row of Mei for a twin, before hers: what forgets the user finds the twin's first."""
    with closing(sqlite3.connect(path)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")') if row[1] != "seq"]
            if "user_id" not in columns:
                continue
            rows = database.execute(f"SELECT {', '.join(columns)} FROM \"{table}\" WHERE user_id = 'mei'").fetchall()
            if table != "changes":  # their numbers are known elsewhere
                database.execute(f"DELETE FROM \"{table}\" WHERE user_id = 'mei'")
            at = columns.index("user_id")
            copies = [(*row[:at], "a twin", *row[at + 1 :]) for row in rows]
            into = f'INSERT INTO "{table}" ({", ".join(columns)}) VALUES ({", ".join("?" * len(columns))})'
            database.executemany(into, copies if table == "changes" else [*copies, *rows])
        database.commit()


async def job_of(memory: Memory) -> str:
    return next(job.id for job in await memory.jobs.list(user_id="mei") if job.session_id == "later")


async def holding(memory: Memory, words: str, status: Any) -> str:
    return next(item.id for item in await stored(memory, status=status) if words in item.content)


async def edit_file(memory: Memory, folder: Path) -> Any:
    note = folder / "files/mei/context/memory.md"
    note.write_text(note.read_text("utf-8").replace("keeps bees", "keeps two hives of bees"), "utf-8")
    return await memory.workspace.sync(user_id="mei")


async def exported(memory: Memory, folder: Path) -> Any:
    report = await memory.transfer.export(folder / "out.jsonl", user_id="mei", overwrite=True)
    return report, sorted((folder / "out.jsonl").read_text("utf-8").splitlines())


READ: dict[str, Step] = {
    "list": lambda memory, _: memory.list(user_id="mei"),
    "archived": lambda memory, _: memory.list(user_id="mei", status="archived"),
    "count": lambda memory, _: memory.count(user_id="mei", session_id="s0"),
    "search": lambda memory, _: memory.search("where does Mei drink tea?", user_id="mei", limit=20, explain=True),
    "context": lambda memory, _: memory.context("what about Rome and the manager?", user_id="mei"),
    "stats": lambda memory, _: memory.stats("mei"),
    "messages": lambda memory, _: memory.messages(user_id="mei"),
    "timeline": lambda memory, _: memory.timeline(user_id="mei"),
    "get": lambda memory, _: memory.get_many(["camera", "bees"], user_id="mei"),
    "history": lambda memory, _: memory.history("camera", user_id="mei"),
    "relations": lambda memory, _: of(memory, "Rome", memory.relations),
    "sources": lambda memory, _: of(memory, "allergic", memory.sources),
    "compressed": lambda memory, _: of(memory, "Ruth Adler", memory.relations),
    "jobs": lambda memory, _: memory.jobs.list(user_id="mei"),
    "synonyms": lambda memory, _: memory.synonyms.list(user_id="mei"),
    "expand": lambda memory, _: memory.synonyms.expand(["tea"], user_id="mei"),
    "workspace": lambda memory, _: memory.workspace.status(user_id="mei"),
    "drift": lambda memory, _: memory.workspace.verify(user_id="mei"),
    "verify": lambda memory, _: memory.maintenance.verify(user_id="mei"),
    "plan": lambda memory, _: memory.maintenance.compress_plan(user_id="mei"),
    "undo plan": lambda memory, _: memory.maintenance.undo_plan(user_id="mei", session_id="s2"),
    "changes": lambda memory, _: memory.usage.changes(user_id="mei"),
    "groups": lambda memory, _: memory.usage.groups(user_id="mei"),
    "mentions": lambda memory, _: memory.usage.mentions("Tom Baker", user_id="mei"),
    "metrics": lambda memory, _: memory.usage.metrics("mei"),
    "most used": lambda memory, _: memory.usage.most_used(user_id="mei"),
    "recalls": lambda memory, _: memory.usage.recalls(user_id="mei"),
    "review": lambda memory, _: memory.usage.review(user_id="mei"),
    "subjects": lambda memory, _: memory.usage.subjects(user_id="mei"),
    "export": exported,
}
WRITE: dict[str, Step] = {
    "add": lambda memory, _: memory.add("likes jasmine tea a lot", user_id="mei", session_id="s0"),
    "again": lambda memory, _: memory.add("likes jasmine tea", user_id="mei", session_id="s0"),
    "say": lambda memory, _: memory.add(
        [{"content": "I moved to Oslo.", "sent_at": MONDAY + 90 * DAY}], user_id="mei", session_id="s0", wait=False
    ),
    "update": lambda memory, _: memory.update("bees", user_id="mei", content="keeps bees and hens", tags=["farm"]),
    "restore": lambda memory, _: memory.restore("camera", user_id="mei", to_version=1),
    "end": lambda memory, _: memory.update("drink", user_id="mei", valid_to=MONDAY),
    "delete a part": lambda memory, _: of(memory, "My bicycle", memory.delete, status="archived"),
    "delete": lambda memory, _: memory.delete("drink", user_id="mei"),
    "delete with sources": lambda memory, _: of(memory, "allergic", memory.delete, with_sources=True),
    "delete a successor": lambda memory, _: of(memory, "Rome", memory.delete),
    "cancel": lambda memory, _: of_job(memory, memory.jobs.cancel),
    "retry": lambda memory, _: of_job(memory, memory.jobs.retry),
    "end session": lambda memory, _: memory.sessions.end("s0", user_id="mei"),
    "undo": lambda memory, _: memory.maintenance.undo(user_id="mei", session_id="s2"),
    "undo of one": lambda memory, _: memory.maintenance.undo("camera", user_id="mei"),
    "compress": lambda memory, _: memory.maintenance.compress(user_id="mei"),
    "maintain": lambda memory, _: memory.maintenance.run(user_id="mei"),
    "repair": lambda memory, _: memory.maintenance.verify(user_id="mei", repair=True),
    "remove synonym": lambda memory, _: memory.synonyms.remove("tea", user_id="mei"),
    "skill": lambda memory, _: memory.sessions.record_skill("brewing", ["boil", "pour"], user_id="mei"),
    "summary": lambda memory, _: memory.sessions.add_summary("They spoke of bees.", user_id="mei", session_id="s0"),
    "edit a file": edit_file,
    "rebuild": lambda memory, _: memory.workspace.rebuild(user_id="mei"),
    "import": lambda memory, folder: memory.transfer.import_memories(folder / "earlier.jsonl", user_id="mei"),
    "recall": lambda memory, _: memory.search("bees", user_id="mei"),
}
LAST: dict[str, Step] = {"delete all": lambda memory, _: memory.delete_all("mei")}


async def of(memory: Memory, words: str, verb: Any, *, status: Any = "active", **how: Any) -> Any:
    return await verb(await holding(memory, words, status), user_id="mei", **how)


async def of_job(memory: Memory, verb: Any) -> Any:
    return await verb(await job_of(memory), user_id="mei")


def rows_of(user_id: str, folder: Path) -> dict[str, list[str]]:
    """Rows of a user by table."""
    return {table: [repr(row) for row in rows if user_id in row] for table, rows in dump(folder / "memory.db").items()}


def plain_rows(user_id: str, folder: Path) -> dict[str, Counter[str]]:
    """The same without values of one run: ids and numbers of changes."""
    rows = rows_of(user_id, folder)
    return {
        table: Counter(plain(row.split(",", table == "changes")[-1]) for row in rows[table])
        for table in rows
        if not table.startswith("file")  # written in the background
    }


def plain(told: object) -> str:
    return MADE_UP.sub("*", str(told))


async def outcome(step: Step, memory: Memory, folder: Path) -> str:
    try:
        return plain(await step(memory, folder))
    except Exception as error:  # noqa: BLE001 - both have to fail alike
        return plain(repr(error))


async def test_every_verb_does_the_same_beside_a_user_with_the_same_ids(tmp_path: Path) -> None:
    alone, both = tmp_path / "alone", tmp_path / "both"
    with Clock(MONDAY) as clock:
        await prepare(tmp_path / "first", clock)
        for folder in (alone, both):
            shutil.copytree(tmp_path / "first", folder)
        double(both / "memory.db")
        before = rows_of("a twin", both)
        assert sum(map(len, before.values())) > 100
        async with opened(alone) as one, opened(both) as other:
            for name, step in (*READ.items(), *WRITE.items(), *READ.items(), *LAST.items()):
                clock.now += timedelta(hours=1)
                assert (name, await outcome(step, one, alone)) == (name, await outcome(step, other, both))
                if name not in READ:
                    await one.workspace.sync(user_id="mei")
                    await other.workspace.sync(user_id="mei")
                    assert plain_rows("mei", alone) == plain_rows("mei", both), name
        assert rows_of("a twin", both) == before
