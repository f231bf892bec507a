"""Fill the searched store: users of several sizes among many others."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder, Vectors
from jiyi.store.schema.columns import METADATA

from .texts import candidates, statements

Advance = Callable[[int], None]  # called with the number of memories added

ORIGINALS = 4  # of the other users; the rest are copies
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """Contents of the store. Runs with equal plans can share one file."""

    seed: int
    sizes: tuple[int, ...]
    others: int
    each: int = 1000

    @property
    def memories(self) -> int:
        return sum(self.sizes) + self.others * self.each


def user_of(size: int) -> str:
    return f"user-with-{size}"


class PerturbedEmbedder:
    """Fast substitute for the built-in embedder, with which filling would take half an hour.

    A document's vector is that of one of a few hundred real texts with noise added; a scan costs the same whatever the
    numbers are. Queries use the real embedder.
    """

    id = BuiltinEmbedder.id

    def __init__(self, real: BuiltinEmbedder, bases: Vectors, seed: int) -> None:
        self._bases = bases
        self._rng = np.random.default_rng(seed)
        self.embed_query = real.embed_query

    @classmethod
    async def make(cls, real: BuiltinEmbedder, seed: int, number: int = 256) -> PerturbedEmbedder:
        return cls(real, await real.embed_documents(list(statements(f"{seed}:bases", number))), seed)

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        chosen = self._bases[self._rng.integers(len(self._bases), size=len(texts))]
        noisy = chosen + self._rng.standard_normal(chosen.shape, np.float32) * np.float32(0.03)
        vectors: Vectors = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
        return vectors


async def fill(folder: Path, plan: Plan, embedder: PerturbedEmbedder, advance: Advance) -> Path:
    """Create the store, or reuse an existing one with the same plan; return its path."""
    path = folder / "bench.db"
    if _is_there(folder, plan):
        advance(plan.memories)
        return path
    originals = min(ORIGINALS, plan.others)
    async with Memory.open(path, embedder=embedder) as memory:
        for at in range(originals):
            await _add(memory, f"other-{at}", plan.each, plan.seed, advance)
        _copy_users(path, originals, plan, advance)
        for size in plan.sizes:
            await _add(memory, user_of(size), size, plan.seed, advance)
    _note(folder, plan)
    return path


async def _add(memory: Memory, user_id: str, number: int, seed: int, advance: Advance) -> None:
    """Add memories in about twenty sessions or more."""
    made = list(candidates(f"{seed}:{user_id}", number))
    step = min(CHUNK, max(number // 20, 1))
    for at in range(0, number, step):
        await memory.add(made[at : at + step], user_id=user_id, session_id=f"session-{at // step}")
        advance(len(made[at : at + step]))


def _copy_users(path: Path, originals: int, plan: Plan, advance: Advance) -> None:
    """Copy the rows of the originals in SQL: the other users are never searched."""
    database = sqlite3.connect(path)
    columns = {
        table.name: [f'"{column.name}"' for column in table.columns if column.name not in ("user_id", "seq")]
        for table in METADATA.sorted_tables
        if "user_id" in table.columns
    }
    for at in range(originals, plan.others):
        with database:
            for table, names in columns.items():
                listed = ", ".join(names)
                database.execute(
                    f"INSERT INTO {table} (user_id, {listed}) SELECT ?, {listed} FROM {table} WHERE user_id = ?",
                    (f"other-{at}", f"other-{at % originals}"),
                )
        advance(plan.each)
    database.close()


def _is_there(folder: Path, plan: Plan) -> bool:
    """Return True if the folder has a store of this plan and schema; remove any other one."""
    note = folder / "bench.json"
    if note.exists() and note.read_text() == _description(plan):
        return True
    folder.mkdir(parents=True, exist_ok=True)
    for file in (note, *folder.glob("bench.db*")):
        file.unlink(missing_ok=True)
    return False


def _note(folder: Path, plan: Plan) -> None:
    (folder / "bench.json").write_text(_description(plan))


def _description(plan: Plan) -> str:
    schema = {table.name: [column.name for column in table.columns] for table in METADATA.sorted_tables}
    return json.dumps({"plan": asdict(plan), "schema": schema})
