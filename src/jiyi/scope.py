"""Scope and filter: the arguments that verbs have in common, validated once, and errors for wrong arguments and verbs
that name the right ones, also for those who know mem0 or LangChain."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import wraps
from types import SimpleNamespace
from typing import Any, Literal, NoReturn, Self, TypedDict, TypeVar, get_args, get_type_hints

from pydantic import JsonValue

from . import validation
from .errors import InvalidInput
from .languages.words import normalise
from .memory_types import Layer
from .models import Status, Unset, utc_now, with_new_name

T = TypeVar("T")
TimeRange = tuple[datetime | None, datetime | None]
Lifetimes = tuple[tuple[str, timedelta], ...]
Scalar = str | int | float | bool | None

MAX_CONDITIONS = 50  # on metadata
MAX_VALUES = 500  # of one condition
MAX_NUMBER = 2**53  # up to here every database compares numbers exactly


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
    metadata: Mapping[str, JsonValue] | None  # {"project": "apollo", "rating": {"gte": 4}}; all must hold


class Changes(TypedDict, total=False):
    """The fields that `update` changes, as callers pass them. None, or leaving it out, keeps a field."""

    content: str | None
    summary: str | None
    memory_type: str | None
    importance: float | None
    tags: Sequence[str] | None
    metadata: dict[str, JsonValue] | None
    occurred_at: datetime | None
    valid_to: datetime | Unset | None  # None removes it
    expires_at: datetime | Unset | None  # None removes it
    status: Status | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataCondition:
    """A condition on the value of one key. A value matches values of its own kind only; numbers are one kind."""

    key: str
    operator: Literal["in", "gt", "gte", "lt", "lte"]
    values: tuple[Scalar, ...]  # one, if the operator is a range

    @property
    def is_range(self) -> bool:
        return self.operator != "in"

    @classmethod
    def parse_all(cls, argument: str, given: object) -> tuple[Self, ...]:
        """Check conditions as callers write them: a value, or an object of operators, for each key."""
        if not isinstance(given, Mapping):
            raise InvalidInput(argument, "must be an object, such as {'project': 'apollo', 'rating': {'gte': 4}}")
        found: list[Self] = []
        for key, wanted in sorted(validation.json_object(argument, dict(given)).items()):
            operators = wanted if isinstance(wanted, dict) else {"eq": wanted}
            if not operators:
                raise InvalidInput(f"{argument}.{key}", f"has no operator; {', '.join(OPERATORS)} are known")
            found += [cls._parse(f"{argument}.{key}", key, name, value) for name, value in sorted(operators.items())]
        if len(found) > MAX_CONDITIONS:
            raise InvalidInput(argument, f"has {len(found):,} conditions; the limit is {MAX_CONDITIONS}")
        return tuple(found)

    @classmethod
    def _parse(cls, argument: str, key: str, operator: str, value: JsonValue) -> Self:
        if operator not in OPERATORS:
            raise InvalidInput(argument, f"has the operator {operator!r}; {', '.join(OPERATORS)} are known")
        if operator == "in" and not isinstance(value, list):
            raise InvalidInput(argument, f"`in` needs a list, not {value!r}")
        values = value if operator == "in" and isinstance(value, list) else [value]
        if len(values) > MAX_VALUES:
            raise InvalidInput(argument, f"has {len(values):,} values; the limit is {MAX_VALUES}")
        is_range = operator not in ("eq", "in")
        for one in values:
            if isinstance(one, (list, dict)):
                raise InvalidInput(argument, f"compares with {one!r}: use a text, a number, a boolean or null")
            if is_range and (one is None or isinstance(one, bool)):
                raise InvalidInput(argument, f"`{operator}` needs a number or a text, not {one!r}")
            if isinstance(one, (int, float)) and abs(one) > MAX_NUMBER:
                raise InvalidInput(argument, f"compares with {one!r}; numbers go up to 2**53: use texts instead")
        scalars = tuple(one for one in values if not isinstance(one, (list, dict)))
        return cls(key=key, operator=operator if is_range else "in", values=scalars)  # type: ignore[arg-type]


OPERATORS = ("eq", "in", "gt", "gte", "lt", "lte")


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
    now: datetime = field(repr=False)  # expired memories do not match; keys of cached results are made without it
    lifetimes: Lifetimes = ()  # by type, for memories without an expiry of their own
    status: Status = "active"
    min_trust: float = 0.0
    metadata: tuple[MetadataCondition, ...] = ()

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
        metadata: Mapping[str, JsonValue] | None = None,
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
            memory_types=None if memory_types is None else validation.memory_types("memory_types", memory_types),
            with_messages=with_messages,
            layers=None if layers is None else validation.layers("layers", layers),
            tags=None if tags is None else tuple(normalise(tag) for tag in validation.tags("tags", tags)),
            occurred_from=start,
            occurred_to=end,
            as_of=validation.optional_time("as_of", as_of),
            now=now,
            status=validation.status("status", status),
            min_trust=0.0 if min_trust is None else validation.share("min_trust", min_trust),
            metadata=() if metadata is None else MetadataCondition.parse_all("metadata", metadata),
            lifetimes=lifetimes,
        )


# Names in other libraries, and what to use here.
OTHER_ARGUMENTS: Mapping[str, str] = {
    "top_k": "limit",
    "k": "limit",
    "n_results": "limit",
    "page_size": "limit",
    "page": "cursor",
    "threshold": "min_relevance_score",
    "score_threshold": "min_relevance_score",
    "run_id": "session_id",
    "thread_id": "session_id",
    "app_id": "group_id",
    "categories": "tags, or memory_types",
    "filters": f"arguments of their own: {', '.join(('user_id', *Filters.__annotations__))}",
    "filter": f"arguments of their own: {', '.join(('user_id', *Filters.__annotations__))}",
    "messages": "the first argument, without a name",
    "memory": "the first argument, without a name",
    "data": "content",
    "text": "content",
    "infer": "a statement instead of messages to keep a text as it is; messages are always kept and learned from",
    "prompt": "the setting llm.prompts, or an extractor of your own",
    "timestamp": "occurred_at",
    "expiration_date": "expires_at",
    "rerank": "the setting search.reader",
}
OTHER_VERBS: Mapping[str, str] = {
    "get_all": "list(user_id=…)",
    "reset": "delete_all(user_id)",
    "from_config": "Memory.open(…)",
    "batch_update": "update_many",
    "batch_delete": "delete_many",
    "similarity_search": "search",
    "asearch": "search, which is asynchronous",
    "aadd": "add, which is asynchronous",
}


# Old names of arguments by verb, which are accepted with a warning for one version.
OLD_ARGUMENTS: Mapping[str, tuple[str, str]] = {
    "update": ("version", "expected_version"),
    "restore": ("version", "to_version"),
    "undo": ("by", "actor"),
    "undo_plan": ("actor", "source_actor"),
    "create": ("by", "actor"),  # keys
    "revoke": ("by", "actor"),
    "log": ("by", "actor"),
}


def explain_arguments(kind: type[T]) -> type[T]:
    """Make the verbs of a memory class explain wrong arguments, and the class wrong verbs."""
    explain_verbs(kind)
    return accept_old_arguments(kind)


def accept_old_arguments(kind: type[T]) -> type[T]:
    """Make the verbs of a class accept old names of arguments, and explain wrong ones."""
    verbs = {name: verb for base in reversed(kind.__mro__) for name, verb in vars(base).items()}
    for name, verb in verbs.items():
        if inspect.iscoroutinefunction(verb) and not name.startswith("_"):
            setattr(kind, name, _explained(verb))
    return kind


def explain_verbs(kind: type[T]) -> type[T]:
    """Make a memory class explain wrong verbs."""

    def missing(self: object, name: str) -> NoReturn:
        hint = f"; use {OTHER_VERBS[name]}" if name in OTHER_VERBS else ""
        raise AttributeError(f"Memory has no {name}{hint}", name=name, obj=self)

    kind.__getattr__ = missing  # type: ignore[attr-defined]
    return kind


def _explained(verb: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(verb).parameters
    known = {name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD}
    if rest := parameters.keys() - known:
        [name], written = rest, inspect.unwrap(verb)
        # Only this annotation: those of other arguments may not have been imported.
        only = SimpleNamespace(__annotations__={name: written.__annotations__[name]})
        [fields] = get_args(get_type_hints(only, written.__globals__)[name])  # Unpack[…]
        known |= fields.__annotations__.keys()

    @wraps(verb)
    async def call(*args: Any, **given: Any) -> Any:
        if verb.__name__ in OLD_ARGUMENTS:
            given = dict(with_new_name(*OLD_ARGUMENTS[verb.__name__], given, verb.__qualname__))
        for name in (name for name in given if name not in known):
            hint = OTHER_ARGUMENTS.get(name)
            told = f"use {hint}" if hint else f"it takes {', '.join(sorted(known - {'self'}))}"
            raise TypeError(f"{verb.__qualname__}() has no argument {name!r}: {told}")
        return await verb(*args, **given)

    return call
