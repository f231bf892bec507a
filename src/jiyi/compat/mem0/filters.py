"""mem0's filters: a tree of AND, OR, NOT and conditions on the fields of a memory.

A memory belongs to exactly one user here. mem0 also stores memories under an agent, an app or a run alone; these belong
to a user named after it, such as `agent:travel`. A filter without a user matches the memories of all users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from ... import threads, validation
from ...errors import InvalidInput
from ...scope import MetadataCondition

ENTITIES = ("user_id", "agent_id", "app_id", "run_id")
WITHOUT_USER = {"agent_id": "agent:", "app_id": "app:", "run_id": "run:"}  # the first one given names the user
OTHER_NAMES = {"userId": "user_id", "agentId": "agent_id", "appId": "app_id", "runId": "run_id"}
OTHER_NAMES |= {"$and": "AND", "$or": "OR", "$not": "NOT"}
FIELDS = (  # of a memory; other names are keys of its metadata
    *("id", "memory", *ENTITIES, "hash", "metadata", "categories", "created_at", "updated_at", "timestamp"),
    *("expiration_date", "keywords", "memory_ids"),
)
TIMES = ("created_at", "updated_at", "timestamp")
ANY: Final = "*"
MAX_DEPTH = 16
MAX_VALUES = 500  # in all conditions

FILTERING_S = 10.0  # CPU time
COSTS = 50  # characters that take as long as one memory

Record = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owners:
    """The users whose memories can match; None: any user."""

    names: frozenset[str] | None

    @classmethod
    def of(cls, *names: str) -> Owners:
        return cls(frozenset(names))

    def both(self, other: Owners | None) -> Owners:
        if other is None or other.names is None:
            return self
        return other if self.names is None else Owners(self.names & other.names)

    def either(self, other: Owners) -> Owners:
        return Owners(None if self.names is None or other.names is None else self.names | other.names)


def entity(name: str, value: Any) -> str | None:
    """Read an id as mem0 does: numbers are names, spaces around a name do not count, an empty name is an error."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise InvalidInput(name, f"must be a name, not {value!r}")
    return validation.name(name, str(value).strip())


def owner_of(entities: Mapping[str, str | None]) -> str | None:
    """Return the user of a memory with these entities, or None if there are none."""
    if entities.get("user_id"):
        return entities["user_id"]
    return next((prefix + name for key, prefix in WITHOUT_USER.items() if (name := entities.get(key))), None)


def user_shown(owner: str) -> str | None:
    """Return the user id to show: none for memories of an agent, an app or a run alone."""
    return None if owner.startswith(tuple(WITHOUT_USER.values())) else owner


class FilterTree:
    """A validated filter."""

    def __init__(self, tree: Any) -> None:
        if not isinstance(tree, Mapping):
            raise InvalidInput("filters", "must be an object, such as {'user_id': 'mei'}")
        self._tree = _with_entities(_named(tree))
        values = _check(self._tree, MAX_DEPTH)
        if values > MAX_VALUES:
            raise InvalidInput("filters", f"has {values:,} values; the limit is {MAX_VALUES}")

    def owners(self) -> Owners | None:
        """Return the users whose memories can match; None if the filter names no user, agent, app or run."""
        return _owners(self._tree)

    def allowed(self, name: str) -> list[str] | None:
        """Return the values of which every match has one in a field; None: the filter does not say."""
        return next((values for key, values in _allowed(self._tree) if key == name), None)

    def required(self, name: str) -> str | None:
        """Return the value that every match has in a field, if the filter says so."""
        return next((value for key, value in _required(self._tree) if key == name), None)

    def metadata(self) -> dict[str, Any] | None:
        """Return conditions on metadata that every match meets, for the query; `matches` decides about the others."""
        found: dict[str, dict[str, Any]] = {}
        for key, condition in _metadata_conditions(self._tree):
            for operator, value in _operators(condition):
                if operator not in found.get(key, {}) and _is_condition(operator, value):
                    found.setdefault(key, {})[operator] = value
        return found or None

    def is_only(self, *names: str) -> bool:
        """Return True if the filter consists of equalities of these fields, one value and one operator each."""
        plain = list(_required(self._tree))
        keys = {key for key, _ in plain}
        return keys <= set(names) and len(keys) == len(plain) == _check(self._tree, MAX_DEPTH)

    def matches(self, record: Record) -> bool:
        return _matches(self._tree, record)

    async def matching(self, items: Sequence[T], record: Callable[[T], Record]) -> list[T]:
        """Return the memories that match, in a thread if there are many."""

        def match() -> list[T]:
            found = []
            for item in items:
                threads.check()
                if self.matches(record(item)):
                    found.append(item)
            return found

        try:
            with threads.Budget(FILTERING_S):
                return await threads.run(COSTS * len(items), match)
        except threads.OutOfTime:
            raise InvalidInput("filters", f"take more than {FILTERING_S:g} s of CPU time: name fewer values") from None


