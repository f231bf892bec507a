"""Verbs as HTTP calls: a verb of the engine, its route, and the type of its result."""

import inspect
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pydantic import BaseModel, TypeAdapter

from .. import validation
from ..errors import AccessDenied, NotFound
from ..models import MemoryItem, utc_now
from ..scope import Filter
from .connection import Connection

P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]

OWN_ID = re.compile("[0-9a-z]{26}")


def served(
    verb: Verb[P, T],
    method: str,
    path: str,
    result: Any,
    *,
    field: str | None = None,
    repeatable: bool = False,
    all_users: bool = False,
    empty: Any = None,
    extra: Mapping[str, Any] | None = None,
    ignored: tuple[str, ...] = (),
    refused: Mapping[str, str] | None = None,
) -> Verb[P, T]:
    """Make a verb that sends its arguments to a route and returns the answer, or one `field` of it, as `result`.

    `user_id` goes into the query string, and with GET and DELETE so do all other arguments. `repeatable`: the request
    may be sent twice. `all_users`: without a user, ask for all of them. `empty`: the result if a filter is an empty
    list, which a query string cannot express. `ignored`: arguments that the server does not take, because it records
    the key. `refused`: arguments that must be left out, and the reason.
    """
    signature = inspect.signature(verb)
    adapter: TypeAdapter[Any] = TypeAdapter(result)
    in_query = method in ("GET", "DELETE")

    @wraps(verb)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        given = _arguments(signature.bind(self, *args, **kwargs))
        for name, reason in (refused or {}).items():
            if name in given:
                raise AccessDenied(f"leave `{name}` out: {reason}")
        for name in ignored:
            validation.optional_name(name, given.pop(name, None))
        params: dict[str, Any] = {}
        if "user_id" in given:
            params["user_id"] = validation.name("user_id", given.pop("user_id"))
        elif all_users:
            params["all_users"] = True
        address = await _address(self._server, path, given, params.get("user_id", ""))
        if in_query:
            if any(isinstance(value, (tuple, list)) and not value for value in given.values()):
                return empty  # type: ignore[no-any-return]
            params |= _in_query(given)
        answer = await self._server.answer(
            method,
            address,
            params=params | dict(extra or {}),
            body=None if in_query else given,
            headers={},
            repeatable=repeatable or method == "GET",
        )
        return self._server.parse(answer, address, adapter, field)  # type: ignore[no-any-return]

    return call


def like(verb: Verb[P, T]) -> Callable[[Callable[..., Coroutine[Any, Any, T]]], Verb[P, T]]:
    """Give a method the signature and the docstring of a verb; it is called with all arguments by name."""
    signature = inspect.signature(verb)
    rest = next((name for name, one in signature.parameters.items() if one.kind is one.VAR_KEYWORD), "")

    def decorate(method: Callable[..., Coroutine[Any, Any, T]]) -> Verb[P, T]:
        @wraps(verb)
        async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            _, *given = bound.arguments.items()
            arguments = dict(given)
            return await method(self, **arguments.pop(rest, {}), **arguments)

        return call

    return decorate


def unsupported(verb: Verb[P, T], instead: str) -> Verb[P, T]:
    """Make a verb that needs the store itself and says where to run it."""

    @wraps(verb)
    async def refuse(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        raise AccessDenied(f"{verb.__name__} is not served to clients: {instead}")

    return refuse


def _arguments(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Return the given arguments that are not None, with filters checked as the engine checks them."""
    given = dict(bound.arguments)
    del given["self"]
    filters = given.pop("filters", {})
    if "user_id" in given:
        Filter.parse(user_id=given["user_id"] or "?", **filters)
    if given.get("memory_types") is not None:
        given["memory_types"] = validation.names("memory_types", given["memory_types"])
    return {name: value for name, value in {**given, **filters}.items() if value is not None}


def _in_query(given: dict[str, Any]) -> dict[str, Any]:
    params = {name: value for name, value in given.items() if name not in ("time_range", "time_range_days")}
    if isinstance(params.get("metadata"), Mapping):  # conditions of a filter
        params["metadata"] = json.dumps(params["metadata"])
    since, until = validation.time_span(given.get("time_range"), given.get("time_range_days"), utc_now())
    return params | {"since": since, "until": until}


async def _address(server: Connection, path: str, given: dict[str, Any], user_id: str) -> str:
    if "{memory_id}" in path:
        return path.format(memory_id=await memory_id_of(server, given.pop("memory_id"), user_id))
    for name in ("job_id", "key_id"):
        if f"{{{name}}}" in path:
            return path.format(**{name: safe_id(name, given.pop(name), user_id)})
    return path


def safe_id(name: str, value: str, user_id: str) -> str:
    """Return an id that can be part of a path; any other string is not the id of anything."""
    if not (validation.name(name, value).isalnum() and value.isascii()):
        owner = f"user {user_id!r} has no job" if name == "job_id" else "there is no key"
        raise NotFound(f"{owner} {value!r}")
    return value


class _Fetched(BaseModel):
    memories: tuple[MemoryItem, ...]


async def memory_id_of(server: Connection, memory_id: str, user_id: str) -> str:
    """Return the id of a memory; a `memory_key`, which may not fit into a path, is looked up."""
    if OWN_ID.fullmatch(validation.name("memory_id", memory_id)):
        return memory_id
    params, body = {"user_id": user_id}, {"memory_ids": [memory_id]}
    found = await server.ask("POST", "/v1/fetch", _Fetched, params=params, body=body, repeatable=True)
    if not found.memories:
        raise NotFound(f"user {user_id!r} has no memory {memory_id!r}")
    return found.memories[0].id
