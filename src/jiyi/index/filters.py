"""A `Filter` as a mask over the columns of a `UserIndex`; `store/filters.py` is the same in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models import to_micros
from ..scope import Filter, Lifetimes

NEVER = np.iinfo(np.int64).max
MICROSECOND = timedelta(microseconds=1)

Columns = Mapping[str, NDArray[Any]]
Codes = Mapping[str, Mapping[str | None, int]]
Mask = NDArray[np.bool_]


def in_scope(columns: Columns, codes: Codes, tagged: Mapping[str, Sequence[int]], where: Filter) -> Mask:
    """Return which slots a filter selects."""
    scope: Mask = columns["alive"] & (columns["expires_at"] > to_micros(where.now))
    for mortal, lifetime in with_lifetime(columns, codes, where.lifetimes):
        scope &= ~mortal | (columns["created_at"] > to_micros(where.now) - lifetime)
    for name, wanted in (
        ("session_id", where.session_id and (where.session_id,)),
        ("agent_id", where.agent_id and (where.agent_id,)),
        ("group_id", where.group_id and (where.group_id,)),
        ("memory_type", where.memory_types),
        ("layer", where.layers),
    ):
        if wanted is not None:
            scope &= np.isin(columns[name], [codes[name].get(value, -1) for value in wanted])
    if where.min_trust:
        scope &= columns["trust"] >= where.min_trust
    if where.tags is not None:
        with_tag = np.zeros(len(scope), np.bool_)
        for tag in where.tags:
            with_tag[tagged.get(tag, [])] = True
        scope &= with_tag
    if where.occurred_from is not None:
        scope &= columns["occurred_at"] >= to_micros(where.occurred_from)
    if where.occurred_to is not None:
        scope &= columns["occurred_at"] < to_micros(where.occurred_to)
    if where.as_of is not None:
        scope &= columns["valid_from"] <= to_micros(where.as_of)
    scope &= columns["valid_to"] > to_micros(where.as_of or where.now)
    return scope


def with_lifetime(columns: Columns, codes: Codes, lifetimes: Lifetimes) -> Iterator[tuple[Mask, int]]:
    """Yield the slots of each type with a lifetime that have no end of their own, and the lifetime in microseconds."""
    for name, lifetime in lifetimes:
        of_type = columns["memory_type"] == codes["memory_type"].get(name, -1)
        yield columns["alive"] & of_type & (columns["expires_at"] == NEVER), lifetime // MICROSECOND
