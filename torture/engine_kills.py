"""`python -m torture.engine_kills`: kill -9 at random moments of the engines and of the process that feeds them.

A process writes for several users, and another one feeds Milvus, OpenSearch and FerretDB until it is killed. Every few
kills one of the engines is killed instead and started again. Now and then everything comes to rest: then each engine
must equal the store, with nothing missing, extra or different. It needs the servers of the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jiyi import Memory, NotFound
from jiyi.engines import outbox
from jiyi.errors import EngineError
from jiyi.settings import Settings, load_settings
from jiyi.testing import WordEmbedder

from .forks import fork, kill, wait
from .warm import warm

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from engine_servers import STARTS, EngineServer

USERS = ("mei", "林梅", "a-b.c")
LOOK_EVERY = 50  # kills
ENGINE_EVERY = 10
OPERATIONS = 6  # of the writing process, per kill
SECONDS = (0.05, 1.2)  # until a feeding process is killed
REST_S = 240.0


def settings_of(servers: dict[str, EngineServer]) -> Settings:
    urls = {f"{name}_url": server.url for name, server in servers.items()}
    return load_settings(
        engines={**urls, "vectors": "milvus", "words": "elasticsearch", "prefix": "kills", "timeout_s": 5.0},
        jobs={"in_process": False},
        extraction={"enabled": False},
    )


def opened(folder: Path, settings: Settings) -> Memory:
    return Memory.open(folder / "memory.db", settings=settings, embedder=WordEmbedder(16))


async def write(folder: Path, seed: str) -> None:
    """Add, change and delete, without engines: the store is the truth."""
    rng = random.Random(seed)
    plain = load_settings(extraction={"enabled": False}, jobs={"in_process": False})
    async with opened(folder, plain) as memory:
        for at in range(OPERATIONS):
            user = rng.choice(USERS)
            own = [item.id for item in (await memory.list(user_id=user)).items]
            verb = rng.choices(["add", "change", "delete", "forget"], [50, 25, 22, 3])[0]
            with contextlib.suppress(NotFound):
                if verb == "add" or not own:
                    await memory.add(f"note {seed} {at} 笔记", user_id=user)
                elif verb == "change":
                    await memory.update(rng.choice(own), user_id=user, content=f"changed {seed} {at}")
                elif verb == "delete":
                    await memory.delete(rng.choice(own), user_id=user)
                else:
                    await memory.delete_all(user_id=user)


async def feed(folder: Path, settings: Settings) -> None:
    """Feed the engines until killed."""
    outbox.LEASE_S, outbox.RENEW_S, outbox.POLL_S, outbox.LONGEST_WAIT_S = 0.3, 0.1, 0.02, 0.2
    async with opened(folder, settings) as memory:
        engines = memory._engine.engines
        assert engines is not None
        engines.start()
        await asyncio.sleep(3600)


async def look(folder: Path, settings: Settings, told: Path) -> None:
    """Let everything come to rest, compare the engines with the store, and search."""
    problems: list[str] = []
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
        reports = await engines.verify()
        problems += [str(report) for report in reports if not report.sound or report.behind]
        for user in USERS:
            own = {item.id: item.content for item in (await memory.list(user_id=user)).items}
            found = await memory.search("note 笔记 changed", user_id=user, limit=50)
            foreign = [hit.id for hit in found.hits if own.get(hit.id) != hit.content]
            problems += [f"a search of {user} returned {one}, which is not theirs or gone" for one in foreign]
    await asyncio.to_thread(told.write_text, json.dumps(problems), "utf-8")


def run(kills: int, seed: int) -> int:
    rng = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="jiyi-kills-"))
    counts: Counter[str] = Counter()
    problems: list[str] = []

    async def once() -> None:
        async with opened(folder, load_settings(extraction={"enabled": False})) as memory:
            await memory.add("first", user_id=USERS[0])

    warm(once)
    servers = {name: start() for name, start in STARTS.items()}
    settings = settings_of(servers)
    began = time.monotonic()
    try:
        for number in range(kills):
            writing = fork(partial(write, folder, f"{seed}:{number}"))
            feeding = fork(partial(feed, folder, settings))
            time.sleep(rng.uniform(*SECONDS))
            if number % ENGINE_EVERY == ENGINE_EVERY - 1:
                server = servers[rng.choices(list(servers), [4, 1, 5])[0]]
                server.end()
                counts[f"kills of {server.name}"] += 1
                server.start()
            counts["kills of the worker"] += kill(feeding)
            if wait(writing):
                problems.append(f"the writing process {number} failed")
            if number % LOOK_EVERY == LOOK_EVERY - 1 or number == kills - 1:
                told = folder / "told.json"
                looking = fork(partial(look, folder, settings, told))
                found = ["looking failed"] if wait(looking) else json.loads(told.read_text("utf-8"))
                problems += [f"after {number + 1} kills: {problem}" for problem in found]
                counts["comparisons"] += 1
                print(f"{number + 1} kills, {time.monotonic() - began:,.0f} s, {len(problems)} problems", flush=True)
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print(dict(counts), *problems, sep="\n")
    return 1 if problems else 0


def main(arguments: Sequence[str] | None = None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m torture.engine_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=500, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    given = parser.parse_args(arguments)
    return run(given.kills, given.seed)


if __name__ == "__main__":
    sys.exit(main())
