"""Errors as RFC 9457 problem details: the table of exceptions and HTTP status codes."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException as AnyHttpException

from .. import errors
from ..http_server import problem

logger = logging.getLogger("jiyi.server")

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5  # sent to clients when a part is unavailable

# The first match counts. Any other error is a fault of the server: 500, with details in the log only.
STATUS: dict[type[errors.JiyiError], tuple[int, str]] = {
    errors.InvalidInput: (422, "invalid_input"),
    errors.NotFound: (404, "not_found"),
    errors.VersionConflict: (409, "version_conflict"),
    errors.IdempotencyConflict: (409, "idempotency_conflict"),
    errors.MemoryKeyTaken: (409, "memory_key_taken"),
    errors.UserErased: (409, "user_erased"),
    errors.EmbeddingModelChanged: (409, "embedding_model_changed"),
    errors.StoreUnavailable: (503, "unavailable"),
    errors.ConnectionLost: (503, "unavailable"),
    errors.SchemaTooNew: (503, "unavailable"),
    errors.SchemaTooOld: (503, "unavailable"),
    errors.LlmOverBudget: (429, "too_many_requests"),
    errors.LlmUnavailable: (503, "unavailable"),
    errors.LlmError: (502, "language_model"),
    errors.EmbeddingError: (503, "unavailable"),
}

CODES = {
    400: "bad_request",
    401: "key_needed",
    403: "scope_missing",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    415: "media_type",
    429: "too_many_requests",
    504: "timeout",
}


class HttpError(HTTPException):
    """An error of the server rather than of the engine, such as a missing scope."""

    def __init__(self, status: int, code: str, detail: str, *, argument: str | None = None) -> None:
        self.code = code
        self.argument = argument
        super().__init__(status, detail, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


class FieldProblem(BaseModel):
    argument: str
    problem: str


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    type: str = Field(examples=["urn:jiyi:problem:not_found"])
    title: str = Field(examples=["not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["user 'mei' has no memory 'tea'"])
    code: str = Field(examples=["not_found"])
    request_id: str | None = None
    argument: str | None = Field(default=None, description="the invalid argument")
    error: str | None = Field(default=None, description="the exception of the engine", examples=["NotFound"])
    memory_id: str | None = Field(default=None, description="of a version conflict")
    version: int | None = Field(default=None, description="of a version conflict: the current version")
    expected: int | None = Field(default=None, description="of a version conflict: the expected version")
    errors: list[FieldProblem] | None = Field(default=None, description="all invalid arguments")


def answer(
    request: Request, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    content = problem(status, code, detail) | {"request_id": request.scope.get("request_id")}
    content |= {name: value for name, value in more.items() if value is not None}
    return Response(to_json(content), status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    @app.exception_handler(Exception)
    async def unexpected_error(request: Request, _: Exception) -> Response:
        return answer(request, 500, "internal", "internal error: see the server's log for the request_id")

    @app.exception_handler(errors.JiyiError)
    async def engine_error(request: Request, error: errors.JiyiError) -> Response:
        return from_error(request, error)

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> Response:
        problems = error.errors()
        if any(found["type"] == "json_invalid" for found in problems):
            return answer(request, 400, "bad_request", "the body is not JSON")
        if any(found["loc"] == ("body",) and found["type"] != "missing" for found in problems):
            media_type = request.headers.get("content-type", "")
            if "json" not in media_type:
                return answer(request, 415, "media_type", "the body must be application/json")
        named = [
            FieldProblem(argument=".".join(map(str, one["loc"])), problem=one["msg"].removeprefix("Value error, "))
            for one in problems
        ]
        first = named[0]
        detail = f"{first.argument}: {first.problem}"
        return answer(request, 422, "invalid_input", detail, argument=first.argument, errors=named)

    @app.exception_handler(AnyHttpException)
    async def http_error(request: Request, error: AnyHttpException) -> Response:
        return from_http_error(request, error)


def from_http_error(request: Request, error: AnyHttpException) -> Response:
    status = error.status_code
    if isinstance(error, HttpError):
        detail, more = str(error.detail), {"argument": error.argument}
        return answer(request, status, error.code, detail, headers=error.headers, **more)
    known = {404: "no such route: see /openapi.json", 400: "the body cannot be read"}
    detail = known.get(status) or HTTPStatus(status).phrase.lower()
    return answer(request, status, CODES.get(status, "refused"), detail, headers=error.headers)


def from_error(request: Request, error: errors.JiyiError) -> Response:
    status, code = next((found for kind, found in STATUS.items() if isinstance(error, kind)), (500, "internal"))
    name = type(error).__name__
    if status >= 500:
        logger.error("%s: %s", name, error, extra={"request_id": request.scope.get("request_id")})
    if status == 500:
        return answer(request, 500, "internal", "internal error: see the server's log for the request_id")
    if isinstance(error, errors.VersionConflict):
        status = 412 if "if-match" in request.headers else 409
        more: dict[str, Any] = {"memory_id": error.memory_id, "version": error.actual, "expected": error.expected}
        return answer(request, status, code, str(error), error=name, **more)
    headers: dict[str, str] = {}
    if status in (429, 503):
        wait = getattr(error, "retry_after_s", None) or RETRY_AFTER_S
        headers["Retry-After"] = str(max(1, round(wait)))
    detail = "a part of the server is unavailable: try again later" if status in (502, 503) else str(error)
    argument = getattr(error, "argument", None)
    return answer(request, status, code, detail, headers=headers, error=name, argument=argument)
