"""Transfer: export, backup, and imports of chats and memories."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import validation
from ..engine import Engine
from ..errors import InvalidInput
from ..models import ImportReport
from ..transfer.export import ExportReport, no_progress
from ..transfer.export import Progress as Advance

if TYPE_CHECKING:
    from ..transfer.backup import BackupReport
    from ..transfer.imports import Add, Count, MemoryImportReport

FORMATS = ("jsonl", "markdown")

Progress = Callable[[int, int], None]


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
    ) -> ExportReport:
        """Write all memories of one user, or of all, to a file.

        `jsonl` is complete: memories with history, relations, sources, keywords and vectors, messages, synonyms,
        recalls and jobs, as of one moment. The same memories give the same bytes, whatever the database. `markdown` is
        for reading. `import_memories` takes both.

            await memory.transfer.export("mei.jsonl", user_id="mei")
        """
        from ..transfer.export import check_target, export_jsonl, export_markdown

        validation.optional_name("user_id", user_id)
        write = export_jsonl if validation.choice("format", format, FORMATS) == "jsonl" else export_markdown
        target = check_target("path", Path(path), overwrite=overwrite)
        await self._engine.accesses.flush()
        counted = await write(self._engine.store, target, user_id, progress or no_progress)
        return ExportReport(path=str(target), format=format, records=counted, size_bytes=target.stat().st_size)

    async def backup(
        self, path: str | Path, *, overwrite: bool = False, progress: Advance | None = None
    ) -> BackupReport:
        """Write everything of all users to one file, as of one moment, while others continue to write.

        It contains all that was acknowledged before it began. The file is a store of its own, whatever the database;
        `restore_backup` puts it in place of another.

            await memory.transfer.backup("memory-2026-05-07.db")
        """
        from ..transfer.backup import back_up
        from ..transfer.export import check_target

        target = check_target("path", Path(path), overwrite=overwrite)
        await self._engine.accesses.flush()
        return await back_up(self._engine.store, target, progress or no_progress)

    async def import_chats(
        self,
        path: str | Path,
        *,
        user_id: str,
        agent_id: str | None = None,
        group_id: str | None = None,
        epoch: str | None = None,
        progress: Progress | None = None,
        actor: str = "import",
        user_names: Sequence[str] | None = None,
    ) -> ImportReport:
        """Import past chats with their original times: exports of ChatGPT and Claude (also the zip as downloaded),
        and OpenAI-style messages in JSON or JSONL; a file, or a folder of them.

        Everything is read and checked before anything is stored. Known messages are not stored twice, so an import can
        be interrupted and started again. If the user is deleted meanwhile, or since the `epoch`, it ends with
        `UserErased`. `user_names` are names of the user in the messages, as in `Memory.add`.

            report = await memory.transfer.import_chats("conversations.json", user_id="mei")
        """
        from ..transfer.imports import import_chats

        return await import_chats(
            Path(path),
            self._add,
            self._count,
            user_id=user_id,
            agent_id=agent_id,
            group_id=group_id,
            epoch=await self._engine.epoch(user_id) if epoch is None else epoch,
            progress=progress,
            actor=actor,
            user_names=user_names,
        )

    async def import_memories(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        epoch: str | None = None,
        progress: Advance | None = None,
        actor: str = "import",
    ) -> MemoryImportReport:
        """Import memories: an export of Jiyi, mem0's `get_all` (as JSON), the `memory.jsonl` of MCP's reference memory
        server, a folder of Markdown notes, or the documents at a `mongodb://` address.

        Everything is read and checked before anything is stored. Known memories are not stored twice, so an import can
        be interrupted and started again. With `user_id`, nothing is written for anybody else: of an export of Jiyi only
        that user's part is taken, and memories of another system become that user's. If a user is deleted meanwhile, or
        since the `epoch` of `user_id`, it ends with `UserErased`.

            report = await memory.transfer.import_memories("mei.jsonl")
        """
        validation.optional_name("user_id", user_id)
        validation.name("actor", actor)
        epoch_of = await self._epochs(user_id, epoch)
        if str(path).startswith(("mongodb://", "mongodb+srv://")):
            from ..engines.mongodb import fetch

            with tempfile.TemporaryDirectory(prefix="jiyi-import-") as folder:
                fetched = Path(folder) / "mongodb.jsonl"
                if not await fetch(str(path), fetched):
                    raise InvalidInput("path", "this database has none of the known collections (docs/import.md)")
                return await self._import_memories(fetched, user_id, epoch_of, progress or no_progress, actor)
        return await self._import_memories(Path(path), user_id, epoch_of, progress or no_progress, actor)

    async def _import_memories(
        self, path: Path, user_id: str | None, epoch_of: Callable[[str], str], advance: Advance, actor: str
    ) -> MemoryImportReport:
        from ..transfer.imports import import_export, import_memories, is_jiyi_export
        from ..transfer.selection import select

        engine = self._engine
        selected = await asyncio.to_thread(select, path, "memories")
        if is_jiyi_export(selected):
            return await import_export(
                selected, engine.store, engine.rules, user_id=user_id, epoch_of=epoch_of, progress=advance
            )
        return await import_memories(
            selected,
            self._add,
            self._count,
            user_id=user_id,
            default_user=engine.settings.user,
            epoch_of=epoch_of,
            actor=actor,
            progress=advance,
        )

    async def _epochs(self, user_id: str | None, epoch: str | None) -> Callable[[str], str]:
        """Return the erasure epochs of users as they are now; of one user the one that is given."""
        if user_id is not None:
            of_user = await self._engine.epoch(user_id) if epoch is None else epoch
            return lambda _: of_user
        if epoch is not None:
            raise InvalidInput("epoch", "is one user's: name the user_id")
        return (await self._engine.store.erasures.epochs()).of
