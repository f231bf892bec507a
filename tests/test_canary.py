"""Delete means gone: marked memories go through every feature and are deleted; then no mark is left in the database,
its log, exports, backups, caches, logs, or in the memory of a process that opens the store afterwards."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import logging
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from jiyi import LlmRefused, Memory, NotFound
from jiyi.settings import Settings, load_settings
from jiyi.testing import WordEmbedder
from jiyi.write.drafts import Draft, Unit
from postgres_server import Server, Unavailable
from redis_server import RedisServer
from support import LONG, NOW, Place, ask, contents, file_bytes, rows_with, stored

MARKED = 200 if LONG else 8
LATIN, HAN = "Zanzibarquartz", "鸾鹓"  # no other text holds any of this
NEIGHBOUR = "plays chess with the neighbours 下棋"

CHILD = """
import asyncio, sys
from jiyi import Memory
from jiyi.testing import WordEmbedder

async def main():
    async with Memory.open(sys.argv[1], embedder=WordEmbedder(64)) as memory:
        for user in ("mei", "bo"):
            for query in ("chess 下棋", "where does somebody live", "what is new"):
                await memory.search(query, user_id=user)
            for types in (None, ["message"]):
                page = await memory.list(user_id=user, memory_types=types, limit=1000)
                for one in page.items[:20]:
                    await memory.history(one.id, user_id=user)
        print("ready", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


def needles() -> list[bytes]:
    """The marks as UTF-8, as JSON spells them, and as Python keeps them in RAM; in either case of the letters."""
    found = [form(LATIN) for form in (str, str.lower, str.upper)]
    return [
        *(text.encode() for text in found),
        *(HAN.encode(codec) for codec in ("utf-8", "utf-16-le", "utf-32-le")),
        HAN.encode("ascii", "backslashreplace"),
    ]


def marks_in(data: bytes) -> list[bytes]:
    return [needle for needle in needles() if needle in data]


def mark(number: int) -> str:
    return f"{LATIN}{number:03}{HAN}"


def settings(**more: Any) -> Settings:
    return load_settings(jobs={"in_process": False, "max_attempts": 1}, **more)


async def refuse(unit: Unit) -> Sequence[Draft]:
    """An extractor whose error quotes what it was given, as endpoints do."""
    raise LlmRefused(f"cannot make sense of {unit.messages[0].text!r}")


async def mark_everything(place: Place, tmp_path: Path, count: int, options: Settings) -> None:
    """Marked memories, by every way in, with neighbours between them."""
    async with Memory.open(place, embedder=WordEmbedder(64), settings=options) as memory:
        for number in range(count):
            text, way = mark(number), number % 8
            session = f"s{number // 8}"
            if way == 0:
                await memory.add(
                    f"I live in {text}", user_id="mei", session_id=session, tags=[text], metadata={"m": text}
                )
            elif way == 1:
                said = [
                    {"role": "user", "content": f"I moved to {text} and I like tea.", "name": "Mei"},
                    {"role": "assistant", "content": f"How is {text}?"},
                    {"role": "user", "content": f"我叫{text}，我对{text}过敏。"},
                ]
                await memory.add(said, user_id="mei", session_id=session)
            elif way == 2:
                made = (await memory.add(f"likes {number} things", user_id="mei")).memories[0]
                await memory.update(made.id, user_id="mei", content=f"likes {text}", reason=f"heard of {text}")
                await memory.update(made.id, user_id="mei", summary=f"{text}!", status="archived")
            elif way == 3:
                await memory.observe(f"My boss is {text}", user_id="mei", session_id=session)
                assert not (await memory.sessions.flush()).failed
                await memory.sessions.end(session, user_id="mei")
            elif way == 4:
                await memory.sessions.add_summary(f"We spoke of {text} at length.", user_id="mei", session_id=session)
                await memory.add({"content": f"was in {text}", "valid_to": NOW, "memory_key": text}, user_id="mei")
            elif way == 5:
                chat = tmp_path / "in" / f"{number}.json"
                chat.parent.mkdir(exist_ok=True)
                chat.write_text(json.dumps([{"role": "user", "content": f"remember {text}", "id": f"i{number}"}]))
                await memory.transfer.import_chats(chat, user_id="mei")
            elif way == 6:
                got = tmp_path / "in" / f"m{number}.json"
                got.parent.mkdir(exist_ok=True)
                got.write_text(json.dumps([{"id": str(number), "memory": f"owns {text}", "categories": [text]}]))
                await memory.transfer.import_memories(got, user_id="mei")
            else:
                await memory.sessions.record_skill(f"how to {text}", [f"open {text}", "close it"], user_id="mei")
            await memory.add(f"{NEIGHBOUR} {number}", user_id="mei", session_id=session)
            await memory.add(f"{NEIGHBOUR} {number}", user_id="bo")
            await memory.search(f"where is {text}?", user_id="mei")
            await memory.search(f"where is {text}?", user_id="mei")
            await memory.context(f"{text}", user_id="mei", max_tokens=200)
        await memory.usage.recalls(user_id="mei")
    await compress_marked(place, options)
    async with Memory.open(place, embedder=WordEmbedder(64), settings=options, extractor=refuse) as memory:
        failing = [{"role": "user", "content": f"a job about {mark(998)}"}]
        await memory.add(failing, user_id="mei", session_id="job", metadata={"about": mark(998)}, wait=False)
        waiting = [{"role": "user", "content": f"a job that waits for {mark(999)}"}]
        await memory.jobs.work()
        await memory.add(waiting, user_id="mei", session_id="job2", metadata={"about": mark(999)}, wait=False)


async def compress_marked(place: Place, options: Settings) -> None:
    """Some that are taken for old: what is marked stands in another memory, too, with vectors of its lines."""
    at_once = options.maintenance.model_copy(update={"compress_after_days": 0, "compress_again_after_days": 0})
    old = options.model_copy(update={"maintenance": at_once})
    async with Memory.open(place, embedder=WordEmbedder(64), settings=old) as memory:
        for day in range(1, 5):
            told = {"content": f"Saw {mark(900 + day)} on the hill.", "occurred_at": NOW - timedelta(days=day)}
            await memory.add(told, user_id="mei", memory_type="log")
        plan = await memory.maintenance.compress_plan(user_id="mei")
        logs = tuple(one for one in plan.bundles if one.memory_type == "log")
        done = await memory.maintenance.compress(user_id="mei", plan=plan.model_copy(update={"bundles": logs}))
        assert (done.made, done.archived) == (1, 4)


async def unmark(memory: Memory, place: Place) -> int:
    """Delete every memory that bears a mark, active or not, current or over, with its sources. → how many calls"""
    calls = 0
    for (memory_id,) in ask(place, "SELECT id FROM memories WHERE user_id = 'mei' ORDER BY id"):
        with contextlib.suppress(NotFound):
            if LATIN in repr(
                (await memory.get(memory_id, user_id="mei"), await memory.history(memory_id, user_id="mei"))
            ):
                await memory.delete(memory_id, user_id="mei", with_sources=True)
                calls += 1
    return calls


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Everything that anybody logs, as a server at its most talkative would."""
    handler = logging.FileHandler(path, encoding="utf-8")
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        handler.close()


def process_memory(place: Place) -> bytes:
    """The writable memory of a process that opened the store after the deletion and searched, read from outside.
    Mappings that it never touched, half of them, hold nothing."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout and child.stdin
    try:
        assert child.stdout.readline() == "ready\n"
        found = []
        with Path(f"/proc/{child.pid}/mem").open("rb", buffering=0) as memory:
            smaps = Path(f"/proc/{child.pid}/smaps").read_text()
            for area in re.finditer(r"^([0-9a-f]+)-([0-9a-f]+) rw(?:.*\n(?![0-9a-f]+-))+", smaps, re.MULTILINE):
                if re.search(r"^(?:Rss|Swap): +[1-9]", area[0], re.MULTILINE):
                    start, end = int(area[1], 16), int(area[2], 16)
                    with contextlib.suppress(OSError, ValueError, OverflowError):
                        memory.seek(start)
                        found.append(memory.read(end - start))
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.wait(60) == 0
        return b"".join(found)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        child.stdin.close()


async def test_no_mark_is_left_anywhere(path: Path, tmp_path: Path, own_redis: RedisServer) -> None:
    options = settings(cache={"redis_url": own_redis.url})
    log = tmp_path / "log.txt"
    with logging_to(log):
        await mark_everything(path, tmp_path, MARKED, options)
        before = {name: await neighbours(path, name) for name in ("mei", "bo")}
        assert marks_in(file_bytes(path))
        assert {"memories", "messages", "keywords", "revisions", "jobs", "recalls"} <= rows_with(
            path, LATIN, LATIN.lower()
        ).keys()
        folder = tmp_path / "notes"
        async with Memory.open(path, embedder=WordEmbedder(64), settings=options, workspace=folder) as memory:
            await memory.search(mark(1), user_id="mei")
            notes = folder / "mei/context/memory.md"
            await memory.workspace.sync(user_id="mei")
            notes.write_text(
                notes.read_text(encoding="utf-8") + f"\n## Facts\n- by hand: {mark(997)}\n", encoding="utf-8"
            )
            await memory.workspace.sync(user_id="mei")
            assert len(marks_in(folder_bytes(folder))) > 1 and marks_in(kept_in_this_process())
            assert await unmark(memory, path) >= MARKED + 1
            assert marks_in(folder_bytes(folder)) == [] and NEIGHBOUR.encode() in folder_bytes(folder)
            assert marks_in(kept_in_this_process()) == []
            assert rows_with(path, LATIN, LATIN.lower(), HAN) == {}
            assert contents(await memory.search("chess 下棋", user_id="mei"))
            assert await memory.delete_all("nobody")
            await copies(memory, tmp_path)
            assert marks_in(file_bytes(path)) == [], "while it is open: file, log and shared memory"
    assert marks_in(file_bytes(path)) == [], "when it is closed"
    assert marks_in(folder_bytes(folder)) == []
    for file in (*COPIES, "log.txt"):
        assert marks_in((tmp_path / file).read_bytes()) == [], file
    assert marks_in(redis_bytes(own_redis)) == []
    seen = process_memory(path)
    assert marks_in(seen) == []
    assert NEIGHBOUR.encode() in seen, "what is there would have been found"
    assert {name: await neighbours(path, name) for name in ("mei", "bo")} == before


COPIES = ("after.jsonl", "after.md", "after.db")


async def copies(memory: Memory, folder: Path) -> None:
    """What is made of a store after the deletion, to be taken elsewhere."""
    await memory.transfer.export(folder / "after.jsonl")
    await memory.transfer.export(folder / "after.md", format="markdown")
    await memory.transfer.backup(folder / "after.db")


async def test_no_mark_of_a_user_who_was_deleted_by_command_is_left(path: Path, tmp_path: Path) -> None:
    await mark_everything(path, tmp_path, 8, settings())
    before = await neighbours(path, "bo")
    words = ("delete", "--all", "--user", "mei", "--yes", "--store", str(path))
    command = [sys.executable, "-c", "from jiyi.cli import main; main()", *words]
    said = subprocess.run(command, capture_output=True, check=True)
    assert marks_in(said.stdout + said.stderr) == []
    assert marks_in(file_bytes(path)) == [] and rows_with(path, "mei") == {}
    async with Memory.open(path, embedder=WordEmbedder(64), settings=settings()) as memory:
        await copies(memory, tmp_path)
    assert [file for file in COPIES if marks_in((tmp_path / file).read_bytes())] == []
    seen = process_memory(path)
    assert marks_in(seen) == [] and NEIGHBOUR.encode() in seen
    assert await neighbours(path, "bo") == before


async def test_no_mark_of_an_erased_user_is_left(path: Path, tmp_path: Path) -> None:
    await mark_everything(path, tmp_path, 8, settings())
    before = await neighbours(path, "bo")
    async with Memory.open(path, embedder=WordEmbedder(64), settings=settings()) as memory:
        await memory.synonyms.add([(LATIN, HAN)], user_id="mei")
        gone = await memory.delete_all("mei")
        assert {
            "memories",
            "messages",
            "vectors",
            "terms",
            "keywords",
            "revisions",
            "recalls",
            "jobs",
        } <= gone.removed.keys()
        assert gone.notes == ()
        await memory.delete_all("bo2")
        assert marks_in(file_bytes(path)) == []
    assert rows_with(path, "mei") == {}
    assert await neighbours(path, "bo") == before


async def neighbours(place: Place, user_id: str) -> list[Any]:
    """What is not marked, as it is stored, with its history."""
    async with Memory.open(place, embedder=WordEmbedder(64), settings=settings()) as memory:
        return [
            (
                one.model_dump(exclude={"access_count", "last_accessed_at"}),
                await memory.history(one.id, user_id=user_id),
            )
            for one in await stored(memory, user_id)
            if NEIGHBOUR in one.content and one.memory_type == "fact"
        ]


def folder_bytes(folder: Path) -> bytes:
    """All files in it, with their names; those in the making and hidden ones too."""
    return b"".join(bytes(file) + (file.read_bytes() if file.is_file() else b"") for file in folder.rglob("*"))


def kept_in_this_process() -> bytes:
    """All text that Jiyi's functions keep so as not to work something out twice."""
    found: list[str] = []
    caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    waiting: list[object] = [one for one in caches if one.__module__.startswith("jiyi.")]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (type, type(sys), type(needles))):
            continue
        seen.add(id(one))
        found += [one] if isinstance(one, str) else []
        waiting += gc.get_referents(one)
    return "\n".join(found).encode(errors="replace")


