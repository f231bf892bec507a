"""Sessions of PostgreSQL."""

from collections.abc import Sequence
from typing import TypeVarTuple

from sqlalchemy import Executable, Row, Table, insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.selectable import TypedReturnsRows

from .session import Read, Rows, Session, Values

Ts = TypeVarTuple("Ts")


class PostgresSession(Session):
    """A session of one connection."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def rows(self, statement: TypedReturnsRows[*Ts]) -> Sequence[Row[*Ts]]:
        return (await self._connection.execute(statement)).all()

    async def execute(self, statement: Executable, values: Values | Sequence[Values] | None = None) -> int:
        return (await self._connection.execute(statement, values)).rowcount

    async def select(self, *reads: Read) -> list[Rows]:
        return [list((await self._connection.execute(statement, values)).all()) for statement, values in reads]

    async def insert(self, table: Table, rows: Sequence[Values]) -> None:
        await self._connection.execute(insert(table), rows)
