"""Column types, and the base of the tables."""

from datetime import datetime
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import JSON, BigInteger, Column, ColumnClause, Dialect, FromClause, LargeBinary, MetaData, String, Table
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from ..models import from_micros, to_micros


class Instant(TypeDecorator[datetime]):
    """An aware datetime, kept as microseconds since 1970 so that it sorts, compares and loads into numpy as it is."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else to_micros(value)

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        # Every hit has seven of them; `process_result_value` would be called through two more functions.
        return lambda value: None if value is None else from_micros(value)


class Array(TypeDecorator[NDArray[Any]]):
    """A one-dimensional numpy array of one fixed dtype, kept as its little-endian bytes."""

    impl = LargeBinary
    cache_ok = True

    def __init__(self, dtype: str) -> None:
        super().__init__()
        self.dtype = dtype

    def process_bind_param(self, value: NDArray[Any] | None, dialect: Dialect) -> bytes | None:
        return None if value is None else np.ascontiguousarray(value, dtype=self.dtype).tobytes()

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> NDArray[Any] | None:
        return None if value is None else np.frombuffer(value, dtype=self.dtype)


class Pgvector(UserDefinedType[NDArray[Any]]):
    """PostgreSQL's `vector`, of any dimension or of one. The connection hands it over as float32 bytes, as they are
    in a file: see `postgres.py`."""

    cache_ok = True
    render_bind_cast = True

    def __init__(self, dimension: int | None = None) -> None:
        self.dimension = dimension

    def get_col_spec(self, **_: Any) -> str:
        return "VECTOR" if self.dimension is None else f"VECTOR({self.dimension})"

    def bind_processor(self, dialect: Dialect) -> Any:
        return lambda value: None if value is None else np.ascontiguousarray(value, dtype=VECTOR).tobytes()

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        return lambda value: None if value is None else np.frombuffer(value, dtype=VECTOR)


def vector() -> TypeEngine[NDArray[Any]]:
    """A vector of float32: bytes in a file, pgvector's type in PostgreSQL."""
    return Array(VECTOR).with_variant(Pgvector(), "postgresql")


class JsonRows(FunctionElement[list[list[Any]] | None]):
    """All rows of a subquery as one JSON value: they come with the row they belong to, in one statement."""

    name = "json_rows"
    type = JSON()
    inherit_cache = True


@compiles(JsonRows)
def _group_array(element: JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_array(json_array({compiler.process(element.clauses, **options)}))"


@compiles(JsonRows, "postgresql")
def _json_agg(element: JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_agg(json_build_array({compiler.process(element.clauses, **options)}))"


def short_text(length: int) -> TypeEngine[str]:
    """A short text that is compared and sorted byte by byte, as SQLite and Python do, whatever the database's
    language."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


VECTOR = "<f4"
HASHES = "<i8"
COUNTS = "<u2"
WEIGHTS = "<f4"

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


class Base:
    """A table whose columns are attributes, so that statements are checked by type. SQLAlchemy's declarative classes do
    the same, but they import its ORM, which takes a sixth of the start of a command."""

    __tablename__: ClassVar[str]
    __table_args__: ClassVar[tuple[Any, ...]] = ()
    __table__: ClassVar[Table]

    def __init_subclass__(cls) -> None:
        columns = {name: value for name, value in vars(cls).items() if isinstance(value, Column)}
        for name, column in columns.items():
            column.name = column.key = name
        options = {name: value for one in cls.__table_args__ if isinstance(one, dict) for name, value in one.items()}
        others = [one for one in cls.__table_args__ if not isinstance(one, dict)]
        cls.__table__ = Table(cls.__tablename__, METADATA, *columns.values(), *others, **options)

    @classmethod
    def __clause_element__(cls) -> Table:
        """Let the class stand for its table in statements."""
        return cls.__table__


B = TypeVar("B", bound=Base)


def key(kind: Any) -> ColumnClause[Any]:
    """A column of the primary key."""
    return Column(kind, primary_key=True, nullable=False)


def required(kind: Any, **options: Any) -> ColumnClause[Any]:
    return Column(kind, nullable=False, **options)


def optional(kind: Any) -> ColumnClause[Any]:
    return Column(kind, nullable=True)


class _Alias:
    """A table under another name, with its columns as attributes."""

    def __init__(self, table: Table) -> None:
        self._alias = table.alias()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._alias.c, name)

    def __clause_element__(self) -> FromClause:
        return self._alias


def aliased(table: type[B]) -> type[B]:
    """Return a table under another name, to join it with itself."""
    return cast(type[B], _Alias(table.__table__))
