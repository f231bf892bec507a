"""Verify the index: recompute each memory's entry from its text and compare, and find orphaned rows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field

from ..embed import Embedder, embed_documents
from ..languages.terms import term_hash
from ..languages.words import normalise
from ..models import Coverage, Value
from ..roles import BY_USER, USER_SUBJECTS, told_by
from ..scope import Scope
from ..store.store import Store
from ..store.upkeep.export_records import MemoryRecord
from ..store.upkeep.integrity import Checked, Repair
from ..store.write_set import EXTRACTED, PAST, SAID, STATED, IndexEntry, Unembedded
from ..text.passages import passages
from ..write.build import of_its_dates, of_its_day, statement_hash
from ..write.facts import slot_of
from ..write.index import KeywordRules, embed_each
from ..write.reconcile import DATED
from .maintain import index_entries_of

BATCH = 200
MAX_EXAMPLES = 20
SAME_VECTOR = 0.99  # cosine of vectors that differ only by rounding

Progress = Callable[[str, int, int], None]  # step, done, total
Problem = tuple[str, str]  # kind and description


class VerifyReport(Value):
    """Result of `verify`."""

    memories: int = Field(description="memories checked, including archived and superseded ones")
    drift: dict[str, int] = Field(default_factory=dict, description="inconsistencies by kind")
    repaired: dict[str, int] = Field(default_factory=dict, description="inconsistencies repaired, by kind")
    examples: tuple[str, ...] = Field(default=(), description="the first few of each kind, with the memory's id")
    coverage: Coverage = Field(description="active memories with vectors and with keywords")

    @property
    def sound(self) -> bool:
        """True if nothing is wrong, or everything was repaired."""
        return self.drift == self.repaired


@dataclass(slots=True)
class _Findings:
    drift: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    memories: int = 0

    def note(self, kind: str, what: str, number: int = 1) -> None:
        self.drift[kind] += number
        shown = self.examples.setdefault(kind, [])
        if len(shown) < MAX_EXAMPLES:
            shown.append(f"{kind}: {what}")


async def verify(
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
    user_id: str | None,
    *,
    repair: bool,
    vectors: bool,
    progress: Progress,
) -> VerifyReport:
    """Check all memories of one user or of all, in batches. `vectors` embeds every text again to compare."""
    found = _Findings()
    await _find_orphans(store, user_id, found, repair=repair)
    coverage = await store.entries.coverage(embedder.id, user_id)
    after = ("", "")
    while batch := await store.checks.page(user_id, after=after, limit=BATCH):
        await _batch(store, embedder, rules, batch, found, repair=repair, vectors=vectors)
        after = (batch[-1].user_id, batch[-1].id)
        found.memories += len(batch)
        progress("verifying", found.memories, max(coverage.memories, found.memories))
    return VerifyReport(
        memories=found.memories,
        drift=dict(found.drift),
        repaired=dict(found.repaired),
        examples=tuple(line for lines in found.examples.values() for line in lines),
        coverage=await store.entries.coverage(embedder.id, user_id) if repair else coverage,
    )


async def _find_orphans(store: Store, user_id: str | None, found: _Findings, *, repair: bool) -> None:
    orphans, dangling = await store.checks.orphans(user_id)
    for table, number in orphans.items():
        found.note("orphans", f"{number:,} orphaned rows in {table}", number)
    if dangling:
        found.note("successors", f"{dangling:,} memories have a dangling superseded_by", dangling)
    if repair and (orphans or dangling):
        removed, cleared = await store.checks.remove_orphans(user_id)
        found.repaired.update({"orphans": sum(removed.values()), "successors": cleared})
        found.repaired = +found.repaired


async def _batch(
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
    batch: Sequence[Checked],
    found: _Findings,
    *,
    repair: bool,
    vectors: bool,
) -> None:
    stale = await _stale_vectors(embedder, batch) if vectors else set()
    entries = await asyncio.to_thread(index_entries_of, batch, rules)
    wanted: dict[str, tuple[Repair, Checked, list[str]]] = {}
    for memory, entry in zip(batch, entries, strict=True):
        problems = [*drift_of(memory, entry)]
        if memory.id in stale:
            problems.append(("vectors", "its vector does not match its text"))
        for kind, what in problems:
            found.note(kind, f"memory {memory.id} of user {memory.user_id!r}: {what}")
        if problems:
            kinds = [kind for kind, _ in problems]
            wanted[memory.id] = (_repair(memory, entry, kinds), memory, kinds)
    if not repair or not wanted:
        return
    done = await store.checks.repair([one for one, _, _ in wanted.values()])
    without = [wanted[name][1] for name in done if "vectors" in wanted[name][2]]
    if without:
        missing = [
            Unembedded(
                user_id=memory.user_id,
                memory_id=memory.id,
                version=memory.version,
                texts=(memory.content, *passages(memory.content, memory.data)),
            )
            for memory in without
        ]
        await store.entries.save_vectors(
            embedder.id, missing, await embed_each(embedder, [one.texts for one in missing])
        )
    found.repaired.update(kind for name in done for kind in wanted[name][2])


async def _stale_vectors(embedder: Embedder, batch: Sequence[Checked]) -> set[str]:
    """Return ids of memories whose vector of the current model does not match their text."""
    embedded = [memory for memory in batch if memory.model == embedder.id and memory.vector is not None]
    if not embedded:
        return set()
    vectors = await embed_documents(embedder, [memory.content for memory in embedded])
    return {
        memory.id
        for memory, vector in zip(embedded, vectors, strict=True)
        if memory.vector is not None
        and (len(memory.vector) != len(vector) or float(np.dot(memory.vector, vector)) < SAME_VECTOR)
    }


def drift_of(memory: Checked, entry: IndexEntry) -> Iterator[Problem]:
    """Yield differences between a stored memory and the entry computed from its text."""
    if memory.length is None:
        yield "terms", "missing, so no keyword search finds it"
    elif not _same_terms(memory, entry):
        yield "terms", "differ from those of its text"
    if sorted(memory.keywords) != sorted(entry.keywords):
        yield "keywords", "differ from those of its text, tags and the current settings"
    elif memory.length is not None and set(memory.keyword_hashes.tolist()) != _hashed(memory):
        yield "keywords", "the hashes used by search differ from the stored keywords"
    if memory.vector is None and memory.status == "active":
        yield "vectors", "missing, so semantic search does not find it"
    elif memory.vector is not None and not _usable(memory):
        yield "vectors", "not usable"
    elif memory.vector is not None and memory.vectors != 1 + len(entry.passages):
        yield "vectors", "some passages have none"
    expected = expected_hash(memory)
    if expected is not None and memory.dedupe_hash != expected:
        yield "hashes", "the same text would not be recognised as a duplicate"
    slot = expected_slot(memory)
    if slot is not None and memory.slot != slot:
        yield "slots", "differs from its subject and attribute"
    if not memory.told:
        yield "history", f"version {memory.version} is missing"


def _same_terms(memory: Checked, entry: IndexEntry) -> bool:
    return (
        memory.length == entry.length
        and abs(memory.asks - entry.asks) < 1e-6
        and memory.near_hash == entry.near_hash
        and np.array_equal(memory.hashes, entry.hashes)
        and np.array_equal(memory.counts, entry.counts)
    )


def _hashed(memory: Checked) -> set[int]:
    return {int(term_hash(keyword)) for keyword, _, _ in memory.keywords}


def _usable(memory: Checked) -> bool:
    vector = memory.vector
    if vector is None or len(vector) != memory.dimension or not np.isfinite(vector).all():
        return False
    return abs(float(np.linalg.norm(vector)) - 1) < 0.01


def expected_hash(memory: Checked | MemoryRecord) -> str | None:
    """Compute the hash; None if it depends on more than the memory itself."""
    stored = memory.dedupe_hash or ""
    if memory.source not in (STATED, EXTRACTED) or memory.memory_type == "episode":
        return None
    if stored.startswith((SAID, PAST)):
        return None
    own_key = memory.memory_key if memory.memory_key != memory.id else None
    place = memory.agent_id, memory.group_id
    hashes = [
        statement_hash(memory.content, memory.memory_type, *place, own_key, memory.trust, told_by(data, memory.user_id))
        for data in _readings(memory)
    ]
    # Earlier versions stored events without their day.
    right = [of_its_day(hashes[0], memory.memory_type, memory.occurred_at), *hashes]
    right += [of_its_day(one, memory.memory_type, memory.occurred_at) for one in hashes[1:]]
    right += [of_its_dates(one, memory.data) for one in right]
    return stored if stored in right else right[0]


def expected_slot(memory: Checked | MemoryRecord) -> str | None:
    """Compute the slot; None if it has none or its subject is unknown. Whether the subject is a name of the user was
    decided when the memory was added, so both ways are right."""
    attribute, subject = memory.data.get("attribute"), memory.data.get("subject")
    if memory.slot is None or not isinstance(attribute, str) or not isinstance(subject, str | None):
        return None
    place = Scope(user_id=memory.user_id, agent_id=memory.agent_id, group_id=memory.group_id)
    on = memory.occurred_at.date() if memory.memory_type in DATED else None
    slots = [
        slot_of(data, attribute, place, user_names=names, on=on, trust=memory.trust)
        for data in _readings(memory)
        for names in ((), () if subject is None else (subject,))
    ]
    return memory.slot if memory.slot in slots else slots[0]


def _readings(memory: Checked | MemoryRecord) -> Iterator[dict[str, Any]]:
    """Yield the data of a memory, and as older versions read it: a speaker whose name was like the user's was the
    user."""
    yield memory.data
    speaker = memory.data.get("speaker")
    if isinstance(speaker, str) and normalise(speaker) in {normalise(memory.user_id), *USER_SUBJECTS}:
        yield {**memory.data, BY_USER: True}


def _repair(memory: Checked, entry: IndexEntry, kinds: Sequence[str]) -> Repair:
    return Repair(
        user_id=memory.user_id,
        id=memory.id,
        version=memory.version,
        index=entry if {"terms", "keywords"} & set(kinds) else None,
        dedupe_hash=expected_hash(memory) if "hashes" in kinds else None,
        slot=expected_slot(memory) if "slots" in kinds else None,
        without_vector="vectors" in kinds,
        history="history" in kinds,
    )
