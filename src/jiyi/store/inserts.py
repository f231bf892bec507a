"""Bulk inserts: rows are collected per table and written with one statement per table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncSession

from ..models import utc_now
from .tables import Base, ChangeRow

Values = dict[str, Any]
T = TypeVar("T")


def chunks(values: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Split a sequence into parts that fit into one IN list."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


class Inserts:
    """Rows to insert. Rows of one table must have the same columns."""

    def __init__(self) -> None:
        self._rows: defaultdict[str, list[Values]] = defaultdict(list)

    def add(self, table: type[Base], rows: Iterable[Values]) -> None:
        self._rows[table.__tablename__].extend(rows)

    def add_tables(self, rows: dict[str, list[Values]]) -> None:
        """Add rows by table name."""
        for name, values in rows.items():
            self._rows[name].extend(values)

    def tell(self, user_id: str, memory_ids: Sequence[str], action: str, at: datetime | None = None) -> None:
        """Add changes to the change feed."""
        at = at or utc_now()
        self.add(
            ChangeRow,
            (
                {"user_id": user_id, "memory_id": memory_id, "action": action, "changed_at": at}
                for memory_id in memory_ids
            ),
        )

    async def run(self, session: AsyncSession) -> None:
        """Insert everything, referenced tables first."""
        for table in Base.metadata.sorted_tables:
            rows = self._rows.pop(table.name, None)
            if rows:
                await session.execute(insert(table), rows)
