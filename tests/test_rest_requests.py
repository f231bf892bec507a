"""Keys, users, bodies and failures decide what a request over REST gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from jiyi.errors import StoreUnavailable
from rest import Running, running

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("requests") / "memory.db", server={"max_body_mb": 0.01}) as server:
        server.do(server.memory.add("I drink green tea", user_id="mei"))
        yield server


@pytest.fixture(scope="module")
def keys(server: Running) -> dict[str, str]:
    return {
        "mei": server.key("mei"),
        "writer": server.key("mei", scopes=("write",)),
        "two": server.key("mei", "bo"),
        "all": server.key(),
    }


def post(server: Running, key: str, path: str, user_id: str | None = None, **given: Any) -> httpx.Response:
    who = {} if user_id is None else {"user_id": user_id}
    with server.client(key) as web:
        return web.post(path, params=who, headers={"X-Request-Id": "same", **given.pop("headers", {})}, **given)


@pytest.mark.parametrize(
    ("key", "user_id", "status"),
    [
        ("mei", None, 200),
        ("mei", "mei", 200),
        ("mei", "bo", 404),
        ("mei", "", 422),
        ("mei", "x" * 300, 422),
        ("mei", "茶", 404),
        ("two", None, 422),
        ("two", "bo", 200),
        ("all", "mei", 200),
        ("writer", "mei", 403),
        ("jiyi_nothing", "mei", 401),
    ],
)
@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
def test_the_key_decides(
    server: Running, keys: dict[str, str], path: str, key: str, user_id: str | None, status: int
) -> None:
    found = post(server, keys.get(key, key), path, user_id, json={"query": "green tea"})
    assert found.status_code == status
    assert ("drink" in found.text) == (status == 200 and user_id in (None, "mei"))


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"json": {"query": "tea", "limit": 1, "time_range": [None, "2030-01-01T00:00:00Z"]}}, 200),
        ({"content": b'{"query": "tea"}', "headers": {"Content-Type": "Application/JSON; charset=utf-8"}}, 200),
        ({"content": [b'{"query": ', b'"tea"}'], "headers": JSON}, 200),
        ({"content": b'{"query": "tea"}', "headers": {"Content-Type": "application/vnd.x+json"}}, 200),
        ({"content": b'{"query": "tea"}', "headers": {"Content-Type": "text/plain"}}, 415),
        ({"content": b'{"query": "tea"}'}, 415),
        ({"content": b"{", "headers": JSON}, 400),
        ({"content": b'{"query": NaN}', "headers": JSON}, 400),
        ({"content": b"", "headers": JSON}, 422),
        ({"json": ["tea"]}, 422),
        ({"json": {"query": ""}}, 422),
        ({"json": {"query": "tea", "nonsense": 1}}, 422),
        ({"json": {"query": "tea", "limit": 0}}, 422),
        ({"json": {"query": "tea", "time_range": ["2030-01-01T00:00:00Z", "2020-01-01T00:00:00Z"]}}, 422),
        ({"json": {"query": "tea", "keywords": [[[[]]]]}}, 422),
        ({"json": {"query": "x" * 20_000}}, 413),
    ],
)
def test_the_body_decides(server: Running, keys: dict[str, str], given: dict[str, Any], status: int) -> None:
    assert post(server, keys["mei"], "/v1/search", **given).status_code == status


def test_an_idempotency_key_counts_once(server: Running, keys: dict[str, str]) -> None:
    told = post(
        server, keys["two"], "/v1/memories", "bo", json={"text": "likes cake"}, headers={"Idempotency-Key": "k1"}
    )
    assert told.status_code == 201 and told.json()["memories"][0]["content"] == "likes cake"
    for wrong in ("", "x" * 300):
        headers = {"Idempotency-Key": wrong}
        assert post(server, keys["mei"], "/v1/memories", json={"text": "x"}, headers=headers).status_code == 422
    other = post(server, keys["two"], "/v1/memories", "bo", json={"text": "x"}, headers={"Idempotency-Key": "k1"})
    assert other.status_code == 409


@pytest.mark.parametrize(("error", "status"), [(StoreUnavailable("gone"), 503), (RuntimeError("broken"), 500)])
def test_a_failure_of_the_engine(
    server: Running, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    async def failing(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(server.memory, "search", failing)
    told = post(server, keys["mei"], "/v1/search", json={"query": "tea"})
    assert told.status_code == status and "broken" not in told.text and told.json()["request_id"] == "same"


def test_requests_are_counted_by_route(server: Running) -> None:
    with server.client(server.key(scopes=("read", "admin"))) as web:
        web.post("/v1/search", params={"user_id": "mei"}, json={"query": "tea"})
        counted = web.get("/v1/metrics").json()["requests"]["by_route"]
    assert any((one["method"], one["route"]) == ("POST", "/v1/search") for one in counted)
