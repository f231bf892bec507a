"""The workspace: memories as Markdown files that people edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import validation
from ..engine import Engine
from ..errors import WorkspaceError

if TYPE_CHECKING:
    from ..files.steps import Drift, SyncReport, WorkspaceStatus
    from ..files.workspace_files import WorkspaceFiles


class Workspace:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def sync(
        self, *, user_id: str | None = None, dry_run: bool = False, confirm: bool = False, restore: bool = False
    ) -> Sequence[SyncReport]:
        """Bring files and memories into agreement, for one user or for all that have any.

        `dry_run` changes nothing and reports what would be done. When more than a fifth of the lines is gone at once,
        nothing is archived: `confirm` archives them, `restore` writes the lines again.

            [done] = await memory.workspace.sync(user_id="mei")
        """
        return [
            await self.files.sync(user, confirm=confirm, restore=restore, dry_run=dry_run)
            for user in await self._users(user_id)
        ]

    async def status(self, *, user_id: str | None = None) -> Sequence[WorkspaceStatus]:
        """Report the state of the files: lines, unreadable files, and what a sync would do now."""
        return [await self.files.status(user) for user in await self._users(user_id)]

    async def verify(self, *, user_id: str | None = None, vectors: bool = False) -> Sequence[Drift]:
        """Compare every line with its memory and every memory with its index entry, without changing anything.
        `vectors` embeds every text again to compare, which is slow."""
        users = await self._users(user_id)
        return [drift for user in users for drift in await self.files.verify(user, vectors=vectors)]

    async def rebuild(self, *, user_id: str | None = None, confirm: bool = False) -> Sequence[SyncReport]:
        """Rebuild the memories from the files alone: where they differ, the files win."""
        return [await self.files.rebuild(user, confirm=confirm) for user in await self._users(user_id)]

    async def watch(self, *, report: Callable[[SyncReport], None] | None = None) -> None:
        """Keep files and memories in agreement until cancelled. `report` is called after each sync with changes."""
        from ..files.workspace_files import watch

        await watch(self.files, report)

    @property
    def files(self) -> WorkspaceFiles:
        if self._engine.files is None:
            raise WorkspaceError("there is no workspace: name its folder with Memory.open(workspace=…)")
        return self._engine.files

    async def _users(self, user_id: str | None) -> Sequence[str]:
        return await self.files.users() if user_id is None else [validation.name("user_id", user_id)]
