"""The store: repositories over one SQL database. Every call names its user; none can reach another user's rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .additions import Additions
    from .changes import Changes
    from .checks import Checks
    from .contract import StoreInfo
    from .database import Database
    from .deletions import Deletions
    from .edits import Edits, History
    from .entries import IndexEntries
    from .erasures import Erasures
    from .files import Files
    from .index_rows import IndexRows
    from .jobs import Jobs
    from .keys import Keys
    from .maintenance import Maintenance
    from .memories import Memories
    from .messages import Messages
    from .overview import Overviews
    from .projected import ProjectedMemories
    from .projections import Projections
    from .record_io import Records
    from .relations import Relations
    from .secrets import Secrets
    from .synonyms import Synonyms
    from .units import Units
    from .usage import LlmUsage, Recalls, Statistics

# Modules of repositories that are not in the module of their own name.
MODULES = {
    "history": "edits",
    "llm_usage": "usage",
    "overviews": "overview",
    "recalls": "usage",
    "records": "record_io",
    "statistics": "usage",
}


class Store:
    """All repositories of one database. Each is loaded when it is first used: a search needs a third of them."""

    additions: Additions
    changes: Changes
    checks: Checks
    deletions: Deletions
    edits: Edits
    entries: IndexEntries
    erasures: Erasures
    files: Files
    history: History
    index_rows: IndexRows
    jobs: Jobs
    keys: Keys
    llm_usage: LlmUsage
    maintenance: Maintenance
    memories: Memories
    messages: Messages
    projected: ProjectedMemories
    projections: Projections
    overviews: Overviews
    recalls: Recalls
    records: Records
    relations: Relations
    secrets: Secrets
    statistics: Statistics
    synonyms: Synonyms
    units: Units

    def __init__(self, database: Database) -> None:
        self.database = database

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            kind = Store.__annotations__.get(name)
            if kind is None:
                raise AttributeError(f"the store has no {name}", name=name, obj=self)
            module = import_module(f".{MODULES.get(name, name)}", __package__)
            repository = getattr(module, kind)(self.database)
            setattr(self, name, repository)
            return repository

    async def start(self) -> None:
        """Connect, and create or migrate the schema."""
        await self.database.start()

    async def close(self) -> None:
        """Wait for running transactions and disconnect."""
        await self.database.close()

    async def info(self) -> StoreInfo:
        return await self.database.info()
