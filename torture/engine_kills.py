"""`kill -9` of the engines and of the process that feeds them, 500 times: each engine equals the store at rest.

A process writes statements and conversations for several users and searches; another one feeds Milvus, OpenSearch and
FerretDB and rebuilds them until it is killed; the next one continues an interrupted rebuild.
Every tenth kill also hits one of the engines, which is then started again. Now and then everything comes to rest and is
compared: nothing may be missing, extra or different. No search may return a deleted memory or another user's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import select
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import jiyi.engines
from jiyi import Memory, NotFound
from jiyi.engines import outbox
from jiyi.engines.base import Engine
from jiyi.errors import EngineError, JiyiError
from jiyi.settings import Settings, load_settings
from jiyi.testing import WordEmbedder

from .forks import fork, in_process, kill, wait
from .trial import Trial
from .warm import warm

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from engine_servers import STARTS, EngineServer, Unavailable

PROTECTIONS = {"the order of position and write": "the position in the feed is stored before the engine has the change"}
KILLS = 500
USERS = ("mei", "林梅", "a-b.c")
LOOK_EVERY = 50  # kills
ENGINE_EVERY = 10
OPERATIONS = 6  # of the writing process, per kill
MOST_SIGNS = 14  # of writes, until a feeding process is killed; 0: perhaps while it opens the store
FIRST_S, PATIENCE_S = 20.0, 2.0  # for which a sign is waited
REST_S = 240.0
LATE_S = 0.3
REBUILD_EVERY_S = 1.0


def settings_of(servers: dict[str, EngineServer]) -> Settings:
    urls = {f"{name}_url": server.url for name, server in servers.items()}
    return load_settings(
        engines={**urls, "vectors": "milvus", "words": "elasticsearch", "prefix": "kills", "timeout_s": 5.0},
        jobs={"in_process": False},
        cache={"max_searches": 0},
    )


def opened(folder: Path, settings: Settings) -> Memory:
    return Memory.open(folder / "memory.db", settings=settings, embedder=WordEmbedder(16))


async def write(folder: Path, settings: Settings, seed: str, told: Path) -> None:
    """Add, change, delete, and search in the engines, which another process feeds."""
    jiyi.engines.CONFIRM_S = 0.0
    rng = random.Random(seed)
    async with opened(folder, settings) as memory:
        for at in range(OPERATIONS):
            user = rng.choice(USERS)
            own = [item.id for item in (await memory.list(user_id=user)).items]
            verb = rng.choices(["add", "tell", "change", "delete", "forget"], [25, 25, 25, 22, 3])[0]
            with contextlib.suppress(NotFound):
                if verb == "add" or not own:
                    await memory.add(f"note {seed} {at} 笔记", user_id=user)
                elif verb == "tell":
                    texts = (
                        f"I moved to place {seed} {at}. My note is number {at}.",
                        "I like green tea. 我喜欢喝咖啡。",
                    )
                    said = [{"role": "user", "content": text} for text in texts]
                    await memory.add(said, user_id=user, session_id=f"s{rng.randrange(3)}")
                elif verb == "change":
                    await memory.update(rng.choice(own), user_id=user, content=f"changed {seed} {at}")
                elif verb == "delete":
                    await memory.delete(rng.choice(own), user_id=user)
                else:
                    await memory.delete_all(user_id=user)
        problems = await _search(memory, rng.choice(USERS))
    await asyncio.to_thread(told.write_text, json.dumps(problems), "utf-8")


async def _search(memory: Memory, user: str) -> list[str]:
    """Search, and return a problem for every hit that is not one of the user's memories."""
    own = (await memory.list(user_id=user)).items
    found = await memory.search("note 笔记 changed", user_id=user, limit=50)
    there = {item.id: item.content for item in await memory.get_many([hit.id for hit in found.hits], user_id=user)}
    foreign = [hit.id for hit in found.hits if there.get(hit.id) != hit.content]
    missing = ["a search found nothing"] if own and not found.hits else []
    return [f"a search of {user} returned {one}, which is not theirs or gone" for one in foreign] + missing


async def feed(folder: Path, settings: Settings, signs: int, too_early: bool) -> None:
    """Feed the engines until killed."""
    _hurry()
    async with opened(folder, settings) as memory:
        engines = memory._engine.engines
        assert engines is not None
        for box in engines.outboxes:
            box.engine = WatchedEngine(box.engine, signs, too_early)
        engines.start()
        while True:
            await asyncio.sleep(random.uniform(0, REBUILD_EVERY_S))
            with contextlib.suppress(JiyiError):
                await engines.rebuild(random.choice(list(engines.makers)))


def _hurry() -> None:
    outbox.LEASE_S, outbox.RENEW_S, outbox.POLL_S, outbox.LONGEST_WAIT_S = 0.3, 0.1, 0.02, 0.2
    outbox.GRACE_S = jiyi.engines.GRACE_S = 0.2


