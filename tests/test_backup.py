"""A backup made while others write holds everything acknowledged before it began, and comes back whole."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jiyi import InvalidInput, Memory, NotAStore, StoreUnavailable, restore_backup
from jiyi.cli.app import app
from jiyi.testing import WordEmbedder
from support import LONG, Place, ask, contents, dump, stored

WRITERS = 4 if LONG else 2
PARTS = 3  # memories of one `add`, which is one transaction

WRITER = """
import asyncio, sys
from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

async def main(where, name, log):
    settings = load_settings(extraction={"enabled": False})
    with open(log, "a", buffering=1) as acknowledged:
        async with Memory.open(where, embedder=WordEmbedder(64), settings=settings) as memory:
            for number in range(10_000):
                made = await memory.add([f"{name} says {number} part {part}" for part in range(3)], user_id=name)
                acknowledged.write(f"{name} says {number}\\n")
                if number % 5 == 4:
                    await memory.delete(made.memories[0].id, user_id=name)

asyncio.run(main(*sys.argv[1:]))
"""


def whole_lines(log: Path) -> list[str]:
    return log.read_text().rpartition("\n")[0].splitlines() if log.exists() else []


async def more_than(counts: list[int], logs: list[Path], writers: list[subprocess.Popen[bytes]]) -> None:
    """Wait until every writer has acknowledged more."""
    until = time.monotonic() + 120
    while any(len(whole_lines(log)) <= count for log, count in zip(logs, counts, strict=True)):
        assert time.monotonic() < until
        assert all(writer.poll() is None for writer in writers)
        await asyncio.sleep(0.02)


async def test_a_backup_during_writes_holds_all_that_was_acknowledged(place: Place, tmp_path: Path) -> None:
    logs = [tmp_path / f"log{number}" for number in range(WRITERS)]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(place), f"writer{number}", str(log)])
        for number, log in enumerate(logs)
    ]
    try:
        await more_than([9] * WRITERS, logs, writers)
        async with Memory.open(place, embedder=WordEmbedder(64)) as memory:
            backups = []
            for number in range(3):
                before = [whole_lines(log) for log in logs]
                await memory.transfer.backup(tmp_path / f"backup{number}.db")
                backups.append(before)
                await more_than([len(lines) for lines in before], logs, writers)  # they go on writing
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    for number, before in enumerate(backups):
        restored = tmp_path / f"restored{number}.db"
        done = await restore_backup(tmp_path / f"backup{number}.db", restored)
        assert done.users == WRITERS
        said = [content for (content,) in ask(restored, "SELECT content FROM memories")]
        parts: dict[str, set[str]] = {}
        for text in said:
            turn, _, part = text.rpartition(" part ")
            parts.setdefault(turn, set()).add(part)
        assert {turn for log in before for turn in log} <= parts.keys(), "acknowledged, so it is there"
        for turn, there in parts.items():
            whole = {"0", "1", "2"}
            deleted = int(turn.split()[-1]) % 5 == 4
            assert there == whole or (deleted and there == whole - {"0"}), "whole transactions only"
        async with Memory.open(restored, embedder=WordEmbedder(64)) as memory:
            found = await memory.search("writer0 says 3", user_id="writer0", limit=3)
            assert len(found.hits) == 3


async def fill(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder(64)) as memory:
        await memory.add([{"role": "user", "content": "我住在柏林。I like tea."}], user_id="mei", session_id="s")
        await memory.add("likes chess", user_id="bo", idempotency_key="k")
        await memory.synonyms.add([("tea", "茶")])


async def test_what_comes_back_is_what_was_there(place: Place, tmp_path: Path) -> None:
    """Every row of every table, from either database into a file and back."""
    await fill(place)
    async with Memory.open(place, embedder=WordEmbedder(64)) as memory:
        made = await memory.transfer.backup(tmp_path / "backup.db")
        before = {user: await stored(memory, user) for user in ("mei", "bo")}
        assert (made.users, made.memories) == (2, sum(map(len, before.values())))
        await memory.delete_all("mei")
        await memory.add("after the backup", user_id="ann")
    untouched = (tmp_path / "backup.db").read_bytes()
    with pytest.raises(InvalidInput, match=r"exists already|is not empty"):
        await restore_backup(tmp_path / "backup.db", place)
    await restore_backup(tmp_path / "backup.db", place, force=True)
    assert (tmp_path / "backup.db").read_bytes() == untouched
    async with Memory.open(place, embedder=WordEmbedder(64)) as memory:
        assert list(await memory.users()) == ["bo", "mei"]
        assert {user: await stored(memory, user) for user in ("mei", "bo")} == before
        assert (await memory.add("likes chess", user_id="bo", idempotency_key="k")).created == 1  # the first receipt
        assert (await memory.add("new again", user_id="bo")).created == 1  # the change feed goes on
        assert contents(await memory.search("new again", user_id="bo"))[0] == "new again"


async def test_from_one_database_into_the_other(path: Path, database: str, tmp_path: Path) -> None:
    await fill(path)
    async with Memory.open(path, embedder=WordEmbedder(64)) as memory:
        await memory.transfer.backup(tmp_path / "backup.db")
    await restore_backup(tmp_path / "backup.db", database)
    async with Memory.open(database, embedder=WordEmbedder(64)) as memory:
        await memory.transfer.backup(tmp_path / "again.db")
        assert contents(await memory.search("chess", user_id="bo")) == ["likes chess"]
    await restore_backup(tmp_path / "again.db", tmp_path / "new.db")
    assert dump(tmp_path / "new.db") == dump(path)


async def test_a_bad_backup_changes_nothing(path: Path, tmp_path: Path) -> None:
    await fill(path)
    async with Memory.open(path, embedder=WordEmbedder(64)) as memory:
        await memory.transfer.backup(tmp_path / "good.db")
    good = (tmp_path / "good.db").read_bytes()
    before = path.read_bytes()
    damaged = bytearray(good)
    for at in range(8192 * 3, len(damaged) - 8192, 8192):
        damaged[at : at + 200] = b"\xff" * 200
    for name, bad in {
        "cut": good[: len(good) // 2],
        "damaged": bytes(damaged),
        "text": b"Dear Sir or Madam" * 99,
    }.items():
        (tmp_path / name).write_bytes(bad)
        with pytest.raises(NotAStore):
            await restore_backup(tmp_path / name, path, force=True)
    with pytest.raises(NotAStore, match="is no file"):
        await restore_backup(tmp_path / "nothing", path, force=True)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".*.part"))


async def test_a_store_that_somebody_has_open_is_not_replaced(path: Path, tmp_path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder(64)) as memory:
        await memory.add("likes tea", user_id="mei")
        await memory.transfer.backup(tmp_path / "backup.db")
        with pytest.raises(StoreUnavailable, match="in use"):
            await restore_backup(tmp_path / "backup.db", path, force=True)
        assert (await memory.add("still here", user_id="mei")).created == 1


async def test_a_log_that_was_left_behind_is_not_taken_for_the_new_files(path: Path, tmp_path: Path) -> None:
    await fill(path)
    async with Memory.open(path, embedder=WordEmbedder(64)) as memory:
        await memory.transfer.backup(tmp_path / "backup.db")
    target = tmp_path / "gone.db"
    target.with_name("gone.db-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\x00" * 100)
    await restore_backup(tmp_path / "backup.db", target)
    assert dump(target) == dump(path)


def test_the_command_line_backs_up_and_restores(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_URL", str(path))
    asyncio.run(fill(path))
    run = CliRunner()
    backup = str(tmp_path / "backup.db")
    assert run.invoke(app, ["backup", backup]).exit_code == 0
    assert run.invoke(app, ["backup", backup]).exit_code == 2
    assert run.invoke(app, ["restore", "--from", backup]).exit_code == 2
    told = run.invoke(app, ["restore", "--from", backup, "--force", "--json"])
    assert told.exit_code == 0, told.output
    assert '"users": 2' in told.stdout
    assert run.invoke(app, ["restore"]).exit_code == 2


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(16)) as memory:
        await memory.add("likes tea", user_id="mei")
        await memory.transfer.backup(tmp_path / "backup.db")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("jiyi.transfer.backup._replace_store_file", full)
    with pytest.raises(StoreUnavailable, match=r"memory\.db could not be replaced: .*No space left"):
        await restore_backup(tmp_path / "backup.db", tmp_path / "memory.db", force=True)
