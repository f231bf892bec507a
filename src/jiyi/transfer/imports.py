"""Add the records of files to a store. Everything is read and checked before anything is written."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from pydantic import Field, JsonValue

from .. import validation
from ..errors import InvalidInput
from ..keep.verify import expected_hash, expected_slot
from ..models import ImportedFile, ImportReport, Receipt, ReceiptState, Value
from ..store.store import Store
from ..store.upkeep.export_records import Line, MemoryRecord, Record
from ..store.upkeep.row_export import Arriving
from ..store.write_set import IndexEntry
from ..write.accept import accept
from ..write.index import KeywordRules, entry_of
from .export import Progress
from .records import Conversation, ImportedMemory, ImportedMessage
from .selection import Selected, select

BATCH = 200  # messages, memories or records in one transaction
MOST_NAMED = 5  # users in a note
JOB_BATCH = 5  # jobs with up to a thousand memories each

Add = Callable[..., Awaitable[Receipt]]
Count = Callable[..., Awaitable[int]]
T = TypeVar("T")
R = TypeVar("R")


class MemoryImportReport(Value):
    """Result of an import of memories."""

    format: str = Field(description="format of the file: jiyi, mem0, mcp, markdown or mongodb")
    read: dict[str, int] = Field(description="records read, by kind")
    new: dict[str, int] = Field(description="records that were not known already, by kind")
    notes: tuple[str, ...] = Field(default=(), description="problems and other remarks")
    by_file: tuple[ImportedFile, ...] = Field(default=(), description="memories by file and user")


async def import_chats(
    path: Path,
    add: Add,
    count: Count,
    *,
    user_id: str,
    agent_id: str | None,
    group_id: str | None,
    epoch: str,
    progress: Callable[[int, int], None] | None,
    actor: str,
    user_names: Sequence[str] | None = None,
) -> ImportReport:
    """Add the conversations of a file or folder. Known messages are not stored twice."""
    user_id = validation.name("user_id", user_id)
    selected = await asyncio.to_thread(select, path, "conversations")
    totals = await asyncio.to_thread(_check_conversations, selected, user_id)
    before = await count(user_id=user_id, memory_types=["message"])
    done, waiting = 0, 0
    problems: Counter[str] = Counter()
    async for conversation in _in_thread(selected.records(Conversation)):
        metadata: dict[str, JsonValue] = {"imported_from": conversation.format}
        if conversation.title:
            metadata["title"] = conversation.title
        for start in range(0, len(conversation.messages), BATCH):
            batch = conversation.messages[start : start + BATCH]
            # Made from the content, so that batches stored before an interruption are not embedded again.
            said = [message.model_dump(mode="json", exclude_defaults=True) for message in batch]
            content = [[conversation.session_id, agent_id, group_id, actor], metadata, said]
            receipt = await add(
                batch,
                user_id=user_id,
                session_id=conversation.session_id,
                agent_id=agent_id,
                group_id=group_id,
                metadata=metadata,
                idempotency_key=sha256(json.dumps(content, sort_keys=True).encode()).hexdigest(),
                epoch=epoch,
                actor=actor,
                user_names=user_names,
                wait=False,
            )
            waiting += receipt.state is ReceiptState.ACCEPTED
            problems.update(receipt.problems)
            done += len(batch)
            if progress is not None:
                progress(done, totals.messages)
    after = await count(user_id=user_id, memory_types=["message"])
    new_memories = 0
    async for some in _in_thread(_memory_batches(totals.remembered)):
        stored = await add(
            [imported.memory for imported in some],
            user_id=user_id,
            agent_id=agent_id,
            group_id=group_id,
            epoch=epoch,
            actor=actor,
        )
        new_memories += stored.created
        problems.update(stored.problems)
    notes = [*selected.skipped, *_with_counts(problems)]
    if waiting:
        notes.append(f"{waiting:,} batches wait for the language model: `jiyi jobs list`, `jiyi worker`")
    if totals.undated:
        notes.append(f"{totals.undated:,} messages have no time: the time of the import is used")
    if totals.repaired:
        notes.append(f"{totals.repaired:,} messages had characters that cannot be stored: replaced by \ufffd")
    return ImportReport(
        files=len(selected.files),
        conversations=len(totals.sessions),
        messages=totals.messages,
        new=after - before,
        memories=len(totals.remembered),
        new_memories=new_memories,
        left_out=dict(totals.skipped),
        notes=tuple(notes),
        by_file=_by_file(totals.chats, totals.memories),
    )


class Where(NamedTuple):
    """A part of a file, and the user it goes to."""

    file: str
    user_id: str
    named: str | None  # user that the file names


def _by_file(chats: Mapping[Where, tuple[set[str], int]], memories: Mapping[Where, int]) -> tuple[ImportedFile, ...]:
    """Return what of each file goes to which user."""
    found = []
    for where in dict.fromkeys((*chats, *memories)):
        sessions, messages = chats.get(where, ((), 0))
        counts = {"conversations": len(sessions), "messages": messages, "memories": memories.get(where, 0)}
        found.append(ImportedFile(file=where.file, user_id=where.user_id, named=where.named, **counts))
    return tuple(found)


@dataclass(slots=True)
class _Totals:
    sessions: set[str] = field(default_factory=set)
    chats: dict[Where, tuple[set[str], int]] = field(default_factory=dict)  # sessions and messages
    messages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    memories: Counter[Where] = field(default_factory=Counter)
    remembered: list[ImportedMemory] = field(default_factory=list)  # few: what the assistant knew of its user
    undated: int = 0
    repaired: int = 0


def _check_conversations(selected: Selected, user_id: str) -> _Totals:
    totals = _Totals()
    for source, record in selected.by_source():
        where = Where(source.label, user_id, None)
        if isinstance(record, ImportedMemory):
            _check(record)
            totals.memories[where] += 1
            totals.remembered.append(record)
        if not isinstance(record, Conversation):
            continue
        if record.messages:
            totals.sessions.add(record.session_id)
            sessions, messages = totals.chats.get(where, (set(), 0))
            sessions.add(record.session_id)
            totals.chats[where] = sessions, messages + len(record.messages)
        totals.messages += len(record.messages)
        totals.skipped.update(record.skipped)
        totals.undated += sum(message.sent_at is None for message in record.messages)
        totals.repaired += record.repaired
    return totals


async def import_memories(
    selected: Selected,
    add: Add,
    count: Count,
    *,
    user_id: str | None,
    default_user: str,
    epoch_of: Callable[[str], str | None],
    actor: str,
    progress: Progress,
) -> MemoryImportReport:
    """Add the messages and memories of another system. Known ones are not stored twice. `epoch_of` returns the erasure
    epoch of a user when the import began."""

    def owner_of(named: str | None) -> str:
        return user_id or named or default_user

    counts, chats = await asyncio.to_thread(_check_memories, selected, owner_of)
    if not counts and not chats:
        raise InvalidInput(selected.files[0][0].name, "contains no memories")
    users = {where.user_id for where in chats}
    messages = sum(number for _, number in chats.values())
    total = messages + sum(counts.values())
    before = sum([await count(user_id=one, memory_types=["message"]) for one in users])
    done = new = 0
    problems: Counter[str] = Counter()
    async for said in _in_thread(_batches(selected.records(ImportedMessage), lambda one: one.place)):
        first_message = said[0]
        owner = owner_of(first_message.user_id)
        receipt = await add(
            [imported.message for imported in said],
            user_id=owner,
            agent_id=first_message.agent_id,
            session_id=first_message.session_id,
            group_id=first_message.group_id,
            metadata=first_message.metadata,
            epoch=epoch_of(owner),
            actor=actor,
            wait=False,
        )
        problems.update(receipt.problems)
        done += len(said)
        progress("importing", done, total)
    new_messages = sum([await count(user_id=one, memory_types=["message"]) for one in users]) - before
    async for batch in _in_thread(_memory_batches(selected.records(ImportedMemory))):
        first = batch[0]
        owner = owner_of(first.user_id)
        receipt = await add(
            [imported.memory for imported in batch],
            user_id=owner,
            agent_id=first.agent_id,
            session_id=first.session_id,
            group_id=first.group_id,
            epoch=epoch_of(owner),
            actor=actor,
        )
        new += receipt.created
        problems.update(receipt.problems)
        done += len(batch)
        progress("importing", done, total)
    return MemoryImportReport(
        format=selected.formats,
        read={"memory": total - messages} | ({"message": messages} if messages else {}),
        new={"memory": new} | ({"message": new_messages} if messages else {}),
        notes=(*selected.skipped, *_merged_users([*counts, *chats]), *_with_counts(problems)),
        by_file=_by_file(chats, counts),
    )


def _merged_users(places: Iterable[Where]) -> list[str]:
    """Say which users of a file have become one."""
    named: dict[str, set[str]] = {}
    for where in places:
        if where.named is not None:
            named.setdefault(where.user_id, set()).add(where.named)
    return [
        f"memories of {len(others):,} users ({_some(sorted(others))}) are all {owner}'s now: "
        "import without a user to keep them apart"
        for owner, others in named.items()
        if len(others) > 1
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def is_jiyi_export(selected: Selected) -> bool:
    return selected.formats == "jiyi"


def _check_memories(
    selected: Selected, owner_of: Callable[[str | None], str]
) -> tuple[Counter[Where], dict[Where, tuple[set[str], int]]]:
    """Check the memories and messages of files; return how many of each go where."""
    counts: Counter[Where] = Counter()
    chats: dict[Where, tuple[set[str], int]] = {}
    for source, imported in selected.by_source():
        if isinstance(imported, ImportedMemory):
            _check(imported)
            counts[Where(source.label, owner_of(imported.user_id), imported.user_id)] += 1
        elif isinstance(imported, ImportedMessage):
            where = Where(source.label, owner_of(imported.user_id), imported.user_id)
            sessions, messages = chats.get(where, (set(), 0))
            sessions.add(imported.session_id or "")
            chats[where] = sessions, messages + 1
    return counts, chats


def _check(imported: ImportedMemory) -> None:
    try:
        accept(imported.memory)
        for name, value in zip(("user_id", "agent_id", "session_id", "group_id"), imported.owner, strict=True):
            validation.optional_name(name, value)
    except InvalidInput as error:
        raise InvalidInput(imported.place, str(error).removeprefix("what.")) from None


def _memory_batches(memories: Iterable[ImportedMemory]) -> Iterator[list[ImportedMemory]]:
    """Yield memories of the same user, agent, session and group, a batch at a time."""
    return _batches(memories, lambda imported: imported.owner)


def _batches(records: Iterable[R], place_of: Callable[[R], object]) -> Iterator[list[R]]:
    """Yield records of the same place, a batch at a time."""
    for _, group in groupby(records, key=place_of):
        batch: list[R] = []
        for imported in group:
            batch.append(imported)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


async def import_export(
    selected: Selected,
    store: Store,
    rules: KeywordRules,
    *,
    user_id: str | None,
    epoch_of: Callable[[str], str],
    progress: Progress,
) -> MemoryImportReport:
    """Restore the records of an export; with a user, only that user's. Known records are not written again."""
    total = await asyncio.to_thread(_check_lines, selected, progress)
    counts: Counter[Where] = Counter()
    read: Counter[str] = Counter()
    new: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    arriving: Arriving | None = None
    done = 0
    async for batch in _in_thread(_line_batches(selected, user_id)):
        first = batch[0]
        if arriving is None or arriving.user_id != first.user_id:
            arriving = Arriving(user_id=first.user_id, epoch=epoch_of(first.user_id))
        before = arriving.new
        entries = await asyncio.to_thread(_index_entries, batch, rules)
        await store.records.add(arriving, batch, entries)
        read[first.kind] += len(batch)
        if first.kind == "memory":
            counts[Where(selected.files[0][0].label, first.user_id, first.user_id)] += len(batch)
        new[first.kind] += arriving.new - before
        skipped.update(arriving.left_out)
        arriving.left_out.clear()
        done += len(batch)
        progress("importing", done, total)
    notes = tuple(f"skipped: {number:,} × {reason}" for reason, number in sorted(skipped.items()))
    by_file = _by_file({}, counts)
    return MemoryImportReport(format="jiyi", read=dict(read), new=dict(new), notes=notes, by_file=by_file)


