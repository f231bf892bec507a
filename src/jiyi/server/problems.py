"""Errors as answers: RFC 9457 problem details. The one table from what Jiyi raises to what HTTP says."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException as AnyHttpException

from ..errors import (
    EmbeddingError,
    EmbeddingModelChanged,
    IdempotencyConflict,
    InvalidInput,
    JiyiError,
    LlmError,
    LlmOverBudget,
    LlmUnavailable,
    NotFound,
    StoreUnavailable,
    VersionConflict,
)
from ..http_guards import problem

logger = logging.getLogger("jiyi.server")

MEDIA_TYPE = "application/problem+json"
LATER_S = 5  # what a client is told to wait when something is down

# The first that fits. What is not here is a fault of the server: 500, and the log says what happened.
STATUS: dict[type[JiyiError], tuple[int, str]] = {
    InvalidInput: (422, "invalid_input"),
    NotFound: (404, "not_found"),
    VersionConflict: (409, "version_conflict"),
    IdempotencyConflict: (409, "idempotency_conflict"),
    EmbeddingModelChanged: (409, "embedding_model_changed"),
    StoreUnavailable: (503, "unavailable"),
    LlmOverBudget: (429, "too_many_requests"),
    LlmUnavailable: (503, "unavailable"),
    LlmError: (502, "language_model"),
    EmbeddingError: (503, "unavailable"),
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


class Refused(HTTPException):
    """An answer that is no error of the engine: a key that is missing, a scope that it lacks, …"""

    def __init__(self, status: int, code: str, detail: str, *, argument: str | None = None) -> None:
        self.code = code
        self.argument = argument
        super().__init__(status, detail, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


class FieldProblem(BaseModel):
    argument: str
    problem: str


class Problem(BaseModel):
    """What went wrong, as RFC 9457 has it."""

    type: str = Field(examples=["urn:jiyi:problem:not_found"])
    title: str = Field(examples=["not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["user 'mei' has no memory 'tea'"])
    code: str = Field(examples=["not_found"])
    request_id: str | None = None
    argument: str | None = Field(default=None, description="which argument is wrong")
    error: str | None = Field(default=None, description="what Jiyi's engine raises for this", examples=["NotFound"])
    memory_id: str | None = Field(default=None, description="of a conflict: which memory")
    version: int | None = Field(default=None, description="of a conflict: the version that is there now")
    expected: int | None = Field(default=None, description="of a conflict: the version that was meant")
    errors: list[FieldProblem] | None = Field(default=None, description="each thing that is wrong")


def answer(
    request: Request, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    told = problem(status, code, detail) | {"request_id": request.scope.get("request_id")}
    told |= {name: value for name, value in more.items() if value is not None}
    return Response(to_json(told), status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    @app.exception_handler(Exception)
    async def of_nobody(request: Request, _: Exception) -> Response:
        return answer(request, 500, "internal", "the server failed; its log says why, under the request_id")

    @app.exception_handler(JiyiError)
    async def of_engine(request: Request, error: JiyiError) -> Response:
        return from_error(request, error)

    @app.exception_handler(RequestValidationError)
    async def of_arguments(request: Request, error: RequestValidationError) -> Response:
        problems = error.errors()
        if any(found["type"] == "json_invalid" for found in problems):
            return answer(request, 400, "bad_request", "the body is not JSON")
        if any(found["loc"] == ("body",) and found["type"] != "missing" for found in problems):
            told = request.headers.get("content-type", "")
            if "json" not in told:
                return answer(request, 415, "media_type", "the body must be application/json")
        named = [
            FieldProblem(argument=".".join(map(str, found["loc"])), problem=str(found["msg"])) for found in problems
        ]
        first = named[0]
        detail = f"{first.argument}: {first.problem}"
        return answer(request, 422, "invalid_input", detail, argument=first.argument, errors=named)

    @app.exception_handler(AnyHttpException)
    async def of_http(request: Request, error: AnyHttpException) -> Response:
        code = error.code if isinstance(error, Refused) else CODES.get(error.status_code, "refused")
        argument = error.argument if isinstance(error, Refused) else None
        detail = str(error.detail) if isinstance(error, Refused) else _plain(error)
        return answer(request, error.status_code, code, detail, headers=error.headers, argument=argument)


def _plain(error: AnyHttpException) -> str:
    known = {404: "there is nothing at this address: see /openapi.json", 400: "the body cannot be read"}
    return known.get(error.status_code) or HTTPStatus(error.status_code).phrase.lower()


def from_error(request: Request, error: JiyiError) -> Response:
    status, code = next((found for kind, found in STATUS.items() if isinstance(error, kind)), (500, "internal"))
    headers: dict[str, str] = {}
    if status in (429, 503):
        wait = getattr(error, "retry_after_s", None) or LATER_S
        headers["Retry-After"] = str(max(1, round(wait)))
    if status >= 500:
        logger.error("%s: %s", type(error).__name__, error, extra={"request_id": request.scope.get("request_id")})
    if status == 500:
        return answer(request, 500, "internal", "the server failed; its log says why, under the request_id")
    name = type(error).__name__
    if isinstance(error, VersionConflict):
        given = request.headers.get("if-match") is not None
        return answer(
            request,
            412 if given else 409,
            code,
            str(error),
            error=name,
            memory_id=error.memory_id,
            version=error.actual,
            expected=error.expected,
        )
    detail = str(error)
    if status in (502, 503):
        detail = "something that the server needs cannot be used right now: try again later"
    argument = getattr(error, "argument", None)
    return answer(request, status, code, detail, headers=headers, error=name, argument=argument)