def _named(tree: Any) -> Any:
    if isinstance(tree, Mapping):
        return {OTHER_NAMES.get(key, key): _named(value) for key, value in tree.items()}
    return [_named(value) for value in tree] if isinstance(tree, list) else tree


def _with_entities(tree: Any) -> Any:
    """Read the names of users, agents, apps and runs as mem0 does."""
    if isinstance(tree, list):
        return [_with_entities(branch) for branch in tree]
    if not isinstance(tree, Mapping):
        return tree
    return {
        key: _entity_condition(key, value)
        if key in ENTITIES
        else _with_entities(value)
        if key in ("AND", "OR", "NOT")
        else value
        for key, value in tree.items()
    }


def _entity_condition(key: str, condition: Any) -> Any:
    if isinstance(condition, Mapping):
        return {operator: _entity_condition(key, operand) for operator, operand in condition.items()}
    if isinstance(condition, list):
        return [_entity_condition(key, value) for value in condition]
    if condition is None:
        raise InvalidInput("filters", f"{key} must be a name, a list of names or a condition")
    return entity(key, condition)


def _branches(key: str, value: Any) -> list[Mapping[str, Any]]:
    """Return the operands of AND, OR or NOT."""
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(one, Mapping) for one in found):
        raise InvalidInput("filters", f"{key} needs a list of conditions")
    return found


def _check(tree: Mapping[str, Any], depth: int) -> int:
    """Count the values of all conditions; raise for what is not a filter."""
    if depth == 0:
        raise InvalidInput("filters", f"is nested more than {MAX_DEPTH} deep")
    count = 0
    for key, value in tree.items():
        if key in ("AND", "OR", "NOT"):
            count += sum(_check(branch, depth - 1) for branch in _branches(key, value))
            continue
        if key.startswith("$"):
            raise InvalidInput("filters", f"{key} is no operator; known are AND, OR and NOT")
        inner = value if key == "metadata" and isinstance(value, Mapping) else {key: value}
        for name, condition in inner.items():
            _check_operators(name, condition)
            operands = condition.values() if isinstance(condition, Mapping) else (condition,)
            count += sum(max(1, len(one)) if isinstance(one, list) else 1 for one in operands)
        count += not inner
    return count


def _check_operators(key: str, condition: Any) -> None:
    if not isinstance(condition, Mapping):
        return
    unknown = [name for name in condition if name not in OPERATORS]
    if unknown or not condition:
        known = ", ".join(OPERATORS)
        raise InvalidInput("filters", f"{key} has the operator {(unknown or ['none'])[0]!r}; known are {known}")
    if any(name in ("in", "nin") and not isinstance(operand, list) for name, operand in condition.items()):
        raise InvalidInput("filters", f"{key}: `in` and `nin` need a list")


def _values(condition: Any) -> list[str] | None:
    """Return the values that a condition allows; None: not limited to a list."""
    if isinstance(condition, str):
        return None if condition == ANY else [condition]
    if isinstance(condition, list):
        return [value for value in condition if isinstance(value, str)]
    if isinstance(condition, Mapping):
        if isinstance(condition.get("eq"), str):
            return [condition["eq"]]
        if "in" in condition:
            return [value for value in condition["in"] if isinstance(value, str)]
    return None


def _owners(tree: Mapping[str, Any]) -> Owners | None:
    found: Owners | None = None
    for key, value in tree.items():
        inner: Owners | None = None
        if key == "AND":
            inner = _owners_of_all(_branches(key, value))
        elif key == "OR":
            inner = _owners_of_any(_branches(key, value))
        elif key == "user_id":
            names = _values(value)
            inner = Owners(None if names is None else frozenset(names))
        elif key in WITHOUT_USER:
            inner = Owners(None)
        found = inner.both(found) if inner is not None else found
    return found


def _owners_of_all(branches: list[Mapping[str, Any]]) -> Owners | None:
    found: Owners | None = None
    for branch in branches:
        if (inner := _owners(branch)) is not None:
            found = inner.both(found)
    return found


