"""Disks that fail, are full, read-only or locked, and a clock that jumps by a day in both directions."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from jiyi import JiyiError, Memory, NotFound, StoreError, StoreUnavailable
from jiyi.models import utc_now
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

from .forks import fork, wait
from .kills import Likes
from .shim import Shim
from .trial import Trial
from .writes import failed_at_every_call, under_the_shim

PROTECTIONS = {"names of errors": "errors of the database reach the caller as they are"}
DAY = 86_400.0
USER = "mei"


class Broken(Exception):
    """A broken promise."""


def opened(path: Path, **settings: Any) -> Memory:
    return Memory.open(path, settings=load_settings(**settings), embedder=WordEmbedder(16))


async def _all_there(memory: Memory, acknowledged: list[str]) -> None:
    for memory_id in acknowledged:
        try:
            await memory.get(memory_id, user_id=USER)
        except NotFound:
            raise Broken(f"lost: {memory_id} was acknowledged") from None
    drift = (await memory.maintenance.verify()).drift
    if drift:
        raise Broken(f"verify: {drift}")


async def _refused(work: Awaitable[Any]) -> StoreError:
    try:
        await work
    except StoreError as error:
        return error
    raise Broken("false success: the write was acknowledged")


async def full_disk(disk: Path) -> None:
    """On a full disk of 4 MiB, writes are refused with a Jiyi error and reads work; with space, writes work again."""
    acknowledged: list[str] = []
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    async with opened(disk / "memory.db") as memory:
        refused = 0
        for number in range(10_000):
            try:
                text = f"number {number} " + "words and 字 " * 200
                receipt = await memory.add(text, user_id=USER)
                acknowledged += [made.id for made in receipt.memories]
            except StoreUnavailable:
                refused += 1
                if refused == 3:
                    break
        if not refused:
            raise Broken("4 MiB were never full")
        if not (await memory.search("number", user_id=USER)).hits:
            raise Broken("reading failed")
        await memory.list(user_id=USER)
        ballast.unlink()
        acknowledged += [made.id for made in (await memory.add("room again", user_id=USER)).memories]
        await _all_there(memory, acknowledged)
    async with opened(disk / "memory.db") as memory:
        await _all_there(memory, acknowledged)


async def read_only(disk: Path) -> None:
    """On a read-only disk, opening or writing raises a Jiyi error; later both work."""
    async with opened(disk / "memory.db") as memory:
        made = (await memory.add("before", user_id=USER)).memories[0]
    _remount(disk, "ro")
    try:
        memory = await opened(disk / "memory.db")
        try:
            await _refused(memory.add("never", user_id=USER))
        finally:
            await memory.close()
    except StoreError:
        pass
    finally:
        _remount(disk, "rw")
    async with opened(disk / "memory.db") as memory:
        await memory.add("after", user_id=USER)
        await _all_there(memory, [made.id])
        if (await memory.search("never", user_id=USER, search_mode="keyword")).hits:
            raise Broken("a refused write is stored")


async def locked(folder: Path) -> None:
    """While another program locks the file, writes raise a Jiyi error in time and reads work."""
    path = folder / "memory.db"
    async with opened(path, busy_timeout_s=0.3) as memory:
        made = (await memory.add("before", user_id=USER)).memories[0]
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            error = await _refused(memory.add("refused", user_id=USER))
            if not isinstance(error, StoreUnavailable) or "locked" not in str(error):
                raise Broken(f"a lock raised {error!r}")
            await memory.search("before", user_id=USER)
            other.execute("ROLLBACK")
        await memory.add("refused", user_id=USER)
        await _all_there(memory, [made.id])


async def jumping_clock(folder: Path) -> None:
    """Jobs finish when the clock jumps, expiry times hold, and versions stay in order."""
    shim = Shim()
    path = folder / "memory.db"
    settings = load_settings(jobs={"lease_s": 1.0, "in_process": False})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(16), extractor=Likes()) as memory:
        hours = utc_now() + timedelta(hours=6)
        kept = (await memory.add("the first version", user_id=USER)).memories[0]
        short = (await memory.add("soon gone", user_id=USER, expires_at=hours)).memories[0]
        acknowledged = [kept.id, short.id]
        for number, ahead in enumerate((DAY, 0.0, -DAY, 0.0, DAY, -DAY, 0.0)):
            shim.clock(ahead)
            talk = [{"role": "user", "content": f"n{number} likes tea"}]
            receipt = await memory.add(talk, user_id=USER, session_id="s", wait=False)
            acknowledged += [made.id for made in receipt.memories]
            now = utc_now()
            claimed = await memory._engine.store.jobs.claim("dies", now, now + timedelta(seconds=1))
            if claimed is None:
                raise Broken(f"job {number} is not due at {ahead:+.0f} s")
            await memory.update(kept.id, user_id=USER, content=f"version {number}")
            if (await memory.get(kept.id, user_id=USER)).content != f"version {number}":
                raise Broken("an update was lost")
            found = {hit.id for hit in (await memory.search("soon gone", user_id=USER)).hits}
            if (short.id in found) != (ahead <= 0):
                raise Broken(f"wrong expiry at {ahead:+.0f} s")
            shim.clock(ahead - DAY)
            await asyncio.wait_for(memory.jobs.work(), 20)
        shim.clock(0)
        await asyncio.wait_for(memory.jobs.work(), 20)
        versions = [change.version for change in await memory.history(kept.id, user_id=USER)]
        if versions != list(range(1, 9)):
            raise Broken(f"the history has the versions {versions}")
        open_jobs = (await memory.jobs.counts()).by_state.get("accepted", 0)
        liked = (await memory.list(user_id=USER, memory_types=["preference"])).items
        if open_jobs or len(liked) != 7:
            raise Broken(f"{open_jobs} jobs are pending, and {len(liked)} of 7 were done")
        await _all_there(memory, acknowledged)


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def _remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True, capture_output=True)


def drive(trial: Trial, *, stride: int, only: list[str] | None = None) -> None:
    for scene in (full_disk, read_only, locked, jumping_clock) if trial.without is None else ():
        _play(trial, scene)
    failed_at_every_call(trial, stride=stride, only=only)


def _play(trial: Trial, scene: Callable[[Path], Awaitable[None]]) -> None:
    folder = trial.scratch / scene.__name__
    folder.mkdir()
    told = trial.scratch / "scene"
    told.unlink(missing_ok=True)

    async def play() -> None:
        try:
            await scene(folder)
        except (Broken, JiyiError, TimeoutError) as error:
            told.write_text(f"{type(error).__name__}: {error}", "utf-8")

    try:
        if scene in (full_disk, read_only):
            with _small_disk(folder):
                code = wait(fork(play))
        else:
            code = wait(fork(play))
    except (OSError, subprocess.CalledProcessError) as error:
        trial.notes.append(f"NOT RUN: {scene.__name__}: no file system can be mounted here ({error})")
        return
    trial.counts["scenes"] += 1
    if code != 0 or told.exists():
        trial.breaks("other", f"{scene.__name__}: {told.read_text('utf-8') if told.exists() else f'ended with {code}'}")


async def run(trial: Trial) -> None:
    await under_the_shim(trial, "io_errors.drive")
