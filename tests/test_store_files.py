"""The store's file: where it lies, whose it is, which schema it has, and what happens when it cannot be used."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

import workers
from jiyi import Memory, NotAStore, SchemaTooNew, SettingsError, StoreError, StoreUnavailable
from jiyi.settings import load_settings
from jiyi.store.migrations import versions
from jiyi.store.schema import migrate as schema
from jiyi.testing import WordEmbedder
from support import contents, dump
from workers import crew


def open_at(where: str | Path | None, **options: Any) -> Memory:
    return Memory.open(where, embedder=WordEmbedder(), settings=load_settings(**options))


# -- where ----------------------------------------------------------------------------------------------------------


async def test_by_default_memories_lie_in_the_users_data_directory(tmp_path: Path) -> None:
    async with open_at(None) as memory:
        await memory.add("likes tea", user_id="mei")
    assert (tmp_path / "home/data/jiyi/memory.db").is_file()
    async with open_at(None) as memory:
        assert await memory.count(user_id="mei") == 1


async def test_the_url_setting_says_where(tmp_path: Path) -> None:
    async with open_at(None, url=str(tmp_path / "a b/ü.db")) as memory:
        await memory.add("likes tea", user_id="mei")
    assert (tmp_path / "a b/ü.db").is_file()


@pytest.mark.parametrize("name", ["plain.db", "with space.db", "100%.db", "a#b?c=d.db", "记忆.db", "no-ending"])
async def test_any_file_name_works_as_a_path(tmp_path: Path, name: str) -> None:
    async with open_at(tmp_path / name) as memory:
        await memory.add("likes tea", user_id="mei")
        assert (await memory.stats()).store == f"sqlite:///{tmp_path / name}"
    assert (tmp_path / name).is_file()


async def test_a_url_names_an_absolute_or_a_relative_path(tmp_path: Path) -> None:
    async with open_at(f"sqlite:///{tmp_path}/absolute.db"):
        pass
    async with open_at("sqlite:///relative.db"):
        pass
    async with open_at("~/in-home.db"):
        pass
    assert (tmp_path / "absolute.db").is_file()
    assert (tmp_path / "here/relative.db").is_file()
    assert (tmp_path / "home/in-home.db").is_file()


@pytest.mark.parametrize("url", ["mysql://x", "sqlite://x", "ftp://example.org/x.db"])
def test_other_databases_are_refused_by_name(url: str) -> None:
    with pytest.raises(SettingsError, match=f"{url.partition(':')[0]}://"):
        open_at(url)


async def test_a_new_file_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with open_at(tmp_path / "new/memory.db") as memory:
            await memory.add("likes tea", user_id="mei")
            for file in (tmp_path / "new").iterdir():  # also the log and its index
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
            assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    finally:
        os.umask(before)


async def test_the_mode_of_an_existing_file_is_left_alone(path: Path) -> None:
    path.chmod(0o640)
    async with open_at(path) as memory:
        await memory.add("likes tea", user_id="mei")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_what_is_closed_says_so(path: Path) -> None:
    memory = open_at(path)
    with pytest.raises(StoreError, match="is not open"):
        await memory.count(user_id="mei")
    async with memory:
        await memory.add("likes tea", user_id="mei")
    for verb in (memory.add("x", user_id="mei"), memory.search("x", user_id="mei"), memory.delete_all("mei")):
        with pytest.raises(StoreError, match="is not open"):
            await verb
    async with memory:  # and can be opened again
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
    await memory.close()
    await memory.close()


async def test_it_can_be_awaited_instead_of_entered(path: Path) -> None:
    memory = await open_at(path)
    await memory.add("likes tea", user_id="mei")
    await memory.close()


# -- files that are no stores ---------------------------------------------------------------------------------------


def sql(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def make_text(path: Path) -> Path:
    path.write_text("Dear diary, " * 500)
    return path


def make_truncated(path: Path) -> Path:
    sql(path, "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(20000));")
    path.write_bytes(path.read_bytes()[:5000])
    return path


FOREIGN = {
    "a folder": (StoreError, lambda path: (path.mkdir(), path)[1]),
    "a text": (NotAStore, make_text),
    "a damaged database": (NotAStore, make_truncated),
    "another program's database": (NotAStore, lambda path: sql(path, "CREATE TABLE songs (title);")),
    "another program's database with migrations": (
        NotAStore,
        lambda path: sql(
            path,
            "CREATE TABLE songs (title); CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL);"
            f"INSERT INTO alembic_version VALUES ('{schema.HEAD}');",
        ),
    ),
}


@pytest.mark.parametrize(("error", "make"), FOREIGN.values(), ids=FOREIGN)
async def test_what_is_no_store_is_refused_and_left_as_it_was(tmp_path: Path, error: Any, make: Any) -> None:
    path = make(tmp_path / "thing")
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(error, match=re.escape(str(path))):
        async with open_at(path):
            pass
    after = path.read_bytes() if path.is_file() else b""
    assert after == before  # also its header, which says how it keeps its log: that is its owner's to decide
    assert {file.name for file in tmp_path.iterdir()} == {"here", "home", "thing"}


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch()
    async with open_at(tmp_path / "memory.db") as memory:
        await memory.add("likes tea", user_id="mei")


async def test_a_newer_schema_is_refused_by_name_and_left_as_it_was(path: Path) -> None:
    async with open_at(path) as memory:
        await memory.add("likes tea", user_id="mei")
    sql(path, "UPDATE alembic_version SET version_num = '9876';")
    before = dump(path)
    with pytest.raises(SchemaTooNew, match=rf"schema 9876.*up to {schema.HEAD}: upgrade jiyi"):
        async with open_at(path):
            pass
    assert dump(path) == before


def test_a_refused_file_ends_a_program_with_the_error_alone(tmp_path: Path) -> None:
    """No thread keeps it running, no connection is left unclosed."""
    make_text(tmp_path / "thing")
    program = (
        "import asyncio, sys\nfrom jiyi import Memory, NotAStore\nfrom jiyi.testing import WordEmbedder\n"
        "async def main():\n"
        "    try:\n        await Memory.open(sys.argv[1], embedder=WordEmbedder())\n"
        "    except NotAStore:\n        print('refused')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, tmp_path / "thing"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("refused\n", "", 0)


def test_an_unclosed_memory_does_not_keep_a_program_running(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom jiyi import Memory\nfrom jiyi.testing import WordEmbedder\n"
        "async def main():\n"
        "    memory = await Memory.open(sys.argv[1], embedder=WordEmbedder())\n"
        "    await memory.add('likes tea', user_id='mei')\n"
        "asyncio.run(main())\nprint('end')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "x.db"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("end\n", 0)


# -- without permission ---------------------------------------------------------------------------------------------

WRITE_AS_NOBODY = """
import asyncio, os, sys
from jiyi import Memory, JiyiError
from jiyi.testing import WordEmbedder
async def write(path):
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.add("likes tea", user_id="mei")
async def main():
    await write(sys.argv[1])  # as oneself: all that is needed is loaded now
    if os.getuid() == 0:  # root may write everywhere
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        await write(sys.argv[2])
        print("written")
    except JiyiError as error:
        print(type(error).__name__, error)
