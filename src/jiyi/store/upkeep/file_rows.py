"""Workspace files: the last state that they and the memories shared, and edits in files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from ...errors import VersionConflict
from ..database import Inserts, Repository, chunks, from_row, reads, writes
from ..repositories.additions import add_memories
from ..repositories.change_feed import check_epoch, last_erasure
from ..repositories.memories import known_by_hash, memory_rows
from ..repositories.revisions import apply_changes, retire_expired
from ..schema.tables import SOURCES, ChangeRow, FileEntryRow, FileRow, MemoryRow
from ..write_set import Agreed, AgreedEntry, Filed, FileLook, FileWork, NewMemory, Stale, StoredMemory

OWN = "own:"  # the hash of a line that says what another says already, or its key if another has that: both stay
MOST_CHANGES = 5_000  # from there on, looking at everything is cheaper


def _changed_since(session: Session, user_id: str, seen: int) -> list[str] | None:
    """Return changed ids, or None if there are too many or the feed does not reach back."""
    last = select(ChangeRow.seq).where(ChangeRow.user_id == user_id, ChangeRow.seq == seen)
    if seen and session.scalar(last) is None:
        return None
    since = select(ChangeRow.memory_id).where(ChangeRow.user_id == user_id, ChangeRow.seq > seen)
    since = since.where(ChangeRow.action != SOURCES)
    found = list(session.scalars(since.distinct().limit(MOST_CHANGES + 1)))
    return None if len(found) > MOST_CHANGES else found


def _ended(session: Session, wanted: FileLook, now: datetime) -> list[str]:
    """Return memories with a line that expired or ended."""
    statement = (
        select(MemoryRow.id)
        .join(FileEntryRow, and_(FileEntryRow.user_id == MemoryRow.user_id, FileEntryRow.memory_id == MemoryRow.id))
        .where(
            FileEntryRow.user_id == wanted.user_id,
            FileEntryRow.workspace == wanted.workspace,
            or_(MemoryRow.expires_at <= now, MemoryRow.valid_to <= now),
        )
    )
    return list(session.scalars(statement))


def _by_id(session: Session, user_id: str, ids: Sequence[str]) -> list[StoredMemory]:
    return _select(session, [MemoryRow.user_id == user_id, MemoryRow.id.in_(ids)])


def _holding(session: Session, wanted: FileLook, now: datetime) -> list[StoredMemory]:
    with_line = select(FileEntryRow.memory_id).where(
        FileEntryRow.user_id == wanted.user_id, FileEntryRow.workspace == wanted.workspace
    )
    return _select(
        session,
        [
            MemoryRow.user_id == wanted.user_id,
            MemoryRow.status == "active",
            or_(MemoryRow.expires_at.is_(None), MemoryRow.expires_at > now),
            or_(MemoryRow.valid_to.is_(None), MemoryRow.valid_to > now),
            or_(
                MemoryRow.layer.in_(wanted.layers),
                MemoryRow.memory_type.in_(wanted.types),
                MemoryRow.id.in_(with_line),
            ),
        ],
    )


def _select(session: Session, where: Sequence[ColumnElement[bool]]) -> list[StoredMemory]:
    found = session.execute(select(MemoryRow.__table__).where(*where).order_by(MemoryRow.id)).all()
    return [from_row(StoredMemory, row) for row in found]


def apply_work(session: Session, work: FileWork) -> None:
    """Write the edits."""
    check_epoch(session, work.user_id, work.epoch)
    there = memory_rows(session, work.user_id, [changed.id for changed, _ in work.changes])
    if any(changed.id not in there or there[changed.id].version != version for changed, version in work.changes):
        raise Stale
    said = {changed.id: changed.change.dedupe_hash for changed, _ in work.changes if changed.change.dedupe_hash}
    for memory_id in said:  # for now: lines may have exchanged their texts
        mine = and_(MemoryRow.user_id == work.user_id, MemoryRow.id == memory_id)
        session.execute(update(MemoryRow).where(mine).values(dedupe_hash=OWN + memory_id))
    taken = _taken(session, work, list(said.values()))
    own = _free(said, taken)
    changes = [(changed.id, replace(changed.change, dedupe_hash=own.get(changed.id))) for changed, _ in work.changes]
    inserts = Inserts()
    changed_rows = [(there[memory_id], change) for memory_id, change in changes]
    try:
        apply_changes(session, work.user_id, changed_rows, inserts)
    except VersionConflict:  # of a message that says the same
        raise Stale from None
    inserts.run(session)
    for addition in work.additions:
        if _there(session, work.user_id, addition.memories):
            raise Stale
        hashes = {memory.id: memory.dedupe_hash for memory in addition.memories}
        own = _free(hashes, taken | _taken(session, work, list(hashes.values())))
        keys = _keys(addition.memories, _taken_keys(session, work.user_id, addition.memories))
        new = [
            replace(
                memory,
                dedupe_hash=own[memory.id],
                memory_key=keys[memory.id],
            )
            for memory in addition.memories
        ]
        add_memories(inserts, addition, new)
        inserts.run(session)
    agree(session, work.user_id, work.workspace, work.agreed, [])
    if work.agreed:  # so that others read it again
        mine = and_(FileRow.user_id == work.user_id, FileRow.path.startswith(f"{work.workspace}/", autoescape=True))
        session.execute(update(FileRow).where(mine).values(synced_at=work.at))


def _there(session: Session, user_id: str, new: Sequence[NewMemory]) -> bool:
    return any(_by_id(session, user_id, some) for some in chunks([memory.id for memory in new]))


def _free(hashes: Mapping[str, str], taken: set[str]) -> dict[str, str]:
    """Return a dedupe hash for each memory, a unique one where another memory has the same text."""
    found: dict[str, str] = {}
    for memory_id, said in hashes.items():
        found[memory_id] = OWN + memory_id if said in taken else said
        taken.add(said)
    return found


def _taken(session: Session, work: FileWork, hashes: Sequence[str]) -> set[str]:
    retire_expired(session, work.user_id, hashes, work.at)
    return set(known_by_hash(session, work.user_id, hashes, work.at))


def _keys(new: Sequence[NewMemory], taken: set[str]) -> dict[str, str]:
    """Return a key for each memory: the one that its line names, unless another memory has it. A line may name any."""
    own = {memory.id: OWN + memory.id if memory.id in taken else memory.id for memory in new}
    wanted = Counter(memory.memory_key for memory in new)
    barred = taken | own.keys() | {key for key, times in wanted.items() if times > 1}
    return {memory.id: own[memory.id] if memory.memory_key in barred else memory.memory_key for memory in new}


def _taken_keys(session: Session, user_id: str, new: Sequence[NewMemory]) -> set[str]:
    taken: set[str] = set()
    for some in chunks([key for memory in new for key in {memory.id, memory.memory_key}]):
        statement = select(MemoryRow.memory_key).where(MemoryRow.user_id == user_id, MemoryRow.memory_key.in_(some))
        taken.update(session.scalars(statement))
    return taken


def agree(session: Session, user_id: str, workspace: str, entries: Sequence[AgreedEntry], gone: Sequence[str]) -> None:
    """Save the new shared state of lines, and remove lines that are gone."""
    mine = and_(FileEntryRow.user_id == user_id, FileEntryRow.workspace == workspace)
    for some in chunks([*(entry.memory_id for entry in entries), *gone]):
        session.execute(delete(FileEntryRow).where(mine, FileEntryRow.memory_id.in_(some)))
    values = [
        {
            "user_id": user_id,
            "workspace": workspace,
            "memory_id": entry.memory_id,
            "path": entry.path,
            "version": entry.version,
            "digests": dict(entry.digests),
        }
        for entry in entries
    ]
    if values:
        session.execute(insert(FileEntryRow), values)


def note_files(
    session: Session, user_id: str, workspace: str, checksums: Mapping[str, str], seen: int, at: datetime
) -> None:
    """Save the new state of the files."""
    mine = and_(FileRow.user_id == user_id, FileRow.path.startswith(f"{workspace}/", autoescape=True))
    session.execute(delete(FileRow).where(mine))
    values = [
        {"user_id": user_id, "path": f"{workspace}/{path}", "checksum": checksum, "synced_at": at, "seen": seen}
        for path, checksum in checksums.items()
    ]
    if values:
        session.execute(insert(FileRow), values)


class Files(Repository):
    """Workspace files: what they and the memories last agreed on."""

    @reads
    def agreed(self, session: Session, user_id: str, workspace: str, known: Agreed | None = None) -> Agreed:
        """Return the last shared state; `known` if nobody has changed it since."""
        found = session.execute(
            select(FileRow.__table__).where(
                FileRow.user_id == user_id, FileRow.path.startswith(f"{workspace}/", autoescape=True)
            )
        ).all()
        synced_at = max((row.synced_at for row in found), default=None)
        if known is not None and synced_at is not None and known.synced_at == synced_at:
            return known
        entries = session.execute(
            select(FileEntryRow.memory_id, FileEntryRow.path, FileEntryRow.version, FileEntryRow.digests).where(
                FileEntryRow.user_id == user_id, FileEntryRow.workspace == workspace
            )
        ).all()
        return Agreed(
            checksums={row.path.removeprefix(f"{workspace}/"): row.checksum for row in found},
            entries={
                memory_id: AgreedEntry(memory_id=memory_id, path=path, version=version, digests=digests)
                for memory_id, path, version, digests in entries
            },
            seen=min((row.seen for row in found if row.seen is not None), default=None),
            synced_at=synced_at,
        )

    @reads
    def count_lines(self, session: Session, user_id: str | None) -> int:
        """Count the known lines of all workspaces; of all users if none is named."""
        mine = [] if user_id is None else [FileEntryRow.user_id == user_id]
        return session.scalar(select(func.count()).select_from(FileEntryRow).where(*mine)) or 0

    @reads
    def look(self, session: Session, wanted: FileLook, now: datetime) -> Filed:
        """Return the memories that a sync reads: changed since `seen`, ended since, or named; all current ones if the
        changes are not known."""
        user_id = wanted.user_id
        tip = session.scalar(select(func.max(ChangeRow.seq)).where(ChangeRow.user_id == user_id)) or 0
        changed = None if wanted.seen is None else _changed_since(session, user_id, wanted.seen)
        ids = dict.fromkeys(wanted.ids)
        found: dict[str, StoredMemory] = {}
        if changed is None:
            found = {memory.id: memory for memory in _holding(session, wanted, now)}
        else:
            ids |= dict.fromkeys([*changed, *(_ended(session, wanted, now) if wanted.ended else ())])
        for some in chunks([name for name in ids if name not in found]):
            found |= {memory.id: memory for memory in _by_id(session, user_id, some)}
        _, erased_at = last_erasure(session, user_id)
        return Filed(
            memories=found,
            missing=tuple(name for name in ids if name not in found),
            complete=changed is None,
            tip=tip,
            erased_at=erased_at,
        )

    @writes
    def apply(self, session: Session, work: FileWork) -> None:
        apply_work(session, work)

    @writes
    def agree(
        self,
        session: Session,
        user_id: str,
        workspace: str,
        *,
        epoch: str,
        entries: Sequence[AgreedEntry],
        gone: Sequence[str],
        checksums: Mapping[str, str],
        seen: int,
        at: datetime,
    ) -> None:
        check_epoch(session, user_id, epoch)
        agree(session, user_id, workspace, entries, gone)
        note_files(session, user_id, workspace, checksums, seen, at)
