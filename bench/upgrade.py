"""`python -m bench.upgrade OLD_CHECKOUT`: upgrade a store while a process of the version before has it open.

The old process adds memories all the time. This version migrates the store, writes to it, and migrates it back. Exit
with 1 unless nothing that was acknowledged is lost and the index is sound, on SQLite and on PostgreSQL.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import sleep

from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.store.schema.migrate import HEAD
from jiyi.testing import WordEmbedder
from jiyi.transfer.schema_change import migrate_schema, plan_schema

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from postgres_server import Databases, Server

# Adds, searches and updates until its standard input ends, and prints one line for each.
OLD_PROCESS = """
import asyncio, json, sys, threading
from jiyi import JiyiError, Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()

async def main():
    async with Memory.open(sys.argv[1], embedder=WordEmbedder(64), settings=load_settings()) as memory:
        number = 0
        while not ended.is_set():
            number += 1
            verbs = {
                "add": lambda: memory.add(f"old fact {number} about tea", user_id="mei"),
                "search": lambda: memory.search(f"fact {number}", user_id="mei"),
                "list": lambda: memory.list(user_id="mei"),
            }
            for name, verb in verbs.items():
                try:
                    await verb()
                    told = "done"
                except JiyiError as error:
                    told = f"{type(error).__name__}: {error}"
                except Exception as error:
                    told = f"BUG {type(error).__name__}: {error}"
                print(json.dumps([name, number, told]), flush=True)
            await asyncio.sleep(0.02)

asyncio.run(main())
"""


async def migrate(where: str, to: str | None = None) -> str | None:
    plan = await plan_schema(where, to, load_settings())
    await migrate_schema(where, plan, load_settings())
    return plan.found


async def use(where: str) -> tuple[set[str], bool]:
    """Add a memory with this version; return all contents, and True if the index is sound."""
    async with Memory.open(
        where, embedder=WordEmbedder(64), settings=load_settings(search={"reader": False})
    ) as memory:
        await memory.add("new fact about coffee", user_id="mei")
        report = await memory.maintenance.verify(vectors=True)
        contents, cursor = set(), None
        while True:
            page = await memory.list(user_id="mei", limit=200, cursor=cursor)
            contents |= {item.content for item in page.items}
            cursor = page.next_cursor
            if cursor is None:
                return contents, report.sound


def rehearse(where: str, old: Path) -> bool:
    """Print what the old process was told before, during and after the migration; return True if nothing was lost."""
    environment = {**os.environ, "PYTHONPATH": str(old / "src"), "JIYI_SEARCH__RERANK": "false"}
    command = [sys.executable, "-c", OLD_PROCESS, where]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=tempfile.gettempdir()
    ) as process:
        sleep(3)
        before = asyncio.run(migrate(where))
        contents, sound = asyncio.run(use(where))
        sleep(2)
        asyncio.run(migrate(where, before))
        sleep(2)
        told = [json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()]
    asyncio.run(migrate(where))
    after, sound_again = asyncio.run(use(where))
    acknowledged = {f"old fact {number} about tea" for name, number, said in told if (name, said) == ("add", "done")}
    lost = acknowledged - after
    counted = Counter((name, said.partition(" (")[0][:110]) for name, _, said in told)
    print(f"{where.rpartition('@')[2]}: schema {before} → {HEAD} → {before} → {HEAD}, old process open")
    for (name, said), times in sorted(counted.items()):
        print(f"  {name:<7} {times:>5} × {said.replace(where, '…')}")
    print(f"  acknowledged {len(acknowledged)}, lost {len(lost)}, sound: {sound and sound_again}")
    return not lost and sound and sound_again and "new fact about coffee" in contents


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.upgrade", description=__doc__)
    parser.add_argument("old", type=Path, metavar="OLD_CHECKOUT", help="a checkout of the version before")
    old = parser.parse_args().old.absolute()
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "memory.db")
        good = [rehearse(file, old)]
    server = Server()
    try:
        databases = Databases(server.url())
        asyncio.run(databases.prepare())
        good.append(rehearse(databases.url(asyncio.run(databases.new("bare"))), old))
    finally:
        server.stop()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