class WatchedEngine:
    """Signals before and after each write; too early, it confirms a write some time before it is done."""

    def __init__(self, engine: Engine, signs: int, too_early: bool) -> None:
        self._engine = engine
        self._signs = signs
        self._too_early = too_early
        self._tasks: list[asyncio.Task[None]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def write(self, *what: Any) -> None:
        await self._signalled(self._engine.write, *what)

    async def load(self, *what: Any) -> None:
        await self._signalled(self._engine.load, *what)

    async def _signalled(self, work: Callable[..., Coroutine[Any, Any, None]], *what: Any) -> None:
        os.write(self._signs, b".")
        if self._too_early:
            self._tasks.append(asyncio.create_task(self._late(work, *what)))
        else:
            await work(*what)
        os.write(self._signs, b".")

    async def _late(self, work: Callable[..., Coroutine[Any, Any, None]], *what: Any) -> None:
        await asyncio.sleep(LATE_S)
        await work(*what)


async def look(folder: Path, settings: Settings, told: Path) -> None:
    """Let everything come to rest, compare the engines with the store, and search."""
    problems: list[str] = []
    _hurry()
    async with opened(folder, settings) as memory:
        engines = memory._engine.engines
        assert engines is not None
        until = time.monotonic() + REST_S
        for box in engines.outboxes:
            while True:
                try:
                    await box.finish()
                    break
                except EngineError as error:
                    if time.monotonic() > until:
                        problems.append(f"{box.engine.name} does not recover: {error}")
                        break
                    await asyncio.sleep(0.2)
        for name in engines.makers:
            if await memory._engine.store.projections.is_rebuilding(name):
                await engines.rebuild(name)
            generation = await memory._engine.store.projections.generation(name)
            print(f"  {name}: generation {generation}", flush=True)
        reports = await engines.verify(full=True)
        problems += [str(report) for report in reports if not report.sound or report.behind]
        for user in USERS:
            problems += await _search(memory, user)
    await asyncio.to_thread(told.write_text, json.dumps(problems), "utf-8")


async def rehearse(folder: Path) -> None:
    """Load everything that a forked process needs, except for connections."""
    import opensearchpy  # noqa: F401
    import pymilvus  # noqa: F401
    import pymongo  # noqa: F401

    await asyncio.to_thread(folder.mkdir)
    async with opened(folder, load_settings()) as memory:
        await memory.add("note 笔记", user_id=USERS[0])
        await memory.search("note 笔记", user_id=USERS[0])


def drive(trial: Trial, *, kills: int) -> None:
    servers: dict[str, EngineServer] = {}
    warm(partial(rehearse, trial.scratch / "rehearsal"))
    try:
        for name, start in STARTS.items():
            servers[name] = start()
        _kill(trial, kills, servers)
    except (Unavailable, OSError, subprocess.SubprocessError) as error:
        trial.notes.append(f"NOT RUN: {error}")
    finally:
        for server in servers.values():
            server.stop()


def _kill(trial: Trial, kills: int, servers: dict[str, EngineServer]) -> None:
    folder, settings = trial.scratch, settings_of(servers)
    rng = random.Random(trial.seed)
    for number in range(kills):
        told = folder / "told.json"
        told.write_text("[]", "utf-8")
        theirs, ours = os.pipe()
        writing = fork(partial(write, folder, settings, f"{trial.seed}:{number}", told))
        feeding = fork(partial(feed, folder, settings, ours, trial.without is not None))
        os.close(ours)
        trial.counts["writes to engines"] += _signs(theirs, rng.randrange(MOST_SIGNS))
        time.sleep(rng.uniform(0, 0.02))
        if number % ENGINE_EVERY == ENGINE_EVERY - 1:
            server = servers[rng.choices(list(servers), [4, 1, 5])[0]]
            server.end()
            trial.counts[f"kills of {server.name}"] += 1
            server.start()
        trial.counts["kills"] += kill(feeding)
        os.close(theirs)
        _check(trial, wait(writing), told)
        if number % LOOK_EVERY == LOOK_EVERY - 1 or number == kills - 1:
            _check(trial, wait(fork(partial(look, folder, settings, told))), told)
            trial.counts["comparisons"] += 1
            print(f"  {number + 1:,} of {kills:,} kills, {len(trial.broken)} broken", flush=True)


def _signs(pipe: int, most: int) -> int:
    """Wait for signs of writes, but not long where there is nothing to write; return the number of writes begun."""
    for at in range(most):
        if not select.select([pipe], [], [], FIRST_S if at == 0 else PATIENCE_S)[0] or not os.read(pipe, 1):
            return (at + 1) // 2
    return (most + 1) // 2


def _check(trial: Trial, code: int, told: Path) -> None:
    found = ["a process failed"] if code else json.loads(told.read_text("utf-8"))
    for problem in found:
        trial.breaks("other", f"after {trial.counts['kills']} kills: {problem}")


async def run(trial: Trial) -> None:
    await in_process(trial, "engine_kills.drive", kills=trial.times(KILLS, 20))
