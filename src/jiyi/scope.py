"""Scope and filter: the arguments that verbs have in common, validated once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self, TypedDict

from . import validation
from .languages.words import normalise
from .models import Layer, Status, utc_now

TimeRange = tuple[datetime | None, datetime | None]
Lifetimes = tuple[tuple[str, timedelta], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A user, and optionally one of their sessions, agents or groups."""

    user_id: str
    session_id: str | None = None
    agent_id: str | None = None
    group_id: str | None = None


class Filters(TypedDict, total=False):
    """The filters of `search`, `context`, `list` and `count`, as callers pass them. None does not restrict."""

    session_id: str | None
    agent_id: str | None
    group_id: str | None
    memory_types: Sequence[str] | None  # any of these; an empty list matches nothing
    layers: Sequence[Layer] | None
    tags: Sequence[str] | None
    time_range: TimeRange | None  # when it happened
    time_range_days: int | None  # the same, counted back from now
    as_of: datetime | None  # valid at that time
    min_trust: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Scope):
    """Validated filters. None does not restrict."""

    memory_types: tuple[str, ...] | None = None
    with_messages: bool = True  # False: without the type "message"
    layers: tuple[Layer, ...] | None = None
    tags: tuple[str, ...] | None = None  # any of them, normalised
    occurred_from: datetime | None = None
    occurred_to: datetime | None = None  # exclusive
    as_of: datetime | None = None  # valid at that time; None: not superseded
    now: datetime  # expired memories do not match
    lifetimes: Lifetimes = ()  # by type, for memories without an expiry of their own
    status: Status = "active"
    min_trust: float = 0.0

    @classmethod
    def parse(
        cls,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        memory_types: Sequence[str] | None = None,
        layers: Sequence[Layer] | None = None,
        tags: Sequence[str] | None = None,
        time_range: TimeRange | None = None,
        time_range_days: int | None = None,
        as_of: datetime | None = None,
        asked_at: datetime | None = None,
        status: Status = "active",
        min_trust: float | None = None,
        lifetimes: Lifetimes = (),
        with_messages: bool = True,
    ) -> Self:
        now = utc_now() if asked_at is None else validation.time("asked_at", asked_at)
        start, end = validation.time_span(time_range, time_range_days, now)
        return cls(
            user_id=validation.name("user_id", user_id),
            session_id=validation.optional_name("session_id", session_id),
            agent_id=validation.optional_name("agent_id", agent_id),
            group_id=validation.optional_name("group_id", group_id),
            memory_types=None if memory_types is None else validation.names("memory_types", memory_types),
            with_messages=with_messages,
            layers=None if layers is None else validation.layers("layers", layers),
            tags=None if tags is None else tuple(normalise(tag) for tag in validation.tags("tags", tags)),
            occurred_from=start,
            occurred_to=end,
            as_of=validation.optional_time("as_of", as_of),
            now=now,
            status=validation.status("status", status),
            min_trust=0.0 if min_trust is None else validation.share("min_trust", min_trust),
            lifetimes=lifetimes,
        )
