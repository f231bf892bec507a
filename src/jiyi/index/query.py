"""Queries to the index: the query itself, its filter as a mask, and the candidates it returns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models import to_micros
from ..scope import Filter, Lifetimes

Floats = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Slots = NDArray[np.integer[Any]]
Scope = Slots | slice


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """A query for the legs of the index. The last turn of a dialogue also counts by itself."""

    filter: Filter
    terms: tuple[str, ...] = ()
    last_terms: tuple[str, ...] | None = None  # of a dialogue
    words: tuple[str, ...] = ()  # terms of the last turn without overlaps
    phrases: tuple[tuple[str, ...], ...] = ()  # terms of each quoted phrase
    keywords: tuple[str, ...] = ()
    required: tuple[tuple[str, ...], ...] | None = None  # terms of the keywords: memories without one are not in scope
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by keyword
    vector: NDArray[np.float32] | None = None
    turns: tuple[NDArray[np.float32], ...] = ()  # one vector per turn of a dialogue
    spans: tuple[tuple[datetime, datetime], ...] = ()  # dates that it names
    current: bool = True  # about the present: successors of outdated statements come first
    named: frozenset[str] = frozenset()  # people that it names
    priorities: Mapping[str, float] = field(default_factory=dict)  # by memory type
    ageing: Mapping[str, float] = field(default_factory=dict)  # by memory type: speed of ageing
    model: str  # of the vectors
    recalls: bool = True  # how often and when memories were recalled is wanted
    ids: Sequence[str] | None = None  # that a filter by metadata selects: the index holds no metadata
    seen: int | None = None  # newest change of the user that the search must include, if it was looked up


class ScopedColumn:
    """A column by position among the candidates. Most columns are wanted for a few of them only; copying each for all
    would take longer than a scan of the vectors."""

    def __init__(self, values: NDArray[Any], slots: Scope) -> None:
        self._values = values
        self._slots = slots

    def __len__(self) -> int:
        return len(self._values) if isinstance(self._slots, slice) else len(self._slots)

    def __getitem__(self, places: Any) -> Any:
        return self._values[places if isinstance(self._slots, slice) else self._slots[places]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])


class NamedColumn(ScopedColumn):
    """A column of places in a list of names; a place below 0 has none."""

    def __init__(self, values: NDArray[Any], slots: Scope, names: Sequence[str | None] | NDArray[Any]) -> None:
        super().__init__(values, slots)
        self._all_names = names

    def names(self, places: NDArray[np.intp]) -> list[str | None]:
        return [None if code < 0 else self._all_names[code] for code in self[places].tolist()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Memories in scope with their values in each leg, as parallel arrays in 0..1; cosines may be below 0. A value that
    the query gives no reason to compute is None."""

    ids: ScopedColumn | NDArray[np.object_]
    keyword: Floats
    text: Floats  # BM25; 1 = every term once in a memory of average length
    semantic: Floats  # cosine; for a dialogue, of the nearest turn
    near: Floats  # the same, averaged with the neighbouring messages
    coverage: Floats  # share of the query's words that it holds, by rarity
    last_text: Floats | None = None
    last_semantic: Floats | None = None
    whole_semantic: Floats | None = None
    episode: Floats | None = None  # BM25 of its episode
    before: Floats | None = None  # BM25 of the message before, unless by the assistant
    gist: Floats | None = None  # cosine of the best memory derived from it
    over: Floats | None = None  # 1 if it matches by an outdated statement
    succeeds: Floats | None = None  # 1 if it supersedes such a statement
    partly_over: ScopedColumn | Mask | None = None  # a message of which something has ended
    phrase: Floats | None = None
    speaker: Floats | None = None
    time: Floats | None = None
    assistant: Floats
    asks: Floats
    kind: NamedColumn  # of sentence
    message_before: NamedColumn | None = None  # its id
    successions: tuple[NDArray[np.intp], NDArray[np.intp]]  # positions of outdated ones and of their successors
    statement: ScopedColumn | NDArray[np.intp]  # equal for a message and the memories derived from it
    derived: NDArray[np.bool_] | None = None  # from messages that are candidates too
    priority: Floats | None = None
    age_days: Floats  # since it happened or was last recalled
    idle_days: Floats  # since it was last recalled; infinite if never; empty if the query does not want it
    uses: Floats  # number of recalls; as above
    importance: Floats
    unembedded: int = 0  # memories in scope without a vector of the query's model
    missing: tuple[str, ...] = ()  # what external engines could not search, and why
    engines: tuple[str, ...] = ()  # external engines that they are from; none: found in this process

    def __len__(self) -> int:
        return len(self.ids)


NEVER = np.iinfo(np.int64).max
MICROSECOND = timedelta(microseconds=1)

Columns = Mapping[str, NDArray[Any]]
Codes = Mapping[str, Mapping[str | None, int]]


def in_scope(columns: Columns, codes: Codes, tagged: Mapping[str, Sequence[int]], where: Filter) -> Mask:
    """Return the slots that a filter selects; `conditions` in `store/repositories/memories.py` does the same in SQL."""
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
    if not where.with_messages:
        scope &= columns["memory_type"] != codes["memory_type"].get("message", -1)
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