def _lines(selected: Selected) -> Iterator[Line]:
    return cast(Iterator[Line], selected.records(Record))


def _check_lines(selected: Selected, progress: Progress) -> int:
    count = 0
    for _ in _lines(selected):
        count += 1
        if count % 1000 == 0:
            progress("checking", count, 0)
    return count


def _line_batches(selected: Selected, user_id: str | None) -> Iterator[list[Line]]:
    """Yield records of one user and one kind, a batch at a time."""
    batch: list[Line] = []
    for record in _lines(selected):
        if user_id is not None and record.user_id != user_id:
            continue
        limit = JOB_BATCH if record.kind == "job" else BATCH
        if batch and (len(batch) >= limit or (record.kind, record.user_id) != (batch[0].kind, batch[0].user_id)):
            yield batch
            batch = []
        batch.append(_recomputed(record) if isinstance(record, MemoryRecord) else record)
    if batch:
        yield batch


def _recomputed(record: MemoryRecord) -> MemoryRecord:
    """Compute what follows from the text again: a file may have been changed under its old hashes."""
    hashed = expected_hash(record) or record.dedupe_hash
    return record.model_copy(update={"dedupe_hash": hashed, "slot": expected_slot(record) or record.slot})


def _index_entries(batch: Sequence[Line], rules: KeywordRules) -> list[IndexEntry]:
    """Index the texts anew, with the exported keywords."""
    entries = []
    for record in batch:
        if isinstance(record, MemoryRecord):
            keywords = {one.keyword: (one.keyword, one.weight, one.source) for one in record.keywords}.values()
            entry = entry_of(record, rules)
            entries.append(replace(entry, keywords=tuple(sorted(keywords, key=lambda one: (-one[1], one[0])))))
    return entries


def _with_counts(problems: Counter[str]) -> list[str]:
    return [f"{problem} ({times:,} times)" if times > 1 else problem for problem, times in problems.items()]


async def _in_thread(values: Iterator[T]) -> AsyncIterator[T]:
    """Advance a blocking iterator in a thread."""
    while (value := await asyncio.to_thread(next, values, None)) is not None:
        yield value
