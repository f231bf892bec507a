"""Stores that earlier versions wrote, one for each schema so far: opened today, all is there and found; killed at every
write of a migration, they are as before, and the next try brings them to today's schema.

The stores in `tests/fixtures/schemas` were written by the code of their time, and are kept as SQL. With a new schema:
`python -m torture.upgrade` writes today's down.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from jiyi import Memory
from jiyi.store import schema, sqlite
from jiyi.testing import WordEmbedder

from .apart import ROOT, begun, ended
from .shim import Mode, Shim
from .trial import Trial
from .writes import KILLED, under_the_shim

PROTECTIONS = {"one transaction": "each statement of a migration is committed by itself, without a journal"}
STORES = ROOT / "tests/fixtures/schemas"
THERE = {  # what each of them holds
    "I am a vegetarian, 对花生过敏",
    "the bicycle is red",
    "the camera is lent to Tom",
    "下周三去上海出差",
    "好的，需要订酒店吗？",
}


async def fill(path: Path) -> None:
    """What `THERE` says, and something of each table."""
    async with Memory.open(path, embedder=WordEmbedder(16)) as memory:
        await memory.add("I am a vegetarian, 对花生过敏", user_id="mei")
        await memory.add("the bicycle is red", user_id="mei", tags=["garage"], importance=0.8)
        [camera] = (await memory.add("the camera is new", user_id="mei")).memories
        await memory.update(camera.id, user_id="mei", content="the camera is lent to Tom")
        talk = [
            {"role": "user", "content": "下周三去上海出差"},
            {"role": "assistant", "content": "好的，需要订酒店吗？"},
        ]
        await memory.add(talk, user_id="mei", session_id="s1")
        await memory.add("secret of somebody else", user_id="tom")
        [gone] = (await memory.add("this is deleted", user_id="mei")).memories
        await memory.delete(gone.id, user_id="mei")
        await memory.add_synonyms([("tea", "茶")])
        await memory.search("bicycle", user_id="mei")


def write_down() -> Path:
    """Keep a store of today's schema. → where"""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(Path(folder, "memory.db")))
        with closing(sqlite3.connect(Path(folder, "memory.db"))) as database:
            text = "\n".join(database.iterdump())
    path = STORES / f"{schema.HEAD}.sql"
    path.write_text(f"{text}\n", "utf-8")
    return path


def written(name: str, path: Path) -> None:
    """A store as a version of that time left it."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript((STORES / f"{name}.sql").read_text("utf-8"))
        database.execute("PRAGMA journal_mode = WAL")


async def migrate(path: Path, at: int, told: Path | None, without: str | None) -> None:
    if without is not None:
        sqlite.WRITE_AHEAD, sqlite.BEGIN_TO_WRITE = "PRAGMA journal_mode = OFF", "SELECT 1"
    shim = Shim()
    shim.arm(path.parent, Mode.KILL if at >= 0 else Mode.COUNT, at)
    async with Memory.open(path, embedder=WordEmbedder(16)):
        pass
    if told is not None:
        told.write_text(str(shim.seen))  # noqa: ASYNC240


async def look(path: Path) -> None:
    """All is there, is found by words and by meaning, has its history, and can be added to."""
    async with Memory.open(path, embedder=WordEmbedder(16)) as memory:
        contents = {item.content for item in (await memory.list(user_id="mei")).items}
        assert contents >= THERE and "this is deleted" not in contents, contents
        for mode, query, wanted in (
            ("keyword", "花生", "花生"),
            ("keyword", "bicycle", "bicycle"),
            ("semantic", "the camera is lent to Tom", "camera"),
            ("hybrid", "上海", "上海"),
        ):
            found = (await memory.search(query, user_id="mei", search_mode=mode)).hits  # type: ignore[arg-type]
            assert wanted in found[0].content_preview, (mode, query, found)
        [camera] = [item for item in (await memory.list(user_id="mei")).items if "camera" in item.content]
        assert [change.version for change in await memory.history(camera.id, user_id="mei")] == [1, 2]
        assert (await memory.restore(camera.id, user_id="mei")).content == "the camera is new"
        assert (await memory.list(user_id="tom")).items[0].content == "secret of somebody else"
        assert {(pair.keyword, pair.synonym) for pair in await memory.synonyms()} >= {("tea", "茶")}
        repaired = await memory.verify(repair=True)
        assert repaired.sound, repaired
        assert (await memory.add("the bicycle is red", user_id="mei")).created == 0  # it is known
        assert (await memory.add("something new", user_id="mei")).created >= 1
        assert not (await memory.verify()).drift


def drive(trial: Trial, *, stride: int, only: list[str] | None = None) -> None:
    for store in sorted(STORES.glob("*.sql")):
        if only is None or store.stem in only:
            _upgrade(trial, store.stem, stride)
            print(f"  {store.stem}: {len(trial.broken)} broken", flush=True)


def _upgrade(trial: Trial, name: str, stride: int) -> None:
    folder, told = trial.scratch / name, trial.scratch / "told"
    folder.mkdir()
    template, path = trial.scratch / f"{name}.db", folder / "memory.db"
    written(name, template)
    shutil.copy(template, path)
    trial.counts["schemas"] += 1
    if ended(begun(lambda: migrate(path, -1, told, None))) != 0 or ended(begun(lambda: look(path))) != 0:
        trial.breaks("lost", f"schema {name} cannot be brought to today's")
        return
    for at in range(trial.chances(name).randrange(stride), int(told.read_text()), stride):
        for file in folder.iterdir():
            file.unlink()
        shutil.copy(template, path)
        if ended(begun(lambda at=at: migrate(path, at, None, trial.without))) != KILLED:  # type: ignore[misc]
            continue
        trial.counts["kills in a migration"] += 1
        problem = _torn(path, name)
        if problem:
            trial.breaks("torn", f"schema {name}, killed at call {at}: {problem}")
        elif ended(begun(lambda: look(path))) != 0:
            trial.breaks("lost", f"schema {name}, killed at call {at}: it cannot be opened or has lost something")


def _torn(path: Path, name: str) -> str:
    """It has the old schema or today's, and not something between."""
    try:
        with closing(sqlite3.connect(path)) as database:
            state = database.execute("PRAGMA integrity_check").fetchall()
            found = database.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.Error as error:
        return str(error)
    if state != [("ok",)]:
        return str(state[:2])
    return "" if found in ([(name,)], [(schema.HEAD,)]) else f"its schema is {found}"


async def run(trial: Trial) -> None:
    await under_the_shim(trial, "upgrade.drive")


if __name__ == "__main__":
    print(f"{write_down()} written")
