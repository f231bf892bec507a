"""Is what memories are found by what it should be? It is a pure function of their text, so it can be worked out again
and compared; and rows that belong to nothing can be found."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..embed import Embedder, embed_documents
from ..languages.normalise import normalise
from ..store.checking import Checked, Repair
from ..store.contract import EXTRACTED, PAST, SAID, IndexEntry, Unembedded
from ..text.hashes import term_hash
from ..text.passages import passages
from ..write.facts import THE_USER
from ..write.grow import GROWING
from ..write.hashes import apart, identity, statement_hash
from ..write.index import KeywordRules, embed_each, index_entry
from ..write.settle import DATED
from .values import Verification

if TYPE_CHECKING:
    from ..store.base import Store

AT_ONCE = 200
EXAMPLES = 20
HALF = 16  # of a slot: whom it is about, and what it tells of them
SAME = 0.99  # cosine, from which on two vectors are the same but for rounding

Advance = Callable[[str, int, int], None]
Found = tuple[str, str]  # kind, and what about it


@dataclass(slots=True)
class _Findings:
    drift: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    memories: int = 0

    def note(self, kind: str, what: str, number: int = 1) -> None:
        self.drift[kind] += number
        shown = self.examples.setdefault(kind, [])
        if len(shown) < EXAMPLES:
            shown.append(f"{kind}: {what}")


async def verify(
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
    user_id: str | None,
    *,
    repair: bool,
    vectors: bool,
    advance: Advance,
) -> Verification:
    """Look at all of one user or of all, some at a time, while others go on. `vectors`: embed every text again."""
    found = _Findings()
    await _loose_ends(store, user_id, found, repair=repair)
    coverage = await store.coverage(embedder.id, user_id)
    after = ("", "")
    while some := await store.check(user_id, after=after, limit=AT_ONCE):
        await _batch(store, embedder, rules, some, found, repair=repair, vectors=vectors)
        after = (some[-1].user_id, some[-1].id)
        found.memories += len(some)
        advance("verifying", found.memories, max(coverage.memories, found.memories))
    return Verification(
        memories=found.memories,
        drift=dict(found.drift),
        repaired=dict(found.repaired),
        examples=tuple(line for lines in found.examples.values() for line in lines),
        coverage=await store.coverage(embedder.id, user_id) if repair else coverage,
    )


async def _loose_ends(store: Store, user_id: str | None, found: _Findings, *, repair: bool) -> None:
    orphans, dangling = await store.loose_ends(user_id)
    for table, number in orphans.items():
        found.note("orphans", f"{number:,} rows of {table} belong to nothing", number)
    if dangling:
        found.note("successors", f"{dangling:,} memories were superseded by one that is not there", dangling)
    if repair and (orphans or dangling):
        removed, let_go = await store.tie_up(user_id)
        found.repaired.update({"orphans": sum(removed.values()), "successors": let_go})
        found.repaired = +found.repaired


async def _batch(
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
    some: Sequence[Checked],
    found: _Findings,
    *,
    repair: bool,
    vectors: bool,
) -> None:
    stale = await _stale_vectors(embedder, some) if vectors else set()
    entries = await asyncio.to_thread(_entries, some, rules)
    wanted: dict[str, tuple[Repair, Checked, list[str]]] = {}
    for memory, entry in zip(some, entries, strict=True):
        problems = [*drift_of(memory, entry)]
        if memory.id in stale:
            problems.append(("vectors", "its vector is not that of its text"))
        for kind, what in problems:
            found.note(kind, f"memory {memory.id} of user {memory.user_id!r}: {what}")
        if problems:
            kinds = [kind for kind, _ in problems]
            wanted[memory.id] = (_repair(memory, entry, kinds), memory, kinds)
    if not repair or not wanted:
        return
    done = await store.repair([one for one, _, _ in wanted.values()])
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
        await store.embed(embedder.id, missing, await embed_each(embedder, [one.texts for one in missing]))
    found.repaired.update(kind for name in done for kind in wanted[name][2])


def _entries(some: Sequence[Checked], rules: KeywordRules) -> list[IndexEntry]:
    return [index_entry(memory.content, memory.summary, memory.tags, memory.data, rules) for memory in some]


async def _stale_vectors(embedder: Embedder, some: Sequence[Checked]) -> set[str]:
    """Those whose vector of the present model is not that of their text."""
    mine = [memory for memory in some if memory.model == embedder.id and memory.vector is not None]
    if not mine:
        return set()
    now = await embed_documents(embedder, [memory.content for memory in mine])
    return {
        memory.id
        for memory, vector in zip(mine, now, strict=True)
        if memory.vector is not None
        and (len(memory.vector) != len(vector) or float(np.dot(memory.vector, vector)) < SAME)
    }


def drift_of(memory: Checked, entry: IndexEntry) -> Iterator[Found]:
    """What is stored of a memory that is not as its text says."""
    if memory.length is None:
        yield "terms", "it has none, so no search finds it"
    elif not _same_terms(memory, entry):
        yield "terms", "they are not those of its text"
    if sorted(memory.keywords) != sorted(entry.keywords):
        yield "keywords", "they are not those of its text, tags and the present settings"
    elif memory.length is not None and set(memory.keyword_hashes.tolist()) != _hashed(memory):
        yield "keywords", "those that searches look at are not those that are shown"
    if memory.vector is None and memory.status == "active":
        yield "vectors", "it has none, so it is not found by meaning"
    elif memory.vector is not None and not _usable(memory):
        yield "vectors", "its vector cannot be used"
    elif memory.vector is not None and memory.vectors != 1 + len(entry.passages):
        yield "vectors", "its lines have not each their own, so some are not found by meaning"
    expected = _expected_hash(memory)
    if expected is not None and memory.dedupe_hash != expected:
        yield "hashes", "the same text would not be known again"
    slot = expected_slot(memory)
    if slot is not None and memory.slot != slot:
        yield "slots", "it is filed under another subject or attribute than it tells of"
    if not memory.told:
        yield "history", f"version {memory.version} is not in it"


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


def _expected_hash(memory: Checked) -> str | None:
    """None: it hangs on more than the memory itself."""
    stored = memory.dedupe_hash or ""
    if memory.source not in ("statement", EXTRACTED) or memory.memory_type in GROWING:
        return None
    if stored.startswith((SAID, PAST)):
        return None
    own_key = memory.memory_key if memory.memory_key != memory.id else None
    return statement_hash(memory.content, memory.memory_type, memory.agent_id, memory.group_id, own_key, memory.trust)


def expected_slot(memory: Checked) -> str | None:
    """None: it has none, or what it tells cannot be said. Whether a name means the user is decided when it is told, so
    both ways of filing it are right."""
    attribute, subject = memory.data.get("attribute"), memory.data.get("subject")
    if memory.slot is None or not isinstance(attribute, str) or not isinstance(subject, str | None):
        return None
    on = memory.occurred_at.date().isoformat() if memory.memory_type in DATED else None
    what = identity("what", normalise(attribute), on)[:HALF]
    who = normalise(subject or "")
    whom = [identity("whom", memory.agent_id, memory.group_id, name, *apart(memory.trust))[:HALF] for name in ("", who)]
    mine = memory.slot[:HALF] if memory.slot[:HALF] in whom else whom[0 if who in THE_USER else 1]
    return mine + what


def _repair(memory: Checked, entry: IndexEntry, kinds: Sequence[str]) -> Repair:
    return Repair(
        user_id=memory.user_id,
        id=memory.id,
        version=memory.version,
        index=entry if {"terms", "keywords"} & set(kinds) else None,
        dedupe_hash=_expected_hash(memory) if "hashes" in kinds else None,
        slot=expected_slot(memory) if "slots" in kinds else None,
        without_vector="vectors" in kinds,
        history="history" in kinds,
    )
