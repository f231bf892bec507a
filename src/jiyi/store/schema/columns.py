"""Column types, and the base of the tables."""

from datetime import datetime
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Dialect, LargeBinary, MetaData, String, Table
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from ...models import from_micros, to_micros


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


class HalfVector(TypeDecorator[NDArray[Any]]):
    """A vector, kept as the bytes of float16 and computed with as float32. Of a vector of length one, similarities
    change by less than 0.001."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: NDArray[Any] | None, dialect: Dialect) -> bytes | None:
        return None if value is None else np.ascontiguousarray(value, dtype=HALF).tobytes()

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> NDArray[Any] | None:
        return None if value is None else np.frombuffer(value, dtype=HALF).astype(VECTOR)


class Halfvec(UserDefinedType[NDArray[Any]]):
    """pgvector's `halfvec`, of any dimension or of one. The connection hands it over as the bytes that a file has: see
    `to_wire`."""

    cache_ok = True
    render_bind_cast = True

    def __init__(self, dimension: int | None = None) -> None:
        self.dimension = dimension

    def get_col_spec(self, **_: Any) -> str:
        return "HALFVEC" if self.dimension is None else f"HALFVEC({self.dimension})"

    def bind_processor(self, dialect: Dialect) -> Any:
        return lambda value: None if value is None else np.ascontiguousarray(value, dtype=HALF).tobytes()

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        return lambda value: None if value is None else np.frombuffer(value, dtype=HALF).astype(VECTOR)


def to_wire(vector: bytes) -> bytes:
    """Return pgvector's binary form: the dimension, two unused bytes, and the numbers with their high byte first."""
    numbers = np.frombuffer(vector, HALF)
    return len(numbers).to_bytes(2, "big") + b"\x00\x00" + numbers.astype(">f2").tobytes()


def from_wire(value: bytes) -> bytes:
    return np.frombuffer(value, ">f2", offset=4).astype(HALF).tobytes()


def vector() -> TypeEngine[NDArray[Any]]:
    """A vector of float16: bytes in a file, pgvector's type in PostgreSQL."""
    return HalfVector().with_variant(Halfvec(), "postgresql")


def short_text(length: int) -> TypeEngine[str]:
    """A short text that is compared and sorted byte by byte, as SQLite and Python do, whatever the database's
    language."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


VECTOR = "<f4"  # as it is computed with and exported
HALF = "<f2"  # as it is stored
HASHES = "<i8"
COUNTS = "<u2"
WEIGHTS = "<f4"


class Base(DeclarativeBase):
    """The base of the tables. Reads select columns, or all of `__table__`, and return rows: no object is changed and
    flushed, and none is in the way of a later read."""

    __table__: ClassVar[Table]

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


METADATA = Base.metadata