def redis_bytes(server: RedisServer) -> bytes:
    """Every key and value, and the file that Redis saves itself to."""
    client = redis.Redis.from_url(server.url)
    found = [key + b"".join(sum(client.hgetall(key).items(), ())) for key in client.scan_iter()]  # type: ignore[union-attr]
    client.save()
    client.close()
    return b"".join([*found, (server.home / "dump.rdb").read_bytes()])


@pytest.mark.skipif(not LONG, reason="a PostgreSQL server of its own, whose disk is read: JIYI_TEST_LONG=1")
@pytest.mark.parametrize("everything", [False, True], ids=["each", "all"])
async def test_no_mark_is_left_on_the_disk_of_postgresql(tmp_path: Path, everything: bool) -> None:
    try:
        server = Server("wal_recycle=off", "min_wal_size=32MB", "autovacuum=off")
    except Unavailable as error:
        pytest.skip(str(error))
    try:
        place = server.url()
        await mark_everything(place, tmp_path, 40, settings())
        data = server.home / "data"
        async with Memory.open(place, embedder=WordEmbedder(64), settings=settings()) as memory:
            assert marks_in(_disk(data)), "the scan sees what is there"
            if everything:
                await memory.delete_all("mei")
            else:
                await unmark(memory, place)
            assert rows_with(place, LATIN, LATIN.lower(), HAN) == {}
            assert everything or marks_in(_disk(data)), "PostgreSQL keeps deleted rows"
            await copies(memory, tmp_path)
            assert [file for file in COPIES if marks_in((tmp_path / file).read_bytes())] == []
            assert await memory.maintenance.vacuum() == ()
            assert (
                await memory.maintenance.vacuum() == ()
            )  # the first checkpoint may still need the segment it began in
        assert [str(file) for file in data.rglob("*") if file.is_file() and marks_in(file.read_bytes())] == []
        server.end(signal.SIGINT)
        assert marks_in(_disk(server.home)) == [], "stopped, with its log"
    finally:
        server.stop()


def _disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())
