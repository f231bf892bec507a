"""The server's statistics of a young PostgreSQL database."""

import logging
from collections.abc import Sequence

from sqlalchemy import Column, Float, MetaData, Table, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from ..migrations import postgres as ddl
from ..schema.tables import MemoryRow

FEW = 50  # memories, from which on it matters how they are read

_classes = Table("pg_class", MetaData(), Column("oid"), Column("reltuples", Float))
_COUNTED = select(_classes.c.reltuples).where(_classes.c.oid == func.to_regclass(MemoryRow.__tablename__))

logger = logging.getLogger(__name__)


class RowCounts:
    """Has the rows counted each time they have doubled; the server does so by itself, but a minute or more later. In a
    table that was never counted it expects one row of each user, so that it compares every row with every other."""

    def __init__(self, tables: Sequence[str]) -> None:
        self._tables = tables
        self._counted = 0  # memories in the statistics
        self._added = 0  # by this process since it has looked at them

    async def add(self, memories: int, engine: AsyncEngine) -> None:
        """Note new memories. A failure to count them only makes reading slower."""
        self._added += memories
        if self._added < max(FEW, self._counted):
            return
        added, self._added = self._added, 0
        try:
            async with engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
                self._counted = int(await connection.scalar(_COUNTED) or 0)
                if added >= self._counted:
                    await connection.run_sync(ddl.analyze, self._tables)
                    self._counted = int(await connection.scalar(_COUNTED) or 0)
        except (DBAPIError, PoolTimeout, TimeoutError, OSError) as error:
            logger.info("rows are not counted: %r", error)