asyncio.run(main())
"""


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Path]:
    """A folder that everybody reaches and nobody may write to."""
    folder = Path(tempfile.mkdtemp(prefix="jiyi-test-"))
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def written_as_nobody(tmp_path: Path, store: Path, **where: Any) -> str:
    command = [sys.executable, "-c", WRITE_AS_NOBODY, tmp_path / "own.db", store]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **where)
    assert done.stderr == ""
    return done.stdout


def test_a_folder_without_permission_is_named(tmp_path: Path, guarded: Path) -> None:
    told = written_as_nobody(tmp_path, guarded / "memory.db", cwd="/", env={"HOME": "/nonexistent"})
    assert told.startswith(f"StoreUnavailable {guarded}/memory.db")
    assert "ermission" in told


def test_a_file_without_permission_is_named_and_unchanged(tmp_path: Path, guarded: Path, empty_store: Path) -> None:
    guarded.chmod(0o755)
    store = Path(shutil.copy(empty_store, guarded))
    store.chmod(0o444)
    guarded.chmod(0o555)
    before = store.read_bytes()
    told = written_as_nobody(tmp_path, store, cwd="/", env={"HOME": "/nonexistent"})
    assert told.startswith(f"StoreUnavailable {store}")
    assert "ermission" in told
    assert store.read_bytes() == before


def test_a_folder_that_cannot_be_looked_into_is_no_reason_to_fail(tmp_path: Path, guarded: Path) -> None:
    """A service often starts in somebody else's folder; that no settings can be read there is not its concern."""
    guarded.chmod(0o777)
    (tmp_path / "here").chmod(0o700)
    assert written_as_nobody(tmp_path, guarded / "memory.db", cwd=tmp_path / "here") == "written\n"


