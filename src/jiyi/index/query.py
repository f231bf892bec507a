"""What a search asks of a store, and what it is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..scope import Filter

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexQuery:
    """What the legs need of a query. A dialogue has `turns`, and its last turn counts for itself too."""

    filter: Filter
    terms: tuple[str, ...] = ()
    last_terms: tuple[str, ...] | None = None  # of a dialogue
    words: tuple[str, ...] = ()  # the terms that are whole words or characters, of the last turn: how many are held?
    proper: tuple[str, ...] = ()  # the terms of names and other words written like names
    phrases: tuple[tuple[str, ...], ...] = ()  # the terms of each quoted phrase
    keywords: tuple[str, ...] = ()
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of a keyword
    vector: NDArray[np.float32] | None = None
    turns: tuple[NDArray[np.float32], ...] = ()  # of a dialogue: a vector for each turn, the last one last
    spans: tuple[tuple[datetime, datetime], ...] = ()  # times that it speaks of
    current: bool = True  # it wants what is so now: what is over makes way
    named: frozenset[str] = frozenset()  # people whom it speaks of
    priorities: Mapping[str, float] = field(default_factory=dict)  # of memory types
    ageing: Mapping[str, float] = field(default_factory=dict)  # how much faster than others memories of a type age
    weak_kinds: tuple[str, ...] = ()  # kinds of sentences that are no evidence for what is asked
    model: str  # of the vector, and of the memories' vectors it is compared with
    seen: int | None = None  # newest change of the user that the search must include, if it was looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Details about a few candidates, for the relevance model. None of it depends on filters or other candidates."""

    columns: Mapping[str, Floats]  # one value per candidate, by feature name
    vectors: NDArray[np.float32]
    previous_vectors: NDArray[np.float32]  # of the message before; zeros if there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The memories in scope with what each leg says of them, as parallel arrays; values are in 0..1, cosines may be
    below 0. What a query gives no reason to look at is None."""

    ids: NDArray[np.object_]
    keyword: Floats
    text: Floats  # BM25; 1 = every term once in a memory of average length
    semantic: Floats  # cosine; to a dialogue: of the nearest turn
    near: Floats  # the same, with what the messages before and after have
    coverage: Floats  # how much of the query's words a memory holds, rare ones counting more
    last_text: Floats | None = None
    last_semantic: Floats | None = None
    whole_semantic: Floats | None = None
    episode: Floats | None = None  # BM25 of all that was said in its conversation
    before: Floats | None = None  # BM25 of the message before, if a person said it
    gist: Floats | None = None  # cosine of what was worked out of it
    over: Floats | None = None  # 1: it is found for the sake of what is no longer so
    succeeds: Floats | None = None  # 1: it speaks in the place of such a one, and is found by its words too
    phrase: Floats | None = None
    speaker: Floats | None = None
    time: Floats | None = None
    assistant: Floats
    asks: Floats
    weak_kind: NDArray[np.bool_]  # a sentence of one of the query's weak kinds
    successions: tuple[NDArray[np.intp], NDArray[np.intp]]  # positions: outdated ones, and what took their place
    statement: NDArray[np.intp]  # equal numbers: a message and what was derived from it
    derived: NDArray[np.bool_] | None = None  # worked out of messages that are there themselves
    priority: Floats | None = None
    age_days: Floats  # since it happened or was last recalled
    idle_days: Floats  # since it was last recalled; infinite if never
    uses: Floats  # how often it was recalled
    importance: Floats
    evidence: Callable[[NDArray[np.intp]], Evidence]  # for the candidates at these positions
    unembedded: int = 0  # memories in scope that have no vector of the question's model

    def __len__(self) -> int:
        return len(self.ids)
