"""Moving house: everything of a store, copied into another one, of the same kind or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..models import Migration

if TYPE_CHECKING:
    from ..settings import Settings

Progress = Callable[[str, int, int], None]


async def migrate_store(
    source: str | Path, target: str | Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> Migration:
    """Copy every row of every user into an empty store, and compare the two.

    It can be stopped at any point, and goes on from there when it is called again with the same two places. Nobody
    should write to either store meanwhile; if somebody does, the comparison says so.

        await migrate_store("memory.db", "postgresql://localhost/jiyi")
    """
    from ..settings import load_settings
    from ..store import open_store
    from ..store.moving import migrate

    settings = settings or load_settings()
    old, new = open_store(source, settings), open_store(target, settings)
    if isinstance(source, Path) or "://" not in source:
        _exists(Path(source))
    try:
        await old.start()
        await new.start()
        if (await old.info()).url == (await new.info()).url:
            raise InvalidInput("target", "is the source")
        return await migrate(old, new, progress or _quietly)
    finally:
        await old.close()
        await new.close()


def _exists(path: Path) -> None:
    """Opening a store makes one where there is none, and a misspelt source would be an empty one."""
    if not path.expanduser().is_file():
        raise InvalidInput("source", f"{path} is no file")


def _quietly(what: str, done: int, whole: int) -> None:
    """Progress that nobody looks at."""
