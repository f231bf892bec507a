"""Sync one user's files with the index: scan → plan → apply. Verify that they agree, and rebuild the index.

The index is written first, in transactions; then the files, each replaced as a whole; then the agreed state. The next
sync completes one that a crash interrupted: a line whose memory exists is recognised by its content, and a memory
without a line gets one.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

import numpy as np

from ..embed import Embedder, embed_documents
from ..errors import UserErased, WorkspaceError
from ..ids import new_id
from ..models import MemoryItem, utc_now
from ..store.store import Store
from ..store.write_set import Agreed, AgreedEntry, FileLook, IndexEntry, Stale
from ..write.build import statement_hash
from ..write.index import KeywordRules, embed_entries, entry_of
from . import safe
from .apply import Written, apply_to_files, apply_to_index
from .plan import IndexState, changed_lines, make_plan
from .scan import FileCache, Scan, scan
from .steps import (
    Archive,
    Create,
    Drift,
    Mark,
    Plan,
    Remove,
    Rewrite,
    Same,
    Step,
    SyncReport,
    Update,
    Write,
    make_report,
)
from .workspace import DAILY_TYPES, LAYERS, Workspace

SYNCING: ContextVar[bool] = ContextVar("jiyi_syncing", default=False)  # set while a sync writes to the index
TRIES = 50
WAIT_S = 60.0
EXPIRY_CHECK_S = 30.0  # seconds between checks for expired memories
SETTLED_S = 0.25  # a line counts as removed when its file has not been written for this long


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncContext:
    """The workspace, the index and the caches of a sync."""

    workspace: Workspace
    store: Store
    embedder: Embedder
    rules: KeywordRules
    with_facts: bool  # extract facts from new lines
    cache: FileCache = field(default_factory=FileCache)
    agreements: dict[str, Agreed] = field(default_factory=dict)  # agreed state by user, as this process knows it
    expiry_checked_at: dict[str, float] = field(default_factory=dict)

    @property
    def types(self) -> tuple[str, ...]:
        return DAILY_TYPES if self.workspace.daily_notes else ()


@dataclass(frozen=True, slots=True)
class PlannedSync:
    scan: Scan
    index: IndexState
    plan: Plan


async def sync_user(
    context: SyncContext,
    user_id: str,
    *,
    confirm: bool = False,
    restore: bool = False,
    dry_run: bool = False,
    files_win: bool = False,
) -> SyncReport:
    """Sync a user's files with the index; with `dry_run`, only report the plan. If the user is deleted meanwhile,
    nothing is saved, and `UserErased` is raised."""
    if dry_run:
        planned = await plan_sync(context, user_id, confirm=confirm, restore=restore)
        return make_report(planned.plan, dry_run=True)
    SYNCING.set(True)
    await asyncio.to_thread(context.workspace.check)
    async with locked(context.workspace, user_id):
        epoch = await context.store.erasures.epoch(user_id)
        for _ in range(TRIES):
            planned = await plan_sync(context, user_id, confirm=confirm, restore=restore, files_win=files_win)
            if _unsettled(planned):
                await asyncio.sleep(SETTLED_S)
                continue
            try:
                problems = await apply(context, planned, epoch)
            except (Stale, safe.Changed):
                continue
            except UserErased:
                await _remove_erased(context, user_id)
                raise
            return make_report(planned.plan, problems=problems)
    raise WorkspaceError(f"{context.workspace.root}: the files change while they are read: try again")


async def _remove_erased(context: SyncContext, user_id: str) -> None:
    """Remove the lines of a deleted user, which this sync may have written; what fails is left to the next one."""
    planned = await plan_sync(context, user_id)
    removing = replace(planned.plan, steps=tuple(planned.plan.of(Remove)))
    with suppress(safe.Changed):
        await asyncio.to_thread(apply_to_files, context.workspace, removing, planned.scan, context.cache)


@asynccontextmanager
async def locked(workspace: Workspace, user_id: str) -> AsyncIterator[None]:
    """Hold the lock of a user's files between processes."""
    lock = safe.lock(workspace.lock_path(user_id), wait_s=WAIT_S)
    try:
        await asyncio.to_thread(lock.__enter__)
    except OSError as error:
        raise WorkspaceError(f"{workspace.root} cannot be used: {error.strerror}") from error
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


async def plan_sync(
    context: SyncContext,
    user_id: str,
    *,
    confirm: bool = False,
    restore: bool = False,
    files_win: bool = False,
    compare_all: bool = False,
) -> PlannedSync:
    """Scan the files, read the index and make a plan. `compare_all`: compare every line, changed or not. `files_win`:
    the files are right where both differ."""
    workspace, store, now = context.workspace, context.store, utc_now()
    await asyncio.to_thread(workspace.check)
    scanned = await asyncio.to_thread(scan, workspace, user_id, context.cache)
    agreed = await store.files.agreed(user_id, workspace.id, None if compare_all else context.agreements.get(user_id))
    context.agreements[user_id] = agreed
    hashes = {
        number: statement_hash(line.note.content, line.note.memory_type, None, None)
        for number, line in enumerate(scanned.lines)
        if line.entry.memory_id is None
    }
    known = await store.memories.known(user_id, list(hashes.values()), now) if hashes else {}
    changed_ids = changed_lines(scanned, agreed)
    if compare_all or files_win:
        changed_ids += [line.entry.memory_id for line in scanned.lines if line.entry.memory_id]
    duplicates = {number: known[digest] for number, digest in hashes.items() if digest in known}
    wanted = FileLook(
        user_id=user_id,
        workspace=workspace.id,
        layers=LAYERS,
        types=context.types,
        ids=tuple(dict.fromkeys([*changed_ids, *duplicates.values()])),
        seen=None if compare_all or files_win else agreed.seen,
        ended=time.monotonic() - context.expiry_checked_at.get(user_id, -EXPIRY_CHECK_S) >= EXPIRY_CHECK_S,
    )
    if wanted.ended:
        context.expiry_checked_at[user_id] = time.monotonic()
    filed = await store.files.look(wanted, now)
    versions = {memory_id: entry.version for memory_id, entry in agreed.entries.items()}
    changed = {
        memory_id: versions.get(memory_id, 0)
        for memory_id, memory in filed.memories.items()
        if memory.version > versions.get(memory_id, 1)
    }
    changes = await store.history.since(user_id, changed) if changed else {}
    index = IndexState(agreed=agreed, filed=filed, changed=changed_ids, duplicates=duplicates, changes=changes)
    options = {"confirm": confirm, "restore": restore, "files_win": files_win}
    return PlannedSync(scanned, index, make_plan(scanned, index, workspace, user_id, now, new_id=new_id, **options))


