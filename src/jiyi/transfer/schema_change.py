"""Migrate the schema of a store, and copy a whole store into another database."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..models import Migration
from ..settings import Settings
from .export import Progress, no_progress

if TYPE_CHECKING:
    from ..store.schema.migrate import SchemaPlan


async def plan_schema(where: str | Path | None, to: str | None, settings: Settings) -> SchemaPlan:
    """Return the migrations between the schema of a store and a revision, by default the one of this version. Nothing
    is changed."""
    from ..store import open_store
    from ..store.schema.migrate import plan

    return await open_store(where or settings.url, settings).database.on_schema(partial(plan, to=to), changes=False)


async def migrate_schema(where: str | Path | None, plan: SchemaPlan, settings: Settings) -> None:
    """Carry out a plan in one transaction. Other processes wait, and stop writing if the schema is not theirs."""
    from ..store import open_store
    from ..store.schema.migrate import migrate

    await open_store(where or settings.url, settings).database.on_schema(partial(migrate, wanted=plan), changes=True)


async def migrate_store(
    source: str | Path, target: str | Path, *, settings: Settings | None = None, progress: Progress | None = None
) -> Migration:
    """Copy every row of every user into an empty store, and compare the two.

    It can be interrupted at any point and resumes when it is called again with the same two stores. Nobody should
    write to either store meanwhile; if somebody does, the comparison fails.

        await migrate_store("memory.db", "postgresql://localhost/jiyi")
    """
    from ..settings import load_settings
    from ..store import open_store
    from ..store.upkeep.row_copies import migrate

    settings = settings or load_settings()
    old, new = open_store(source, settings), open_store(target, settings)
    if isinstance(source, Path) or "://" not in source:
        _check_exists(Path(source))
    try:
        await old.start()
        await new.start()
        if (await old.info()).url == (await new.info()).url:
            raise InvalidInput("target", "is the source")
        return await migrate(old.database, new.database, progress or no_progress)
    finally:
        await old.close()
        await new.close()


def _check_exists(path: Path) -> None:
    """Opening a store creates it: a misspelt source would be an empty one."""
    if not path.expanduser().is_file():
        raise InvalidInput("source", f"{path} is not a file")
