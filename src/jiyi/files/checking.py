"""Whether files and index agree in everything, and the index worked out anew from the files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import numpy as np

from ..embed import embed_documents
from ..models import MemoryItem
from ..store.contract import IndexEntry
from ..write.index import KeywordRules, embed_entries, index_entry
from .steps import Archive, Drop, Edit, Mark, Plan, Rewrite, Same, Step, Take, Write
from .sync import SYNCING, Filing, Looked, look, sync_user
from .values import Drift, SyncReport

AT_ONCE = 400  # memories
SAME_VECTOR = 0.999  # cosine


async def verify_user(filing: Filing, user_id: str, *, vectors: bool) -> list[Drift]:
    """Every line against its memory, whatever was agreed on; every memory against what it is found by."""
    looked = await look(filing, user_id, all_of_it=True)
    found = list(_drifts(looked.plan, user_id))
    ids = _with_lines(looked)
    for start in range(0, len(ids), AT_ONCE):
        items = await filing.store.memories.get(user_id, ids[start : start + AT_ONCE])
        stored = await filing.store.entries.get(user_id, [item.id for item in items])
        for item in items:
            problem = await asyncio.to_thread(_words_differ, item, stored.get(item.id), filing.rules)
            if problem:
                found.append(Drift(kind="words", user_id=user_id, memory_id=item.id, problem=problem))
        texts = [item.content for item in items] if vectors else []
        wanted = await embed_documents(filing.embedder, texts) if texts else None
        for at, item in enumerate(items):
            problem = _vector_differs(stored.get(item.id), filing.embedder.id, None if wanted is None else wanted[at])
            if problem:
                found.append(Drift(kind="vector", user_id=user_id, memory_id=item.id, problem=problem))
    return found


async def rebuild_user(filing: Filing, user_id: str, *, confirm: bool) -> SyncReport:
    """The files are right; then everything that their memories are found by is worked out again."""
    done = await sync_user(filing, user_id, confirm=confirm, files_win=True)
    SYNCING.set(True)
    ids = _with_lines(await look(filing, user_id))
    indexed = 0
    problems: dict[str, None] = {}
    for start in range(0, len(ids), AT_ONCE):
        items = await filing.store.memories.get(user_id, ids[start : start + AT_ONCE])
        entries = await asyncio.to_thread(_entries, items, filing.rules)
        entries, problem = await embed_entries(entries, [item.content for item in items], filing.embedder)
        problems |= dict.fromkeys([problem] if problem else [])
        versions = {item.id: (item.version, entry) for item, entry in zip(items, entries, strict=True)}
        indexed += await filing.store.entries.replace(user_id, versions)
    return done.model_copy(update={"indexed": indexed, "problems": (*done.problems, *problems)})


def _with_lines(looked: Looked) -> list[str]:
    there = (line.entry.memory_id for line in looked.scan.lines)
    return list(dict.fromkeys(memory_id for memory_id in there if memory_id))


def _entries(items: Sequence[MemoryItem], rules: KeywordRules) -> list[IndexEntry]:
    return [index_entry(item.content, item.summary, item.tags, item.data, rules) for item in items]


_SAYS: dict[type[Step], str] = {
    Take: "no memory is known for this line",
    Edit: "the line says something else than its memory",
    Mark: "the line lacks the id of its memory",
    Archive: "the memory has lost its line",
    Write: "the memory has no line",
    Rewrite: "the memory says something else than its line",
    Drop: "the memory of this line is gone or holds no longer",
    Same: "it was not noted that line and memory agree",
}


def _drifts(plan: Plan, user_id: str) -> Iterator[Drift]:
    for problem in plan.problems:
        yield Drift(kind="file", user_id=user_id, problem=problem)
    for step in (*plan.steps, *plan.withheld):
        line = getattr(step, "line", None)
        if isinstance(step, Same):
            yield Drift(
                kind="agreement", user_id=user_id, memory_id=step.memory_id, path=step.path, problem=_SAYS[Same]
            )
            continue
        yield Drift(
            kind="line" if isinstance(step, (Take, Edit, Mark, Archive)) else "memory",
            user_id=user_id,
            memory_id=step.memory_id,
            path=line.path if line else getattr(step, "path", None),
            line=line.entry.line if line else None,
            problem=_SAYS[type(step)],
        )
    told = {step.memory_id for step in plan.steps}
    for memory_id in plan.gone:
        if memory_id not in told:
            problem = "an agreement is noted, but there is neither a line nor a memory that holds"
            yield Drift(kind="agreement", user_id=user_id, memory_id=memory_id, problem=problem)


def _words_differ(item: MemoryItem, stored: IndexEntry | None, rules: KeywordRules) -> str | None:
    if stored is None:
        return "it has no words to be found by"
    right = index_entry(item.content, item.summary, item.tags, item.data, rules)
    if not (np.array_equal(stored.hashes, right.hashes) and np.array_equal(stored.counts, right.counts)):
        return "the words that it is found by are not those of its text"
    if {word: round(weight, 3) for word, weight, _ in stored.keywords} != {
        word: round(weight, 3) for word, weight, _ in right.keywords
    }:
        return "its keywords are not those of its text"
    return None


def _vector_differs(stored: IndexEntry | None, model: str, wanted: np.ndarray | None) -> str | None:
    if stored is None or stored.vector is None:
        return "it has no vector: `jiyi reindex --embeddings`"
    if stored.model != model:
        return f"its vector is another model's: {stored.model}"
    if wanted is not None and float(np.dot(stored.vector, wanted)) < SAME_VECTOR * float(np.dot(wanted, wanted)):
        return "its vector is not that of its text"
    return None
