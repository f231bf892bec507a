"""JSON of requests and responses. Large bodies are read in a thread and written in pieces, between which the event loop
answers others."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from fastapi import HTTPException, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from .. import threads

MAX_JSON_DEPTH = 64
MAX_JSON_VALUES = 60_000  # parsing more, in one step of the parser, would hold up everybody
PARSED_FASTER = 50  # times: than words are found in a text, JSON is parsed
WRITTEN_AT_ONCE = 16  # entries of a list
CHUNK = 256 * 1024
MEDIA_TYPE = "application/json"

_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)  # of a string
_MARKS = (b",", b"[", b"{")


async def parse_json(body: bytes) -> Any:
    """Parse JSON with pydantic's parser, which is faster and rejects NaN; limit the nesting and number of values."""
    return await threads.run(len(body) // PARSED_FASTER, _parse, body)


def _parse(body: bytes) -> Any:
    if _has_more_values(body, MAX_JSON_VALUES):
        raise HTTPException(413, f"the body has more than {MAX_JSON_VALUES:,} values")
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise HTTPException(400, "the body is not JSON") from None
    if _nested_deeper(found, MAX_JSON_DEPTH):
        raise HTTPException(400, f"the body is nested more than {MAX_JSON_DEPTH} deep")
    return found


def _has_more_values(body: bytes, most: int) -> bool:
    """Count what separates values, outside of strings."""
    if len(body) <= most:
        return False
    end = found = 0
    while found <= most and (start := body.find(b'"', end)) >= 0:
        found += sum(body.count(mark, end, start) for mark in _MARKS)
        end = _string_end(body, start + 1)
    return found + sum(body.count(mark, end) for mark in _MARKS) > most


def _string_end(body: bytes, at: int) -> int:
    """Return the position after a string; the end of the body, which is no JSON then, if the string has none."""
    while at < len(body):
        inside = _INSIDE.match(body, at, at + CHUNK)
        end = at if inside is None else inside.end()
        if body[end : end + 1] == b'"':
            return end + 1
        if end == at:
            break
        at = end
    return len(body)


def _nested_deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


async def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Serialise a value with pydantic, without FastAPI's detour."""
    pieces: list[bytes] = []
    for piece in _pieces(value):
        if pieces:
            await asyncio.sleep(0)
        pieces.append(piece)
    body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if len(body) <= CHUNK:
        return Response(body, status, headers, MEDIA_TYPE)
    length = {"Content-Length": str(len(body))}
    return StreamingResponse(_chunks(body), status, {**(headers or {}), **length}, MEDIA_TYPE)


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    """Yield a body in parts: each is compressed in one step of the event loop."""
    for start in range(0, len(body), CHUNK):
        yield body[start : start + CHUNK]
        await asyncio.sleep(0)


def _pieces(value: Any) -> Iterator[bytes]:
    """Yield the JSON of a value; that of an object with long lists in several pieces."""
    fields = _fields(value)
    if not any(isinstance(inner, (list, tuple)) and len(inner) > WRITTEN_AT_ONCE for inner in fields.values()):
        yield _json(value)
        return
    for number, (name, inner) in enumerate(fields.items()):
        before = (b"," if number else b"{") + _json(name) + b":"
        if not isinstance(inner, (list, tuple)):
            yield before + _json(inner)
            continue
        yield before + b"["
        for at in range(0, len(inner), WRITTEN_AT_ONCE):
            yield (b"," if at else b"") + _json(inner[at : at + WRITTEN_AT_ONCE])[1:-1]
        yield b"]"
    yield b"}"


def _fields(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    return value if isinstance(value, dict) else {}


def _json(value: Any) -> bytes:
    return to_json(value, inf_nan_mode="null")
