"""Faults of an embedding server. Each gets the request and answers it wrongly or not at all."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from faults import (
    Behaviour,
    Writer,
    answer,
    bomb,
    broken_chunks,
    drip_spaces,
    flood,
    flood_error,
    hang,
    http,
    no_http,
    raw,
    reset,
    status,
)
from jiyi.testing import WordEmbedder

DIMENSION = 16
_WORDS = WordEmbedder(DIMENSION)
Rows = list[dict[str, Any]]


def true_vector(text: str) -> Any:
    vector = _WORDS._embed(text)
    length = np.linalg.norm(vector)
    return vector / (length if length else 1.0)


def _rows(texts: list[str]) -> Rows:
    return [
        {"object": "embedding", "index": at, "embedding": [float(number) for number in _WORDS._embed(text)]}
        for at, text in enumerate(texts)
    ]


def _with(change: Callable[[Rows], Any]) -> Behaviour:
    """A good reply with a change."""

    async def behave(request: dict[str, Any], writer: Writer) -> None:
        await answer({"object": "list", "model": "m", "data": change(_rows(request["input"])), "usage": {}})(
            request, writer
        )

    return behave


def _each(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Behaviour:
    return _with(lambda rows: [change(row) for row in rows])


def _one(vector: Callable[[list[float]], Any]) -> Behaviour:
    """Replace the last row's vector; then nothing of the reply can be used."""
    return _with(lambda rows: [*rows[:-1], {**rows[-1], "embedding": vector(rows[-1]["embedding"])}])


def _written(text: Callable[[str], str]) -> Behaviour:
    async def behave(request: dict[str, Any], writer: Writer) -> None:
        body = json.dumps({"object": "list", "model": "m", "data": _rows(request["input"])})
        await raw(http(200, text(body).encode()))(request, writer)

    return behave


async def _early_end(request: dict[str, Any], writer: Writer) -> None:
    data = http(200, json.dumps({"data": _rows(request["input"])}).encode())
    writer.write(data[: len(data) - 30])
    await writer.drain()


def _second_batch(then: Behaviour) -> Behaviour:
    """Answer the first batch of texts correctly, and fail on the second."""
    asked = 0

    async def behave(request: dict[str, Any], writer: Writer) -> None:
        nonlocal asked
        asked += 1
        await (_with(lambda rows: rows) if asked % 2 else then)(request, writer)

    return behave


HARMLESS: dict[str, Behaviour] = {
    "well": _with(lambda rows: rows),
    "in another order": _with(lambda rows: rows[::-1]),
    "with more fields": _each(lambda row: {**row, "extra": {"a": [1]}}),
}
VECTORS: dict[str, Behaviour] = {
    **HARMLESS,
    "one missing": _with(lambda rows: rows[:-1]),
    "the first missing": _with(lambda rows: rows[1:]),
    "half of a batch": _with(lambda rows: rows[: len(rows) // 2]),
    "one twice": _with(lambda rows: [*rows[:-1], rows[0]]),
    "one too many": _with(lambda rows: [*rows, {**rows[0], "index": len(rows)}]),
    "none": _with(lambda rows: []),
    "null for all": _with(lambda rows: None),
    "null for one": _with(lambda rows: [*rows[:-1], None]),
    "words for rows": _with(lambda rows: ["tea"] * len(rows)),
    "an object for rows": _with(lambda rows: {str(row["index"]): row for row in rows}),
    "counted from one": _each(lambda row: {**row, "index": row["index"] + 1}),
    "counted backwards": _each(lambda row: {**row, "index": -row["index"] - 1}),
    "all the same index": _each(lambda row: {**row, "index": 0}),
    "no index": _each(lambda row: {"embedding": row["embedding"]}),
    "an index that is no number": _each(lambda row: {**row, "index": str(row["index"])}),
    "an index that is null": _each(lambda row: {**row, "index": None}),
    "no vector": _each(lambda row: {"index": row["index"]}),
    "null for a vector": _one(lambda vector: None),
    "an empty vector": _one(lambda vector: []),
    "empty vectors": _each(lambda row: {**row, "embedding": []}),
    "a shorter vector": _one(lambda vector: vector[:-1]),
    "a longer vector": _one(lambda vector: [*vector, 0.0]),
    "NaN": _one(lambda vector: [float("nan"), *vector[1:]]),
    "NaN everywhere": _each(lambda row: {**row, "embedding": [float("nan")] * DIMENSION}),
    "infinity": _one(lambda vector: [float("inf"), *vector[1:]]),
    "minus infinity": _one(lambda vector: [float("-inf"), *vector[1:]]),
    "beyond float32": _one(lambda vector: [1e39, *vector[1:]]),
    "beyond float64": _written(lambda body: body.replace("0.0", "1e999", 1)),
    "a word in a vector": _one(lambda vector: ["tea", *vector[1:]]),
    "null in a vector": _one(lambda vector: [None, *vector[1:]]),
    "a list in a vector": _one(lambda vector: [[1.0], *vector[1:]]),
    "an object for a vector": _one(lambda vector: {"0": 1.0}),
    "text for a vector": _one(lambda vector: "1.0, 2.0"),
    "base64 of too few": _one(lambda vector: base64.b64encode(b"\0" * 7).decode()),
    "a matrix for a vector": _one(lambda vector: [vector, vector]),
    "another dimension": _each(lambda row: {**row, "embedding": row["embedding"][:8]}),
    "another dimension in the second batch": _second_batch(_each(lambda row: {**row, "embedding": [1.0] * 8})),
    "a failing second batch": _second_batch(status(500)),
    "a second batch cut short": _second_batch(_early_end),
    "cut off": _written(lambda body: body[:-40]),
    "no JSON": _written(lambda body: "{not json"),
    "another object": answer({"hello": 1}),
    "a list": answer([]),
    "a number": answer(7),
    "an error with 200": answer({"error": {"message": "overloaded"}}),
    "nothing": raw(http(200, b"")),
    "a page": raw(http(200, b"<html>gateway</html>", kind="text/html")),
    "no UTF-8": raw(http(200, b'{"data": "\xff\xfe"}')),
    "hangs": hang,
    "resets": reset,
    "ends early": _early_end,
    "drips": drip_spaces,
    "floods": flood,
    "floods errors": flood_error,
    "a bomb": raw(bomb()),
    "breaks chunks": broken_chunks,
    "no HTTP": no_http,
    **{f"answers {code}": status(code) for code in (302, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529)},
    "answers 429 with a pause": status(429, Retry_After="0"),
}
