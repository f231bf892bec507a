"""The verbs about files that people edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import validation
from ..errors import WorkspaceError
from ..files.values import Drift, SyncReport, WorkspaceStatus
from .parts import Parts

if TYPE_CHECKING:
    from ..files.keeper import Files


class Workspaces(Parts):
    async def sync_workspace(
        self, *, user_id: str | None = None, dry_run: bool = False, confirm: bool = False, restore: bool = False
    ) -> Sequence[SyncReport]:
        """Bring the files of the workspace and the memories to agree, for one user or for all that have any.

        `dry_run` changes nothing and tells what would be done. When more than a fifth of the lines is gone at once,
        nothing is archived: `confirm` says that it is meant so, `restore` writes the lines anew.

            [done] = await memory.sync_workspace(user_id="mei")
        """
        files = self._workspace()
        users = await files.users() if user_id is None else [validation.name("user_id", user_id)]
        return [await files.sync(user, confirm=confirm, restore=restore, dry_run=dry_run) for user in users]

    async def workspace_status(self, *, user_id: str | None = None) -> Sequence[WorkspaceStatus]:
        """How the files stand: what is in them, what cannot be read, and what a sync would do now."""
        files = self._workspace()
        users = await files.users() if user_id is None else [validation.name("user_id", user_id)]
        return [await files.status(user) for user in users]

    async def verify_workspace(self, *, user_id: str | None = None, vectors: bool = False) -> Sequence[Drift]:
        """Compare every line with its memory, and every memory with what it is found by; nothing is changed.
        `vectors`: embed every text again to compare that too, which takes its time."""
        files = self._workspace()
        users = await files.users() if user_id is None else [validation.name("user_id", user_id)]
        return [drift for user in users for drift in await files.verify(user, vectors=vectors)]

    async def rebuild_workspace(self, *, user_id: str | None = None, confirm: bool = False) -> Sequence[SyncReport]:
        """Work the index out anew, from the files alone: where they differ, the files are right."""
        files = self._workspace()
        users = await files.users() if user_id is None else [validation.name("user_id", user_id)]
        return [await files.rebuild(user, confirm=confirm) for user in users]

    async def watch_workspace(self, *, report: Callable[[SyncReport], None] | None = None) -> None:
        """Keep files and memories in agreement until cancelled: whoever edits a file or writes a memory, in whatever
        process. `report` is called after each sync that did something."""
        from ..files.watch import watch

        await watch(self._workspace(), report)

    def _workspace(self) -> Files:
        if self._files is None:
            raise WorkspaceError("there is no workspace: name its folder with Memory.open(workspace=…)")
        return self._files
