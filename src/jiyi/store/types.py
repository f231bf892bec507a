"""Column types: how Python values look in the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Dialect, LargeBinary
from sqlalchemy.types import TypeDecorator

from ..models import from_micros, to_micros


class Instant(TypeDecorator[datetime]):
    """An aware datetime, kept as microseconds since 1970 so that it sorts, compares and loads into numpy as it is."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else to_micros(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else from_micros(value)


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


VECTOR = "<f4"
HASHES = "<i8"
COUNTS = "<u2"
WEIGHTS = "<f4"
