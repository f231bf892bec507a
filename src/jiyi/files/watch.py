"""Following a workspace: edits of files as they happen, and memories that other processes write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from ..errors import JiyiError, MissingExtra
from .keeper import Files
from .layout import Workspace
from .values import SyncReport

TOGETHER_MS = 200  # edits that come within this time are one sync, however many files and lines
LOOK_EVERY_MS = 500  # at what other processes have written
AGAIN_S = 2.0  # after a failure, or while the folder is away

Report = Callable[[SyncReport], None]

logger = logging.getLogger(__name__)


async def watch(files: Files, report: Report | None) -> None:
    """Until it is cancelled. A folder that goes away is waited for."""
    try:
        import watchfiles
    except ImportError as error:
        raise MissingExtra("files", "watchfiles") from error
    store = files.filing.store
    seen, _ = await store.changes.users_since(0)
    while True:
        try:
            begun = False
            async for changes in watchfiles.awatch(
                files.workspace.root,
                watch_filter=lambda _, path: _is_note(files.workspace, path),
                debounce=TOGETHER_MS,
                rust_timeout=LOOK_EVERY_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                seen, changed = await store.changes.users_since(seen)
                edited = {files.workspace.owner(Path(path)) for _, path in changes}
                users = sorted({user for user in edited if user} | set(changed)) if begun else await files.users()
                begun = True  # all that was there has been looked at only now, when nothing new is missed any more
                for user_id in users:
                    if files.workspace.covers(user_id):
                        await _sync(files, user_id, report)
        except (JiyiError, OSError) as error:
            logger.warning("watching goes on in %.0f s: %s", AGAIN_S, error)
        await asyncio.sleep(AGAIN_S)


async def _sync(files: Files, user_id: str, report: Report | None) -> None:
    done = await files.sync(user_id)
    if report is not None and (done.steps or done.conflicts or done.problems):
        report(done)


def _is_note(workspace: Workspace, path: str) -> bool:
    return workspace.owner(Path(path)) is not None
