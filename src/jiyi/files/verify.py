"""Verify that files and index agree, and rebuild the index from the files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import numpy as np

from ..embed import embed_documents
from ..models import MemoryItem
from ..store.contract import IndexEntry
from ..write.index import KeywordRules, embed_entries, index_entry
from .report import Drift, SyncReport
from .steps import Archive, Create, Mark, Plan, Remove, Rewrite, Same, Step, Update, Write
from .sync import SYNCING, PlannedSync, SyncContext, plan_sync, sync_user

BATCH = 400  # memories
SAME_VECTOR = 0.999  # cosine


async def verify_user(context: SyncContext, user_id: str, *, vectors: bool) -> list[Drift]:
    """Compare every line with its memory, and every memory with its index entry."""
    planned = await plan_sync(context, user_id, compare_all=True)
    found = list(_drifts(planned.plan, user_id))
    ids = _with_lines(planned)
    for start in range(0, len(ids), BATCH):
        items = await context.store.memories.get(user_id, ids[start : start + BATCH])
        stored = await context.store.entries.get(user_id, [item.id for item in items])
        for item in items:
            problem = await asyncio.to_thread(_words_differ, item, stored.get(item.id), context.rules)
            if problem:
                found.append(Drift(kind="words", user_id=user_id, memory_id=item.id, problem=problem))
        texts = [item.content for item in items] if vectors else []
        wanted = await embed_documents(context.embedder, texts) if texts else None
        for at, item in enumerate(items):
            problem = _vector_differs(stored.get(item.id), context.embedder.id, None if wanted is None else wanted[at])
            if problem:
                found.append(Drift(kind="vector", user_id=user_id, memory_id=item.id, problem=problem))
    return found


async def rebuild_user(context: SyncContext, user_id: str, *, confirm: bool) -> SyncReport:
    """Make the index follow the files, then index their memories again."""
    done = await sync_user(context, user_id, confirm=confirm, files_win=True)
    SYNCING.set(True)
    ids = _with_lines(await plan_sync(context, user_id))
    indexed = 0
    problems: dict[str, None] = {}
    for start in range(0, len(ids), BATCH):
        items = await context.store.memories.get(user_id, ids[start : start + BATCH])
        entries = await asyncio.to_thread(_entries, items, context.rules)
        entries, problem = await embed_entries(entries, [item.content for item in items], context.embedder)
        problems |= dict.fromkeys([problem] if problem else [])
        versions = {item.id: (item.version, entry) for item, entry in zip(items, entries, strict=True)}
        indexed += await context.store.entries.replace(user_id, versions)
    return done.model_copy(update={"indexed": indexed, "problems": (*done.problems, *problems)})


def _with_lines(planned: PlannedSync) -> list[str]:
    ids = (line.entry.memory_id for line in planned.scan.lines)
    return list(dict.fromkeys(memory_id for memory_id in ids if memory_id))


def _entries(items: Sequence[MemoryItem], rules: KeywordRules) -> list[IndexEntry]:
    return [index_entry(item.content, item.summary, item.tags, item.data, rules) for item in items]


_PROBLEMS: dict[type[Step], str] = {
    Create: "the line has no memory",
    Update: "the line differs from its memory",
    Mark: "the line lacks the id of its memory",
    Archive: "the memory has lost its line",
    Write: "the memory has no line",
    Rewrite: "the memory differs from its line",
    Remove: "the memory of this line is gone or superseded",
    Same: "the stored agreement is missing or outdated",
}


def _drifts(plan: Plan, user_id: str) -> Iterator[Drift]:
    for problem in plan.problems:
        yield Drift(kind="file", user_id=user_id, problem=problem)
    for step in (*plan.steps, *plan.withheld):
        line = getattr(step, "line", None)
        if isinstance(step, Same):
            yield Drift(
                kind="agreement", user_id=user_id, memory_id=step.memory_id, path=step.path, problem=_PROBLEMS[Same]
            )
            continue
        yield Drift(
            kind="line" if isinstance(step, (Create, Update, Mark, Archive)) else "memory",
            user_id=user_id,
            memory_id=step.memory_id,
            path=line.path if line else getattr(step, "path", None),
            line=line.entry.line if line else None,
            problem=_PROBLEMS[type(step)],
        )
    reported = {step.memory_id for step in plan.steps}
    for memory_id in plan.gone:
        if memory_id not in reported:
            problem = "an agreement is stored for a memory that has no line and is not active"
            yield Drift(kind="agreement", user_id=user_id, memory_id=memory_id, problem=problem)


def _words_differ(item: MemoryItem, stored: IndexEntry | None, rules: KeywordRules) -> str | None:
    if stored is None:
        return "it has no index terms"
    right = index_entry(item.content, item.summary, item.tags, item.data, rules)
    if not (np.array_equal(stored.hashes, right.hashes) and np.array_equal(stored.counts, right.counts)):
        return "its index terms do not match its text"
    if {word: round(weight, 3) for word, weight, _ in stored.keywords} != {
        word: round(weight, 3) for word, weight, _ in right.keywords
    }:
        return "its keywords do not match its text"
    return None


def _vector_differs(stored: IndexEntry | None, model: str, wanted: np.ndarray | None) -> str | None:
    if stored is None or stored.vector is None:
        return "it has no vector: `jiyi reindex --embeddings`"
    if stored.model != model:
        return f"its vector is from another model: {stored.model}"
    if wanted is not None and float(np.dot(stored.vector, wanted)) < SAME_VECTOR * float(np.dot(wanted, wanted)):
        return "its vector does not match its text"
    return None