def _unsettled(planned: PlannedSync) -> bool:
    """Return True if lines are missing in a file that an editor may still be writing."""
    paths = {step.path for step in (*planned.plan.of(Archive), *planned.plan.withheld)}
    ages = [time.time() - file.modified_at for path, file in planned.scan.files.items() if path in paths]
    return any(0 <= age < SETTLED_S for age in ages)


async def apply(context: SyncContext, planned: PlannedSync, epoch: str) -> list[str]:
    """Apply a plan. Return problems."""
    plan, agreed = planned.plan, planned.index.agreed
    if plan.quiet and not plan.steps and not plan.gone and _is_known(planned, agreed):
        return []
    problems = await apply_to_index(
        context.store,
        context.embedder,
        context.rules,
        context.workspace.id,
        plan,
        epoch=epoch,
        with_facts=context.with_facts,
    )
    written = await asyncio.to_thread(apply_to_files, context.workspace, plan, planned.scan, context.cache)
    entries = list(_new_agreements(plan, written))
    dropped = {step.memory_id for step in plan.of(Remove) if step.line.path in written.failed}
    still_there = {entry.memory_id for entry in entries} | dropped
    archived = [step.memory_id for step in plan.of(Archive)]
    gone = [memory_id for memory_id in (*plan.gone, *archived) if memory_id not in still_there]
    seen = planned.index.filed.tip if not (written.failed or plan.held_files) else (agreed.seen or 0)
    at = utc_now()
    await context.store.files.agree(
        plan.user_id,
        context.workspace.id,
        epoch=epoch,
        entries=entries,
        gone=gone,
        checksums=written.checksums,
        seen=seen,
        at=at,
    )
    now = {**agreed.entries, **{entry.memory_id: entry for entry in entries}}
    for memory_id in gone:
        now.pop(memory_id, None)
    if written.checksums:
        context.agreements[plan.user_id] = replace(
            agreed, checksums=written.checksums, entries=now, seen=seen, synced_at=at
        )
    return [*problems, *written.problems]


def _is_known(planned: PlannedSync, agreed: Agreed) -> bool:
    now = {path: file.checksum for path, file in planned.scan.files.items() if file.checksum}
    return now == dict(agreed.checksums) and planned.index.filed.tip == agreed.seen


def _new_agreements(plan: Plan, written: Written) -> Sequence[AgreedEntry]:
    found: dict[str, AgreedEntry] = {}

    def note(step: Create | Update | Write | Rewrite | Mark | Same, path: str, version: int) -> None:
        if path not in written.failed:
            found[step.memory_id] = AgreedEntry(
                memory_id=step.memory_id, path=path, version=version, digests=step.note.digests()
            )

    edited = {step.memory_id: step.version for step in plan.of(Update)}
    for step in plan.steps:
        if isinstance(step, Create):
            note(step, step.line.path if step.line else step.path, 1)
        elif isinstance(step, Update):
            note(step, step.line.path, step.version + 1)
        elif isinstance(step, (Write, Same)):
            note(step, step.path, step.version)
        elif isinstance(step, Rewrite):
            version = edited.get(step.memory_id, step.version - 1) + 1
            if step.line.path in written.failed:
                found.pop(step.memory_id, None)
            else:
                note(step, step.to or step.line.path, version)
        elif isinstance(step, Mark):
            note(step, step.line.path, edited.get(step.memory_id, step.version - 1) + 1)
    return list(found.values())


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
    return [entry_of(item, rules) for item in items]


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
        of_line = isinstance(step, (Create, Update, Mark, Archive))
        yield Drift(
            kind="agreement" if isinstance(step, Same) else "line" if of_line else "memory",
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
    right = entry_of(item, rules)
    if not (np.array_equal(stored.hashes, right.hashes) and np.array_equal(stored.counts, right.counts)):
        return "its index terms do not match its text"
    weights, wanted = ({word: round(weight, 3) for word, weight, _ in entry.keywords} for entry in (stored, right))
    return None if weights == wanted else "its keywords do not match its text"


def _vector_differs(stored: IndexEntry | None, model: str, wanted: np.ndarray | None) -> str | None:
    if stored is None or stored.vector is None:
        return "it has no vector: `jiyi reindex --embeddings`"
    if stored.model != model:
        return f"its vector is from another model: {stored.model}"
    if wanted is not None and float(np.dot(stored.vector, wanted)) < SAME_VECTOR * float(np.dot(wanted, wanted)):
        return "its vector does not match its text"
    return None