async def test_a_file_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=str(tmp_path / "file")):
        async with open_at(tmp_path / "file/memory.db"):
            pass


# -- the disk and the lock ------------------------------------------------------------------------------------------


async def test_the_promised_pragmas_hold_on_every_connection(memory: Memory, path: Path) -> None:
    promised = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1}

    def held(session: Session) -> dict[str, Any]:
        return {pragma: session.scalar(text(f"PRAGMA {pragma}")) for pragma in promised}

    database = memory._engine.store.database
    assert await database.read("mei", held) == promised
    assert await database.write(["mei"], held) == promised
    assert await database.snapshot("mei", held) == promised


async def test_another_writer_is_waited_for(path: Path) -> None:
    async with open_at(path, busy_timeout_s=60) as memory:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            adding = asyncio.create_task(memory.add("likes tea", user_id="mei"))
            await asyncio.sleep(0.3)
            assert not adding.done()
            assert (await memory.search("tea", user_id="mei")).searched == 0  # reading goes on
            other.execute("COMMIT")
            assert (await adding).created == 1


async def test_a_lock_that_lasts_is_named_and_nothing_is_written(path: Path) -> None:
    async with open_at(path, busy_timeout_s=0.2) as memory:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for verb in (memory.add("likes tea", user_id="mei"), memory.delete_all("mei")):
                with pytest.raises(StoreUnavailable, match="locked"):
                    await verb
            other.execute("ROLLBACK")
        assert await memory.count(user_id="mei") == 0
        await memory.add("likes tea", user_id="mei")
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Four megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def test_a_full_disk_is_named_loses_nothing_and_is_got_over(small_disk: Path) -> None:
    path = small_disk / "memory.db"
    acknowledged = []
    async with open_at(path) as memory:
        with pytest.raises(StoreUnavailable, match="full"):
            for number in range(200):
                text = f"fact {number} " + "很长的内容" * 4000
                acknowledged += [made.id for made in (await memory.add(text, user_id="mei")).memories]
        assert acknowledged
        # Reading goes on, and sees exactly what was acknowledged.
        assert await memory.count(user_id="mei") == len(acknowledged)
        assert (await memory.search("fact", user_id="mei", limit=1)).total_found == len(acknowledged)
        subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
        await memory.add("there is room again", user_id="mei")
        assert len(contents(await memory.search("room", user_id="mei", search_mode="keyword"))) == 1
    async with open_at(path) as memory:
        assert len(await memory.get_many(acknowledged, user_id="mei")) == len(acknowledged)


async def test_on_a_full_disk_a_deletion_is_done_or_refused_but_never_both(small_disk: Path) -> None:
    """`StoreUnavailable` says that nothing was written; then nothing may be gone either."""
    async with open_at(small_disk / "memory.db") as memory:
        await memory.add([f"small {number}" for number in range(50)], user_id="bo")
        for size in (4000, 100):
            with pytest.raises(StoreUnavailable):
                for number in range(2000):
                    await memory.add(f"fact {number} " + "很长的内容" * size, user_id="mei")
    async with open_at(small_disk / "memory.db") as memory:
        for user_id in ("bo", "mei"):
            before = await memory.count(user_id=user_id)
            assert before
            try:
                await memory.delete_all(user_id)
                expected = 0
            except StoreUnavailable:
                expected = before
            assert await memory.count(user_id=user_id) == expected


# -- the schema -----------------------------------------------------------------------------------------------------


def test_head_is_the_newest_migration() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).parents[1] / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]
    files = [file.name for file in Path(next(iter(versions.__path__))).glob("[0-9]*.py")]
    assert max(files).startswith(schema.HEAD)


def test_a_store_made_by_jiyi_itself_is_stamped(empty_store: Path) -> None:
    assert dump(empty_store)["alembic_version"] == [(schema.HEAD,)]


def test_several_processes_may_make_a_new_store_at_once(tmp_path: Path) -> None:
    for turn in range(2):
        path = tmp_path / f"{turn}.db"
        told = crew([(workers.open_and_add, (path, f"fact {number}")) for number in range(6)])
        assert told == [None] * 6
        rows = dump(path)
        assert len(rows["memories"]) == 6
        assert rows["alembic_version"] == [(schema.HEAD,)]
