"""`python -m bench.files`: cost of synchronising a file of 10,000 memories with the store.

Each sync is compared with the unavoidable work in the same run: embedding the changed texts or, for one change, one
update and one rewrite of the file. Also measured: the delay until a watched edit is found by another process.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder, embed_documents
from jiyi.files import safe
from jiyi.files.apply import BATCH
from jiyi.files.document import parse
from jiyi.settings import load_settings

from .texts import statements

FULL, ONE = 3.0, 3.0  # bounds: times the unavoidable work
FOUND_S = 2.0  # bound for an edit to be found


async def timed(work: Callable[[], Awaitable[object]], times: int = 1) -> float:
    found = []
    for _ in range(times):
        began = perf_counter()
        await work()
        found.append(perf_counter() - began)
    return median(found)


def append(note: Path, text: str) -> None:
    note.write_text(note.read_text(encoding="utf-8") + text, encoding="utf-8")


async def until_found(path: Path, note: Path, watcher: Memory, times: int) -> list[float]:
    """Seconds from a save until another process finds the text."""
    took = []
    async with Memory.open(path, settings=watcher.settings, embedder=BuiltinEmbedder()) as reader:
        watching = asyncio.create_task(watcher.workspace.watch())
        try:
            await asyncio.sleep(3)
            for turn in range(times):
                text = f"watched edit number {turn}"
                append(note, f"- {text}\n")
                began = perf_counter()
                for _ in range(1000):
                    found = await reader.search(text, user_id="mei", limit=3)
                    if text in [hit.summary for hit in found.hits]:
                        break
                    await asyncio.sleep(0.02)
                took.append(perf_counter() - began)
                await asyncio.sleep(1)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    return took


async def measure(folder: Path, size: int, seed: str) -> tuple[list[tuple[str, float, float, float | None]], float]:
    """Return rows of sync times with the unavoidable time, and the longest delay until an edit was found."""
    embedder = BuiltinEmbedder()
    texts = [" ".join(text.split()) for text in statements(seed, 2 * size)]
    old, new = texts[:size], texts[size:]
    note = folder / "ws/context/memory.md"

    async def embed() -> None:
        for at in range(0, size, BATCH):
            await embed_documents(embedder, old[at : at + BATCH])

    await embed_documents(embedder, ["warm"])
    settings = load_settings(extraction={"enabled": False})
    async with Memory.open(
        folder / "memory.db", settings=settings, embedder=embedder, workspace=folder / "ws", workspace_user="mei"
    ) as memory:
        memory._engine.store.database.after_write = lambda users: None
        floor = await timed(embed)
        note.parent.mkdir()
        note.write_text("## Facts\n\n" + "".join(f"- {text}\n" for text in old), encoding="utf-8")
        taken = await timed(memory.workspace.sync)
        lines = note.read_text(encoding="utf-8").split("\n")
        edited = [
            f"- {text} <!-- jiyi:{line.split('<!-- jiyi:')[1]}" for text, line in zip(new, lines[2:], strict=False)
        ]
        note.write_text("\n".join(["## Facts", "", *edited, ""]), encoding="utf-8")
        changed = await timed(memory.workspace.sync)
        quiet = await timed(memory.workspace.sync, 5)
        turn = 0

        async def one_line() -> None:
            nonlocal turn
            turn += 1
            text = note.read_text(encoding="utf-8")
            at = text.index("- ", len(text) // 2)
            note.write_text(f"{text[:at]}- edit {turn} {text[at + 2 :]}", encoding="utf-8")
            await memory.workspace.sync()

        edit = await timed(one_line, 5)
        some = (await memory.list(user_id="mei", limit=1)).items[0].id

        async def update() -> None:
            nonlocal turn
            turn += 1
            await memory.update(some, user_id="mei", content=f"update {turn}")

        known = parse(note.read_text(encoding="utf-8"))

        async def replace() -> None:
            data = note.read_bytes()
            parse(data.decode(), known)
            safe.replace_file(note, data, expected=safe.checksum(data))

        least = await timed(update, 5) + await timed(replace, 5)

        async def one_memory() -> None:
            await update()
            await memory.workspace.sync()

        written = await timed(one_memory, 5)
        found = max(await until_found(folder / "memory.db", note, memory, 5))
    rows = [
        (f"{size:,} new lines", taken, floor, FULL),
        (f"{size:,} changed lines", changed, floor, FULL),
        ("one changed line", edit, least, ONE),
        ("one changed memory", written, least, ONE),
        ("nothing to do", quiet, least, None),
    ]
    return rows, found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.files", description=__doc__)
    parser.add_argument("--seed", default="1", help="seed of the texts")
    parser.add_argument("--size", type=int, default=10_000, help="memories in the file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        rows, found = asyncio.run(measure(Path(folder), options.size, options.seed))
    table = Table("sync", "took (s)", "unavoidable (s)", "ratio", "bound")
    for name, took, floor, bound in rows:
        table.add_row(
            name, f"{took:.3f}", f"{floor:.3f}", f"{took / floor:.2f}", "" if bound is None else f"≤ {bound:g}"
        )
    Console().print(table)
    print(f"a watched edit is found within {found:.2f} s (the longest of 5; bound {FOUND_S:g} s)")
    missed = [name for name, took, floor, bound in rows if bound is not None and took / floor > bound]
    missed += ["an edit is found"] if found > FOUND_S else []
    sys.exit(f"missed: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
