"""Transfer: export, backup, and imports of chats and memories."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue

from .. import validation
from ..engine import Engine
from ..errors import InvalidInput
from ..keep.values import Backup, Exported, MemoryImport
from ..models import ImportReport, Receipt, ReceiptState
from ..transfer.chats.chat import Chat
from ..transfer.chats.files import Source, UnknownShape, find_sources, read_chats
from ..transfer.memories.found import Found
from ..transfer.memories.shapes import KNOWN, Shape, read_found, shape_of
from ..write.accept import accept

FORMATS = ("jsonl", "markdown")
BATCH = 200  # messages or memories in one `add`, which is one transaction

Advance = Callable[[str, int, int], None]
Progress = Callable[[int, int], None]
Add = Callable[..., Awaitable[Receipt]]
Count = Callable[..., Awaitable[int]]


class Transfer:
    def __init__(self, engine: Engine, add: Add, count: Count) -> None:
        self._engine = engine
        self._add = add
        self._count = count

    async def export(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        format: str = "jsonl",  # noqa: A002 - the word that people look for
        overwrite: bool = False,
        progress: Advance | None = None,
    ) -> Exported:
        """Write all memories of one user, or of all, to a file.

        `jsonl` is complete: memories with history, relations, sources, keywords and vectors, messages, synonyms,
        recalls and jobs, as of one moment. The same memories give the same bytes, whatever the database. `markdown` is
        for reading. `import_memories` takes both.

            await memory.transfer.export("mei.jsonl", user_id="mei")
        """
        from ..transfer.atomic_file import free
        from ..transfer.export import export_lines
        from ..transfer.export_markdown import export_markdown

        validation.optional_name("user_id", user_id)
        write = export_lines if validation.choice("format", format, FORMATS) == "jsonl" else export_markdown
        target = free("path", Path(path), overwrite=overwrite)
        await self._engine.accesses.flush()
        counted = await write(self._engine.store, target, user_id, progress or _quiet)
        return Exported(path=str(target), format=format, records=counted, size_bytes=target.stat().st_size)

    async def backup(self, path: str | Path, *, overwrite: bool = False, progress: Advance | None = None) -> Backup:
        """Write everything of all users to one file, as of one moment, while others continue to write.

        It contains all that was acknowledged before it began. The file is a store of its own, whatever the database;
        `restore_backup` puts it in place of another.

            await memory.transfer.backup("memory-2026-05-07.db")
        """
        from ..transfer.atomic_file import free
        from ..transfer.backup import back_up

        target = free("path", Path(path), overwrite=overwrite)
        await self._engine.accesses.flush()
        return await back_up(self._engine.store, target, progress or _quiet)

    async def import_chats(
        self,
        path: str | Path,
        *,
        user_id: str,
        agent_id: str | None = None,
        group_id: str | None = None,
        progress: Progress | None = None,
        actor: str = "import",
    ) -> ImportReport:
        """Import past chats with their original times: exports of ChatGPT and Claude (also the zip as downloaded),
        OpenAI-style messages in JSON or JSONL, LoCoMo and LongMemEval; a file, or a folder of them.

        Everything is read and checked before anything is stored. Known messages are not stored twice, so an import can
        be interrupted and started again.

            report = await memory.transfer.import_chats("conversations.json", user_id="mei")
        """
        scope = {"user_id": user_id, "agent_id": agent_id, "group_id": group_id}
        return await import_chats(Path(path), self._add, self._count, scope, progress, actor)

    async def import_memories(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        progress: Advance | None = None,
        actor: str = "import",
    ) -> MemoryImport:
        """Import memories: an export of Jiyi, mem0's `get_all` (as JSON), the `memory.jsonl` of MCP's reference memory
        server, or a folder of Markdown notes.

        Everything is read and checked before anything is stored. Known memories are not stored twice, so an import can
        be interrupted and started again. With `user_id`, nothing is written for anybody else: of an export of Jiyi only
        that user's part is taken, and memories of another system become that user's.

            report = await memory.transfer.import_memories("mei.jsonl")
        """
        validation.optional_name("user_id", user_id)
        validation.name("actor", actor)
        source, advance = Path(path), progress or _quiet
        shape = await memory_shape(source)
        if shape == "jiyi":
            from ..transfer.export import import_lines

            engine = self._engine
            taken = await import_lines(engine.store, source, user_id, engine.rules, advance)
            notes = [f"left out: {number:,} × {why}" for why, number in sorted(taken.left_out.items())]
            return MemoryImport(shape="jiyi", read=dict(taken.read), new=dict(taken.new), notes=tuple(notes))
        return await import_foreign(source, shape, self._add, user_id, self._engine.settings.user, actor, advance)


async def memory_shape(path: Path) -> Shape:
    shape = await asyncio.to_thread(shape_of, path)
    if shape == "chats":
        raise InvalidInput(str(path), KNOWN)
    return shape


async def import_chats(
    path: Path, add: Add, count: Count, scope: dict[str, str | None], progress: Progress | None, actor: str
) -> ImportReport:
    """Add the chats of a file or folder, batch by batch."""
    user_id = validation.name("user_id", scope["user_id"])
    survey = await asyncio.to_thread(_survey, path)
    before = await count(user_id=user_id, memory_types=["message"])
    done, waiting = 0, 0
    problems: Counter[str] = Counter()
    for source in survey.sources:
        chats = read_chats(source)
        while (chat := await asyncio.to_thread(next, chats, None)) is not None:
            metadata = _metadata(chat)
            for start in range(0, len(chat.messages), BATCH):
                batch = chat.messages[start : start + BATCH]
                # Made from the content, so that batches stored before an interruption are not embedded again.
                place = (chat.session_id, scope["agent_id"], scope["group_id"], actor)
                receipt = await add(
                    batch,
                    **scope,
                    session_id=chat.session_id,
                    metadata=metadata,
                    idempotency_key=sha256(repr((place, metadata, batch)).encode()).hexdigest(),
                    actor=actor,
                    wait=False,
                )
                waiting += receipt.state is ReceiptState.ACCEPTED
                problems.update(receipt.problems)
                done += len(batch)
                if progress is not None:
                    progress(done, survey.messages)
    after = await count(user_id=user_id, memory_types=["message"])
    notes = _with_counts(problems)
    if waiting:
        notes.append(f"{waiting:,} parts wait for the language model: `jiyi jobs list`, `jiyi worker`")
    return survey.report(new=after - before, notes=notes)


async def import_foreign(
    path: Path, shape: Shape, add: Add, user_id: str | None, default_user: str, actor: str, advance: Advance
) -> MemoryImport:
    """Add the memories of another system, batch by batch."""
    total = await asyncio.to_thread(_check, path, shape)
    done = new = 0
    problems: Counter[str] = Counter()
    batches = _batches(path, shape)
    while (batch := await asyncio.to_thread(next, batches, None)) is not None:
        first = batch[0]
        receipt = await add(
            [found.memory for found in batch],
            user_id=user_id or first.user_id or default_user,
            agent_id=first.agent_id,
            session_id=first.session_id,
            actor=actor,
        )
        new += receipt.created
        problems.update(receipt.problems)
        done += len(batch)
        advance("importing", done, total)
    return MemoryImport(shape=shape, read={"memory": total}, new={"memory": new}, notes=tuple(_with_counts(problems)))


def _with_counts(problems: Counter[str]) -> list[str]:
    return [f"{problem} ({times:,} times)" if times > 1 else problem for problem, times in problems.items()]


def _metadata(chat: Chat) -> dict[str, JsonValue]:
    source: dict[str, JsonValue] = {"imported_from": chat.source}
    return {**source, "title": chat.title} if chat.title else source


@dataclass(slots=True)
class _Survey:
    """Totals of the files, found by reading all of them once."""

    sources: list[Source] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    messages: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    timeless: int = 0
    mended: int = 0
    skipped: list[str] = field(default_factory=list)

    def take(self, chat: Chat) -> None:
        self.left_out.update(chat.left_out)
        if chat.messages:
            self.sessions.add(chat.session_id)
        self.messages += len(chat.messages)
        self.timeless += sum(message.sent_at is None for message in chat.messages)
        self.mended += chat.mended

    def report(self, *, new: int, notes: Sequence[str]) -> ImportReport:
        notes = [*self.skipped, *notes]
        if self.timeless:
            notes.append(f"{self.timeless:,} messages carry no time: they count as said when they were imported")
        if self.mended:
            notes.append(f"{self.mended:,} messages had characters that cannot be stored: each is a \ufffd now")
        return ImportReport(
            files=len(self.sources),
            conversations=len(self.sessions),
            messages=self.messages,
            new=new,
            left_out=dict(self.left_out),
            notes=tuple(notes),
        )


def _survey(path: Path) -> _Survey:
    """Read everything, so that a mistake is found before anything is stored. Among several files, one without chats is
    skipped: exports contain a few of those."""
    found = _Survey()
    sources = find_sources(path)
    for source in sources:
        try:
            for chat in read_chats(source):
                found.take(chat)
        except UnknownShape as error:
            if len(sources) == 1:
                raise
            found.skipped.append(f"passed over: {error.argument} {error.problem}")
            continue
        found.sources.append(source)
    if not found.sources:
        raise InvalidInput(str(path), "holds no chats of a known shape (docs/import.md)")
    return found


def _check(path: Path, shape: Shape) -> int:
    """Read everything, so that a mistake is found before anything is stored. Returns the number of memories."""
    count = 0
    for found in read_found(path, shape):
        try:
            accept(found.memory)
            for name, value in zip(("user_id", "agent_id", "session_id"), found.scope, strict=True):
                validation.optional_name(name, value)
        except InvalidInput as error:
            raise InvalidInput(found.place, str(error).removeprefix("what.")) from None
        count += 1
    if not count:
        raise InvalidInput(str(path), "holds no memories")
    return count


def _batches(path: Path, shape: Shape) -> Iterator[list[Found]]:
    """Memories of the same user, agent and session, a batch at a time."""
    for _, together in groupby(read_found(path, shape), key=lambda found: found.scope):
        batch: list[Found] = []
        for found in together:
            batch.append(found)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def _quiet(what: str, done: int, whole: int) -> None:
    """Ignore progress."""
