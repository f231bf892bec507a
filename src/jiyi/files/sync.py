"""One user's files and the index, brought to agree: scan → plan → apply.

The index goes first, in transactions; then the files, each replaced as a whole; then what both agree on now. A crash
between any two steps leaves nothing that the next sync does not take up again: a line whose memory is there already is
known by its text, and a memory without a line gets one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..errors import WorkspaceError
from ..ids import new_id
from ..models import utc_now
from ..store.contract import Agreed, AgreedEntry, FileLook, Stale
from ..write.hashes import statement_hash
from ..write.index import KeywordRules
from . import safe
from .layout import DAILY_TYPES, LAYERS, Workspace
from .plan import Known, make_plan, suspects
from .report import report
from .scan import Remembered, Scan, scan
from .steps import Archive, Drop, Edit, Mark, Plan, Rewrite, Same, Take, Write
from .taking import take
from .values import SyncReport
from .writing import Written, write_files

if TYPE_CHECKING:
    from ..store.store import Store

SYNCING: ContextVar[bool] = ContextVar("jiyi_syncing", default=False)  # what is written now is no news to the files
TRIES = 50
WAIT_S = 60.0
ENDED_EVERY_S = 30.0  # how often it is looked for memories that end by the passing of time
SETTLED_S = 0.25  # a line is believed to be gone when its file has not been written to for this long


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """What a sync works with."""

    workspace: Workspace
    store: Store
    embedder: Embedder
    rules: KeywordRules
    with_facts: bool  # look what new lines are about
    remembered: Remembered = field(default_factory=Remembered)
    agreements: dict[str, Agreed] = field(default_factory=dict)  # by user, as this process knows them
    ended_at: dict[str, float] = field(default_factory=dict)  # when it was last looked for what ends by itself

    @property
    def types(self) -> tuple[str, ...]:
        return DAILY_TYPES if self.workspace.daily_notes else ()


@dataclass(frozen=True, slots=True)
class Looked:
    scan: Scan
    known: Known
    plan: Plan


async def sync_user(
    filing: Filing,
    user_id: str,
    *,
    confirm: bool = False,
    restore: bool = False,
    dry_run: bool = False,
    files_win: bool = False,
) -> SyncReport:
    """Bring a user's files and memories to agree. → what was done; with `dry_run`, what would be done"""
    if dry_run:
        looked = await look(filing, user_id, confirm=confirm, restore=restore)
        return report(looked.plan, dry_run=True)
    SYNCING.set(True)
    await asyncio.to_thread(filing.workspace.check)
    async with locked(filing.workspace, user_id):
        for _ in range(TRIES):
            looked = await look(filing, user_id, confirm=confirm, restore=restore, files_win=files_win)
            if _unsettled(looked):
                await asyncio.sleep(SETTLED_S)
                continue
            try:
                problems = await apply(filing, looked)
            except (Stale, safe.Changed):
                continue
            return report(looked.plan, problems=problems)
    raise WorkspaceError(f"{filing.workspace.root}: the files keep changing while they are read: try again")


@asynccontextmanager
async def locked(workspace: Workspace, user_id: str) -> AsyncIterator[None]:
    """No other process works on this user's files."""
    lock = safe.lock(workspace.lock_path(user_id), wait_s=WAIT_S)
    try:
        await asyncio.to_thread(lock.__enter__)
    except OSError as error:
        raise WorkspaceError(f"{workspace.root} cannot be used: {error.strerror}") from error
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