def _owners_of_any(branches: list[Mapping[str, Any]]) -> Owners | None:
    found = Owners.of()
    for branch in branches:
        inner = _owners(branch)
        if inner is None:
            return None
        found = found.either(inner)
    return found if branches else None


def _allowed(tree: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for key, value in tree.items():
        if key == "AND" or (key == "OR" and len(_branches(key, value)) == 1):
            for branch in _branches(key, value):
                yield from _allowed(branch)
        elif key not in ("OR", "NOT") and (values := _values(value)) is not None:
            yield key, values


def _metadata_conditions(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if key == "AND" or (key == "OR" and len(_branches(key, value)) == 1):
            for branch in _branches(key, value):
                yield from _metadata_conditions(branch)
        elif key == "metadata" and isinstance(value, Mapping):
            yield from value.items()
        elif key not in (*FIELDS, "OR", "NOT"):
            yield key, value


def _operators(condition: Any) -> list[tuple[str, Any]]:
    if isinstance(condition, Mapping):
        return list(condition.items())
    return [] if condition == ANY else [("in" if isinstance(condition, list) else "eq", condition)]


def _is_condition(operator: str, value: Any) -> bool:
    """Return True for a condition that means the same for a database. There null is not what is missing."""
    try:
        conditions = MetadataCondition.parse_all("filters", {"key": {operator: value}})
    except InvalidInput:
        return False
    return not any(None in condition.values for condition in conditions)


def _required(tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return ((key, values[0]) for key, values in _allowed(tree) if len(values) == 1)


def _matches(tree: Mapping[str, Any], record: Record) -> bool:
    return all(_holds(key, value, record) for key, value in tree.items())


def _holds(key: str, value: Any, record: Record) -> bool:
    if key in ("AND", "OR", "NOT"):
        results = [_matches(branch, record) for branch in _branches(key, value)]
        return all(results) if key == "AND" else any(results) if key == "OR" else not any(results)
    if key == "metadata" and isinstance(value, Mapping):
        metadata = record.get("metadata") or {}
        return all(_condition(metadata.get(name), wanted) for name, wanted in value.items())
    if key in TIMES:
        return _condition(_time(record.get(key)), _times_in(value))
    if key in ("memory_ids", "id"):
        return record["id"] in (_values(value) or ())
    field = record[key] if key in record else (record.get("metadata") or {}).get(key)
    return _condition(field, value)


def _condition(field: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return all(operator in OPERATORS and OPERATORS[operator](field, value) for operator, value in wanted.items())
    if wanted == ANY:
        return field is not None
    return _is_in(field, wanted) if isinstance(wanted, list) else _equal(field, wanted)


def _equal(field: Any, value: Any) -> bool:
    parts = field if isinstance(field, (list, tuple)) else [field]
    return any(part == value and isinstance(part, bool) == isinstance(value, bool) for part in parts)


def _is_in(field: Any, values: Any) -> bool:
    return any(_equal(field, value) for value in values)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(field: Any, value: Any) -> bool:
        try:
            return field is not None and not isinstance(field, bool) and bool(compare(field, value))
        except TypeError:  # of different kinds
            return False

    return holds


def _contains(field: Any, value: Any) -> bool:
    parts = field if isinstance(field, (list, tuple)) else [field]
    return any(isinstance(part, str) and str(value) in part for part in parts)


def _contains_folded(field: Any, value: Any) -> bool:
    parts = field if isinstance(field, (list, tuple)) else [field]
    return any(isinstance(part, str) and str(value).casefold() in part.casefold() for part in parts)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda field, value: not _equal(field, value),
    "in": _is_in,
    "nin": lambda field, values: not _is_in(field, values),
    "gt": _ordered(lambda field, value: field > value),
    "gte": _ordered(lambda field, value: field >= value),
    "lt": _ordered(lambda field, value: field < value),
    "lte": _ordered(lambda field, value: field <= value),
    "contains": _contains,
    "icontains": _contains_folded,
}


def _times_in(wanted: Any) -> Any:
    if isinstance(wanted, Mapping):
        return {name: _times_in(value) for name, value in wanted.items()}
    if isinstance(wanted, list):
        return [_times_in(value) for value in wanted]
    if wanted == ANY or wanted is None:
        return wanted
    time = _time(wanted)
    if time is None:
        raise InvalidInput("filters", f"{wanted!r} is not a time in ISO 8601")
    return time


def _time(value: Any) -> datetime | None:
    from .times import parse_time

    try:
        return None if value is None else parse_time("filters", value)
    except InvalidInput:
        return None
