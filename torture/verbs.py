"""The verbs that change something, each with a prepared store, and comparable dumps of a store."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from jiyi import Memory, StoreUnavailable, WorkspaceError, migrate_store, restore_backup
from jiyi.keep import maintain
from jiyi.settings import Settings, load_settings
from jiyi.testing import WordEmbedder

from .kills import Likes

LONG_AGO = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
TALK = [
    {"role": "user", "content": "I moved to Oslo and I am allergic to peanuts."},
    {"role": "assistant", "content": "好的，记住了：花生过敏。"},
]
DEFERRED = [{"role": "user", "content": "mei likes oolong"}]
PROSE = "这是我自己写的。These lines are mine.\n"

Place = Path  # folder with memory.db, optional files/, and output of verbs
Do = Callable[[Memory, Place], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Verb:
    name: str
    do: Do
    files: bool = False  # with a workspace
    waiting: bool = False  # with pending jobs and a failed one
    deferred: bool = False  # with an extractor that runs in a job
    steps: bool = False  # several transactions or files, with complete states in between
    repeats: bool = True  # idempotent


async def _id(memory: Memory, word: str) -> str:
    for status, types in product(("active", "archived"), (None, ["message"])):
        for item in (await memory.list(user_id="mei", status=status, memory_types=types)).items:  # type: ignore[arg-type]
            if word in item.content:
                return item.id
    raise LookupError(word)


async def _change(memory: Memory, place: Place) -> None:
    await memory.update(await _id(memory, "bicycle"), user_id="mei", content="the bicycle is green, 自行车是绿色的")


async def _drop(memory: Memory, place: Place) -> None:
    await memory.delete(await _id(memory, "umbrella"), user_id="mei")


async def _drop_with_sources(memory: Memory, place: Place) -> None:
    await memory.delete(await _id(memory, "teapot"), user_id="mei", with_sources=True)


async def _say(memory: Memory, place: Place) -> None:
    await memory.add("the kettle is copper, 水壶是铜的", user_id="mei", idempotency_key="k1")


async def _maintain(memory: Memory, place: Place) -> None:
    for _ in range(100):
        if "another process is at it" not in (await memory.maintenance.run()).problems:
            return
        await asyncio.sleep(0.1)  # until the lease expires
    raise TimeoutError


async def _observe(memory: Memory, place: Place) -> None:
    before = (await memory.usage.observed()).failed
    await memory.observe("我搬到成都了", "好", user_id="mei")
    if (await memory.sessions.flush()).failed > before:  # failures are counted, not raised
        raise StoreUnavailable("it was not taken in")


async def _edit_and_sync(memory: Memory, place: Place) -> None:
    note = place / "files/mei/context/memory.md"
    text = note.read_text("utf-8")
    if "by hand" not in text:  # atomically, as editors do
        edited = place / "edited"
        try:
            edited.write_text(text.replace("## Facts\n", "## Facts\n\n- written by hand\n", 1), "utf-8")
            edited.replace(note)
        except OSError as error:
            raise WorkspaceError(f"the person's own editor says: {error}") from error
    await memory.workspace.sync(user_id="mei")


async def _revoke(memory: Memory, place: Place) -> None:
    [key] = [key for key in await memory.keys.list() if key.name == "old"]
    await memory.keys.revoke(key.id)


async def _restore_backup(memory: Memory, place: Place) -> None:
    await memory.close()
    await restore_backup(place / "earlier.db", place / "memory.db", force=True)


async def _job(memory: Memory, session_id: str) -> str:
    return next(job.id for job in await memory.jobs.list(user_id="waits") if job.session_id == session_id)


async def _cancel(memory: Memory, place: Place) -> None:
    await memory.jobs.cancel(await _job(memory, "open"), user_id="waits")


async def _retry(memory: Memory, place: Place) -> None:
    await memory.jobs.retry(await _job(memory, "given up"), user_id="waits")


async def _retry_and_wait(memory: Memory, place: Place) -> None:
    job = await memory.jobs.retry(await _job(memory, "given up"), user_id="waits")
    await memory.jobs.wait(job.id, user_id="waits")


async def _new_store(memory: Memory, place: Place) -> None:
    """Create folders, a database and a workspace."""
    at = place / "new/deep"
    new = Memory.open(at / "memory.db", settings=settings(), embedder=WordEmbedder(16), workspace=at / "files")
    async with new as made:
        if not await made.users():
            await made.add("the first one", user_id="mei", memory_type="fact")
        problems = [problem for report in await made.workspace.sync(user_id="mei") for problem in report.problems]
        if problems:  # problems with files are reported there
            raise WorkspaceError("; ".join(problems))


VERBS = (
    Verb("add a statement", _say),
    Verb("add a conversation", lambda memory, _: memory.add(TALK, user_id="mei", session_id="s1")),
    Verb(
        "add, and a job",
        lambda memory, _: memory.add(DEFERRED, user_id="mei", session_id="s2"),
        deferred=True,
        steps=True,
    ),
    Verb("update", _change, repeats=False),
    Verb(
        "restore",
        lambda memory, _: _then(_id(memory, "camera"), lambda found: memory.restore(found, user_id="mei")),
        repeats=False,
    ),
    Verb("delete", _drop, repeats=False),
    Verb("delete with its sources", _drop_with_sources, repeats=False),
    Verb("delete_all", lambda memory, _: memory.delete_all("mei")),
    Verb("add_synonyms", lambda memory, _: memory.synonyms.add([("k8s", "kubernetes"), ("老王", "王总")])),
    Verb("remove_synonym", lambda memory, _: memory.synonyms.remove("tea"), repeats=False),
    Verb("compress", lambda memory, _: memory.maintenance.compress(user_id="old"), steps=True),
    Verb("maintain", _maintain, steps=True),
    Verb("undo", lambda memory, _: memory.maintenance.undo(session_id="s0", user_id="mei"), steps=True, repeats=False),
    Verb("cancel_job", _cancel, waiting=True, repeats=False),
    Verb("retry_job", _retry, waiting=True),
    Verb("retry_job, and the job", _retry_and_wait, waiting=True, deferred=True, steps=True, repeats=False),
    Verb(
        "add_summary",
        lambda memory, _: memory.sessions.add_summary("they spoke of tea, 茶", user_id="mei", session_id="s0"),
    ),
    Verb("note_audit", lambda memory, _: memory.keys.log("looked", target="mei"), repeats=False),
    Verb("open a new store", _new_store, steps=True),
    Verb("migrate_store", lambda _, place: migrate_store(place / "memory.db", place / "moved.db"), steps=True),
    Verb("record_skill", lambda memory, _: memory.sessions.record_skill("research", ["search", "read"], user_id="mei")),
    Verb("observe", _observe),
    Verb("import_memories", lambda memory, place: memory.transfer.import_memories(place / "export.jsonl"), steps=True),
    Verb(
        "import_chats",
        lambda memory, place: memory.transfer.import_chats(place / "chat.json", user_id="mei"),
        steps=True,
    ),
    Verb("export", lambda memory, place: memory.transfer.export(place / "out.jsonl", overwrite=True)),
    Verb("backup", lambda memory, place: memory.transfer.backup(place / "out.db", overwrite=True)),
    Verb("restore_backup", _restore_backup),
    Verb("create_key", lambda memory, _: memory.keys.create("new", all_users=True), steps=True, repeats=False),
    Verb("revoke_key", _revoke, steps=True),
    Verb("reindex", lambda memory, _: memory.maintenance.reindex(), steps=True),
    Verb("verify and repair", lambda memory, _: memory.maintenance.verify(repair=True), steps=True),
    Verb("vacuum", lambda memory, _: memory.maintenance.vacuum()),
    Verb("search, noted", lambda memory, _: memory.search("bicycle", user_id="mei"), steps=True, repeats=False),
    Verb("add with files", _say, files=True, steps=True),
    Verb("update with files", _change, files=True, steps=True, repeats=False),
    Verb("delete with files", _drop, files=True, steps=True, repeats=False),
    Verb("sync_workspace", _edit_and_sync, files=True, steps=True),
    Verb("rebuild_workspace", lambda memory, _: memory.workspace.rebuild(user_id="mei"), files=True, steps=True),
)


async def _then(first: Awaitable[Any], second: Callable[[Any], Awaitable[Any]]) -> Any:
    return await second(await first)


maintain.LEASE = timedelta(seconds=4)  # instead of minutes


@cache
def settings(*, works: bool = True) -> Settings:
    jobs = {"in_process": works, "lease_s": 0.3, "retry_delay_s": 0.05, "wait_timeout_s": 1.0}
    return load_settings(maintenance={"compress_after_days": 100}, jobs=jobs)


def opened(place: Place, verb: Verb) -> Memory:
    return Memory.open(
        place / "memory.db",
        settings=settings(works=verb.deferred or not verb.waiting),  # else the jobs are done before the verb comes
        embedder=WordEmbedder(16),
        extractor=Likes() if verb.deferred else None,
        workspace=place / "files" if verb.files else None,
    )


async def prepare(place: Place, *, files: bool, waiting: bool) -> None:
    """Create data for every verb."""
    place.mkdir()
    if files:
        note = place / "files/mei/context/memory.md"
        note.parent.mkdir(parents=True)
        note.write_text(f"# Mine\n\n{PROSE}\n## Facts\n\n", "utf-8")
    (place / "chat.json").write_text(json.dumps([{**one, "content": f"earlier: {one['content']}"} for one in TALK]))
    async with opened(place, Verb("", _say)) as memory:
        await memory.add("a memory of somebody else", user_id="other")
        await memory.transfer.export(place / "export.jsonl")
        await memory.delete_all("other")
        await memory.transfer.backup(place / "earlier.db")
    async with opened(place, Verb("", _say, files=files)) as memory:
        for thing in ("bicycle", "umbrella", "camera"):
            await memory.add(f"the {thing} is in the cellar, 地下室", user_id="mei", memory_type="fact")
        await memory.add([{"role": "user", "content": "the teapot is broken"}], user_id="mei", session_id="s0")
        await memory.update(await _id(memory, "camera"), user_id="mei", content="the camera is lent")
        for number in range(5):
            await memory.add(
                f"they walked to the lake, {number} kilometres", user_id="old", memory_type="fact", occurred_at=LONG_AGO
            )
        await memory.add("gone soon", user_id="old", expires_at=LONG_AGO)
        await memory.synonyms.add([("tea", "茶")])
        await memory.keys.create("old", all_users=True)
    if waiting:
        await _leave_jobs(place)
    old = int(LONG_AGO.timestamp() * 1_000_000)
    with closing(sqlite3.connect(place / "memory.db", isolation_level=None)) as database:  # outdated and damaged rows
        database.execute("UPDATE memories SET created_at = ?, updated_at = ? WHERE user_id = 'old'", (old, old))
        database.execute("DELETE FROM embeddings WHERE user_id = 'mei' AND rowid % 2")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _leave_jobs(place: Place) -> None:
    """Leave a pending job and a cancelled one."""
    where = place / "memory.db"
    async with Memory.open(
        where, settings=settings(works=False), embedder=WordEmbedder(16), extractor=Likes()
    ) as memory:
        for session_id in ("open", "given up"):
            said = [{"role": "user", "content": f"{session_id} likes oolong"}]
            await memory.add(said, user_id="waits", session_id=session_id, wait=False)
        await memory.jobs.cancel(await _job(memory, "given up"), user_id="waits")


LOOKED_AT = (
    "SELECT 'memory', user_id, memory_type, content, status, version, session_id, valid_to IS NULL FROM memories",
    "SELECT 'message', user_id, session_id, role, text FROM messages",
    "SELECT 'revision', user_id, version, action, actor FROM revisions",
    "SELECT 'synonym', * FROM synonyms",
    "SELECT 'job', user_id, kind, state FROM jobs WHERE state != 'indexed' AND kind != 'upkeep'",
    "SELECT 'key', name, revoked_at IS NULL FROM api_keys",
    "SELECT 'recall', user_id, query FROM recalls",
    "SELECT 'relation', user_id, relation_type FROM relations",
    "SELECT 'audit', action FROM audit",
)
_ID = re.compile(r"\b[0-9a-z]{26}\b|jiyi:\S+|\d{4}-\d\d-\d\dT?[\d:. ]*")


def held(place: Place) -> Counter[str]:
    """Dump a store and its files, one line per row, without values that differ between runs."""
    found: Counter[str] = Counter()
    with closing(sqlite3.connect(place / "memory.db")) as database:
        state = database.execute("PRAGMA integrity_check").fetchall()
        if state != [("ok",)]:
            return Counter([f"DAMAGED: {state[:2]}"])
        for statement in LOOKED_AT:
            for row in database.execute(statement):
                found[_ID.sub("*", repr(row))] += 1
        for table in ("terms", "embeddings", "keywords", "memory_sources"):
            found[f"rows of {table}"] = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    for path in sorted(place.rglob("*.md")):
        for line in path.read_text("utf-8").splitlines():
            found[f"{path.relative_to(place)}: {_ID.sub('*', line)}"] += 1
    for name in ("out.jsonl", "out.db", "moved.db", "new/deep/memory.db"):
        if (place / name).exists():
            found.update(_beside(place / name, name))
    return found


def _beside(path: Path, name: str) -> dict[str, int]:
    """Files that a verb has written outside the store."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return {f"{name}, {'whole' if lines else 'TORN'}": 1}
    with closing(sqlite3.connect(path)) as database:
        whole = database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        made = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'memories'").fetchall()
        memories = database.execute("SELECT count(*) FROM memories").fetchone()[0] if made else 0
    return {f"{name}, {'whole' if whole else 'TORN'}": 1, f"{name}, rows of memories": memories}