async def look(
    filing: Filing,
    user_id: str,
    *,
    confirm: bool = False,
    restore: bool = False,
    files_win: bool = False,
    all_of_it: bool = False,
) -> Looked:
    """Scan and plan. `all_of_it`: compare everything, also what nobody has told of. `files_win`: and the files are
    right."""
    workspace, store, now = filing.workspace, filing.store, utc_now()
    await asyncio.to_thread(workspace.check)
    scanned = await asyncio.to_thread(scan, workspace, user_id, filing.remembered)
    agreed = await store.files.agreed(user_id, workspace.id, None if all_of_it else filing.agreements.get(user_id))
    filing.agreements[user_id] = agreed
    hashes = {
        number: statement_hash(line.note.content, line.note.memory_type, None, None)
        for number, line in enumerate(scanned.lines)
        if line.entry.memory_id is None
    }
    known = await store.memories.known(user_id, list(hashes.values()), now) if hashes else {}
    suspected = suspects(scanned, agreed)
    if all_of_it or files_win:
        suspected += [line.entry.memory_id for line in scanned.lines if line.entry.memory_id]
    twins = {number: known[said] for number, said in hashes.items() if said in known}
    wanted = FileLook(
        user_id=user_id,
        workspace=workspace.id,
        layers=LAYERS,
        types=filing.types,
        ids=tuple(dict.fromkeys([*suspected, *twins.values()])),
        seen=None if all_of_it or files_win else agreed.seen,
        ended=time.monotonic() - filing.ended_at.get(user_id, -ENDED_EVERY_S) >= ENDED_EVERY_S,
    )
    if wanted.ended:
        filing.ended_at[user_id] = time.monotonic()
    filed = await store.files.look(wanted, now)
    noted = {memory_id: entry.version for memory_id, entry in agreed.entries.items()}
    changed = {
        memory_id: noted.get(memory_id, 0)
        for memory_id, memory in filed.memories.items()
        if memory.version > noted.get(memory_id, 1)
    }
    changes = await store.history.since(user_id, changed) if changed else {}
    knows = Known(agreed=agreed, filed=filed, suspects=suspected, twins=twins, changes=changes)
    plan = make_plan(
        scanned,
        knows,
        workspace,
        user_id,
        now,
        new_id=new_id,
        confirm=confirm,
        restore=restore,
        files_win=files_win,
    )
    return Looked(scanned, knows, plan)


def _unsettled(looked: Looked) -> bool:
    """An editor that empties a file before it writes it again must not be taken for a person who removes lines."""
    paths = {step.path for step in (*looked.plan.of(Archive), *looked.plan.withheld) if isinstance(step, Archive)}
    ages = [time.time() - file.modified_at for path, file in looked.scan.files.items() if path in paths]
    return any(0 <= age < SETTLED_S for age in ages)


async def apply(filing: Filing, looked: Looked) -> list[str]:
    """Make the plan come true. → what did not work"""
    plan, agreed = looked.plan, looked.known.agreed
    if plan.quiet and not plan.steps and not plan.gone and _is_known(looked, agreed):
        return []
    problems = await take(filing.store, filing.embedder, filing.rules, filing.workspace.id, plan, filing.with_facts)
    written = await asyncio.to_thread(write_files, filing.workspace, plan, looked.scan, filing.remembered)
    entries = list(_agreed_now(plan, written))
    dropped = {step.memory_id for step in plan.of(Drop) if isinstance(step, Drop) and step.line.path in written.failed}
    still_there = {entry.memory_id for entry in entries} | dropped
    archived = [step.memory_id for step in plan.of(Archive) if isinstance(step, Archive)]
    gone = [memory_id for memory_id in (*plan.gone, *archived) if memory_id not in still_there]
    seen = looked.known.filed.tip if not (written.failed or plan.held_files) else (agreed.seen or 0)
    at = utc_now()
    await filing.store.files.agree(
        plan.user_id,
        filing.workspace.id,
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
        filing.agreements[plan.user_id] = replace(
            agreed, checksums=written.checksums, entries=now, seen=seen, synced_at=at
        )
    return [*problems, *written.problems]


def _is_known(looked: Looked, agreed: Agreed) -> bool:
    now = {path: file.checksum for path, file in looked.scan.files.items() if file.checksum}
    return now == dict(agreed.checksums) and looked.known.filed.tip == agreed.seen


def _agreed_now(plan: Plan, written: Written) -> Sequence[AgreedEntry]:
    found: dict[str, AgreedEntry] = {}

    def note(step: Take | Edit | Write | Rewrite | Mark | Same, path: str, version: int) -> None:
        if path not in written.failed:
            found[step.memory_id] = AgreedEntry(
                memory_id=step.memory_id, path=path, version=version, digests=step.note.digests()
            )

    edited = {step.memory_id: step.version for step in plan.of(Edit) if isinstance(step, Edit)}
    for step in plan.steps:
        if isinstance(step, Take):
            note(step, step.line.path if step.line else step.path, 1)
        elif isinstance(step, Edit):
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
