"""Statements in one transaction of a database."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy import Executable, Row, Table
from sqlalchemy.sql.selectable import TypedReturnsRows

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Read = tuple[Any, dict[str, Any]]  # a statement and its values
Rows = list[Sequence[Any]]
Values = dict[str, Any]
Processor = Callable[[Any], Any]  # makes a value from what the driver returns


class Session(ABC):
    """Runs statements. All rows have been read when a method returns."""

    @abstractmethod
    async def rows(self, statement: TypedReturnsRows[*Ts]) -> Sequence[Row[*Ts]]: ...

    @abstractmethod
    async def execute(self, statement: Executable, values: Values | Sequence[Values] | None = None) -> int:
        """Run a statement that changes rows, and return their number."""

    @abstractmethod
    async def select(self, *reads: Read) -> list[Rows]:
        """Run statements that are built once and only read. Faster than `rows` where there is a faster way."""

    @abstractmethod
    async def insert(self, table: Table, rows: Sequence[Values]) -> None:
        """Insert rows, which all have the columns of the first one."""

    async def first(self, statement: TypedReturnsRows[*Ts]) -> Row[*Ts] | None:
        found = await self.rows(statement)
        return found[0] if found else None

    async def scalars(self, statement: TypedReturnsRows[T]) -> list[T]:
        """Return the values of a statement with one column."""
        return [value for (value,) in await self.rows(statement)]

    async def scalar(self, statement: TypedReturnsRows[T]) -> T | None:
        """Return the value of the first row, if there is one."""
        found = await self.scalars(statement)
        return found[0] if found else None


def processors_of(statement: Any, of: Callable[[Any], Processor | None]) -> list[tuple[int, Processor]]:
    """Return which columns of a statement have values that the driver does not return as they are."""
    return [
        (at, processor)
        for at, column in enumerate(statement.selected_columns)
        if (processor := of(column.type)) is not None
    ]


def processed(row: Sequence[Any], processors: Sequence[tuple[int, Processor]]) -> Sequence[Any]:
    values = list(row)
    for at, processor in processors:
        if (value := values[at]) is not None:
            values[at] = processor(value)
    return values
