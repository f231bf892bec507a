"""Exceptions for the problem details of a server's answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from .. import errors

if TYPE_CHECKING:
    import httpx


# For answers without an exception of the engine, from the server's middleware or a proxy.
BY_STATUS: dict[int, type[errors.JiyiError]] = {
    401: errors.AccessDenied,
    403: errors.AccessDenied,
    404: errors.NotFound,
    421: errors.AccessDenied,
    429: errors.StoreUnavailable,
    502: errors.ConnectionLost,
    503: errors.StoreUnavailable,
    504: errors.ConnectionLost,
}
INVALID_INPUT = frozenset({400, 408, 413, 415, 422})
MAX_WAIT_S = 3600.0


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    detail: str
    code: str | None = None
    error: str | None = None
    request_id: str | None = None
    argument: str | None = None
    memory_id: str | None = None
    version: int | None = None
    expected: int | None = None


def error_in(answer: httpx.Response, url: str) -> errors.JiyiError:
    """Return the exception for an answer."""
    status = answer.status_code
    try:
        told = Problem.model_validate_json(answer.content)
    except ValidationError:
        told = Problem(detail=f"{url} answered {status} {answer.reason_phrase}: is it a Jiyi server?")
        if status not in (429, 502, 503, 504):
            return errors.ServerError(told.detail)
    kind = _kind(told.error) or BY_STATUS.get(status)
    if kind is errors.InvalidInput or (kind is None and status in INVALID_INPUT):
        argument = plain_name(told.argument or "arguments")
        return errors.InvalidInput(argument, told.detail.removeprefix(f"{told.argument}: "))
    if kind is errors.VersionConflict and told.version is not None:
        return errors.VersionConflict(told.memory_id or "?", told.expected or 0, told.version)
    if kind is None or kind in (errors.VersionConflict, errors.MissingExtra):
        named = f" (request {told.request_id})" if told.request_id else ""
        return errors.ServerError(f"{told.detail}{named}")
    if issubclass(kind, errors.LlmError):
        return kind(told.detail, retry_after_s=retry_after(answer) or None)
    return kind(told.detail)


def _kind(name: str | None) -> type[errors.JiyiError] | None:
    found = getattr(errors, name or "", None)
    return found if isinstance(found, type) and issubclass(found, errors.JiyiError) else None


def plain_name(argument: str) -> str:
    """Return the name of the verb's argument.

    >>> plain_name("body.tags"), plain_name("query.limit"), plain_name("header.idempotency-key")
    ('tags', 'limit', 'idempotency_key')
    """
    return re.sub(r"^(body|query|path|header)\.", "", argument).replace("-", "_")


def retry_after(answer: httpx.Response) -> float:
    """Return the seconds of the Retry-After header, or 0."""
    told = answer.headers.get("retry-after", "")
    return min(float(told), MAX_WAIT_S) if told.isdecimal() and told.isascii() else 0.0
