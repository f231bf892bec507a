"""The verbs that carry memories out of a store and into it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

from .. import validation
from ..errors import InvalidInput
from ..keep.values import Backup, Exported, MemoryImport
from ..transfer.memories.found import Found
from ..transfer.memories.shapes import KNOWN, Shape, read_found, shape_of
from ..write.accept import accept
from .importing import Importing

FORMATS = ("jsonl", "markdown")
AT_ONCE = 200  # candidates in one `add`; up to this many are compared with what is there

Advance = Callable[[str, int, int], None]


class Carrying(Importing):
    async def export(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        format: str = "jsonl",  # noqa: A002 - the word that people look for
        overwrite: bool = False,
        progress: Advance | None = None,
    ) -> Exported:
        """Write all memories into a file; of one user, or of all.

        As `jsonl`, nothing is lost: memories with their history, relations, sources, keywords and vectors, messages,
        synonyms, recalls and jobs, as they are at one moment. The same memories are the same bytes, whatever the
        database. As `markdown`, it is what a person wants to read. `import_memories` takes in both.

            await memory.export("mei.jsonl", user_id="mei")
        """
        from ..transfer.atomic_file import free
        from ..transfer.export import export_lines
        from ..transfer.export_markdown import export_markdown

        validation.optional_name("user_id", user_id)
        write = export_lines if validation.choice("format", format, FORMATS) == "jsonl" else export_markdown
        where = free("path", Path(path), overwrite=overwrite)
        await self._accesses.flush()
        counted = await write(self._store, where, user_id, progress or _quietly)
        return Exported(path=str(where), format=format, records=counted, size_bytes=where.stat().st_size)

    async def backup(self, path: str | Path, *, overwrite: bool = False, progress: Advance | None = None) -> Backup:
        """Write everything of all users into one file, as it is at one moment, while others go on writing.

        It holds all that was acknowledged before it began. The file is a store of its own, whatever the database it
        was made from; `restore_backup` puts it in place of another.

            await memory.backup("memory-2026-05-07.db")
        """
        from ..transfer.atomic_file import free
        from ..transfer.backup import back_up

        where = free("path", Path(path), overwrite=overwrite)
        await self._accesses.flush()
        return await back_up(self._store, where, progress or _quietly)

    async def import_memories(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        progress: Advance | None = None,
        actor: str = "import",
    ) -> MemoryImport:
        """Take in memories: an export of Jiyi, what mem0's `get_all` returned (as JSON), the `memory.jsonl` of MCP's
        reference memory server, or a folder of Markdown notes.

        Everything is read and checked before anything is stored. What is known already is not stored twice, so it
        can be interrupted and started again. With `user_id`, nothing is written for anybody else: of an export of
        Jiyi only that user's part is taken, and what another system kept becomes that user's.

            report = await memory.import_memories("mei.jsonl")
        """
        validation.optional_name("user_id", user_id)
        validation.name("actor", actor)
        where = Path(path)
        shape = await asyncio.to_thread(shape_of, where)
        if shape == "chats":
            raise InvalidInput(str(path), KNOWN)
        if shape == "jiyi":
            return await self._import_export(where, user_id, progress or _quietly)
        return await self._import_foreign(where, shape, user_id, actor, progress or _quietly)

    async def _import_export(self, path: Path, user_id: str | None, advance: Advance) -> MemoryImport:
        from ..transfer.export import import_lines

        taken = await import_lines(self._store, path, user_id, self._rules, advance)
        notes = [f"left out: {number:,} × {why}" for why, number in sorted(taken.left_out.items())]
        return MemoryImport(shape="jiyi", read=dict(taken.read), new=dict(taken.new), notes=tuple(notes))

    async def _import_foreign(
        self, path: Path, shape: Shape, user_id: str | None, actor: str, advance: Advance
    ) -> MemoryImport:
        whole = await asyncio.to_thread(_check, path, shape)
        done = new = 0
        problems: Counter[str] = Counter()
        batches = _batches(path, shape)
        while (some := await asyncio.to_thread(next, batches, None)) is not None:
            receipt = await self.add(
                [found.memory for found in some],
                user_id=user_id or some[0].user_id or self.settings.user,
                agent_id=some[0].agent_id,
                session_id=some[0].session_id,
                actor=actor,
            )
            new += receipt.created
            problems.update(receipt.problems)
            done += len(some)
            advance("importing", done, whole)
        notes = [f"{problem} ({times:,} times)" if times > 1 else problem for problem, times in problems.items()]
        return MemoryImport(shape=shape, read={"memory": whole}, new={"memory": new}, notes=tuple(notes))


def _check(path: Path, shape: Shape) -> int:
    """Read all of it, so that a mistake is found before anything is stored. → how many memories there are"""
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
    """Memories that belong to the same user, agent and session, some at a time."""
    for _, together in groupby(read_found(path, shape), key=lambda found: found.scope):
        some: list[Found] = []
        for found in together:
            some.append(found)
            if len(some) == AT_ONCE:
                yield some
                some = []
        if some:
            yield some


def _quietly(what: str, done: int, whole: int) -> None:
    """Progress that nobody looks at."""
