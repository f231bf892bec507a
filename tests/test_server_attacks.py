"""A server under attack: pages of other sites, slow senders, odd paths and headers. Others are served meanwhile."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from jiyi.server.app import make_app, requirement_of, routes_of
from jiyi.testing import WordEmbedder
from rest import Running, running
from support import dump

EVIL = "evil.example"
POST = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacks") / "memory.db"


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Running]:
    """Without keys, on this machine: what a page in a browser here would like to reach."""
    with running(place, server={"receive_timeout_s": 1.0, "burst": 10_000}) as server:
        yield server


def raw(server: Running, sent: bytes) -> bytes:
    """What comes back on a bare connection until the server closes it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(sent)
        got = b""
        while part := connection.recv(65536):
            got += part
        return got


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# -- pages of other sites ---------------------------------------------------------------------------------------------


def every_route(server: Running) -> list[tuple[str, str]]:
    app = server.server.config.app
    while not hasattr(app, "routes"):  # it stands behind its walls
        app = app._app if hasattr(app, "_app") else app.app  # type: ignore[union-attr]
    return [
        (method, route.path.format(memory_id="x", job_id="x", import_id="x", key_id="x"))
        for route in routes_of(app)  # type: ignore[arg-type]
        if requirement_of(route) is not None
        for method in sorted(route.methods or ())
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": EVIL, "Origin": f"http://{EVIL}"},  # DNS rebinding: the page's own name points to this machine
        {"Host": f"{EVIL}:8766"},
        {"Host": f"localhost.{EVIL}"},
        {"Host": "127.1"},
        {"Host": "0.0.0.0"},
        {"Origin": f"https://{EVIL}"},  # a page of another site
        {"Origin": f"http://localhost.{EVIL}"},
        {"Origin": "null"},  # a sandboxed frame, a file
        {"Origin": "http://localhost"},  # another server on this machine
        {"Origin": "chrome-extension://abc"},
    ],
    ids=str,
)
def test_no_route_answers_a_page_of_another_site(server: Running, place: Path, headers: dict[str, str]) -> None:
    routes = every_route(server)
    assert len(routes) > 40
    before = dump(place)
    bodies: list[tuple[str, bytes]] = [
        ("application/json", b'{"text": "planted"}'),
        ("text/plain", b'{"text": "planted"}'),  # what a form may send without asking first
        ("application/x-www-form-urlencoded", b"text=planted"),
    ]
    with server.client() as web:
        for method, address in routes:
            kind, body = bodies[len(address) % len(bodies)]
            answer = web.request(method, address, content=body, headers={**headers, "Content-Type": kind})
            assert answer.status_code in (403, 421), (method, address)
            assert not [name for name in answer.headers if name.startswith("access-control")]
    assert dump(place) == before


def test_a_form_of_an_old_browser_that_names_no_origin_writes_nothing(server: Running, place: Path) -> None:
    before = dump(place)
    with server.client() as web:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = web.post("/v1/memories", content=b'{"text": "planted"}', headers={"Content-Type": kind})
            assert answer.status_code in (400, 415, 422)
    assert dump(place) == before


# -- slow senders -----------------------------------------------------------------------------------------------------


def test_many_slow_senders_are_let_go_and_keep_nobody_waiting(server: Running) -> None:
    """Slow loris: a hundred connections that send a header byte by byte."""
    slow = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(100)]
    try:
        for connection in slow:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-")
        with server.client() as web:
            assert web.get("/livez").status_code == 200
            assert web.post("/v1/search", json={"query": "tea"}).status_code == 200
        until = time.monotonic() + 60
        waiting = set(slow)
        while waiting and time.monotonic() < until:
            for connection in tuple(waiting):
                try:
                    connection.sendall(b"a")  # a sign of life does not buy more time
                except OSError:
                    waiting.discard(connection)
            time.sleep(0.2)
        assert not waiting, f"{len(waiting)} are still held"
    finally:
        for connection in slow:
            connection.close()


def test_a_body_that_trickles_in_ends_with_the_time_of_a_request(path: Path) -> None:
    head = (
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
    )
    with (
        running(path, server={"timeout_s": 2.0}) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection,
    ):
        connection.sendall(head)
        connection.settimeout(0.3)
        answer = b""
        until = time.monotonic() + 60
        while not answer and time.monotonic() < until:
            try:
                connection.sendall(b" ")
                answer = connection.recv(65536)
            except TimeoutError:
                continue
        assert status(answer) == 504


def test_an_answer_that_nobody_fetches_holds_nothing_up(server: Running) -> None:
    with server.client(params={"user_id": "large"}) as web:
        web.post("/v1/memories", json={"candidates": [{"text": f"{n} " + "x" * 5000} for n in range(200)]})
        ask = b"GET /v1/memories?user_id=large&limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        deaf = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(20)]
        try:
            for connection in deaf:
                connection.sendall(ask)
            assert web.post("/v1/search", json={"query": "tea"}).status_code == 200
        finally:
            for connection in deaf:
                connection.close()


# -- paths and headers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/v1/whoami",
        "/%76%31/whoami",
        "/v1/%77hoami",
        "/./v1/whoami",
        "/x/../v1/whoami",
        "//v1/whoami",
        "/v1//whoami",
        "/v1/whoami/",
        "/V1/whoami",
        "/v1;x=1/whoami",
        "/v1/whoami%00",
        "/v1%2fwhoami",
        "/v1\\whoami",
        "/metrics",
        "/metrics/",
        "/%6detrics",
        "/livez/../v1/whoami",
        "/livez%2f..%2fv1%2fwhoami",
        "http://localhost/v1/whoami",
        "http://evil.example/v1/whoami",
        "*",
    ],
)
def test_no_spelling_of_a_path_leads_past_the_door(path: str, locked: Running) -> None:
    """With keys: whatever a request is called, without a key it gets no further."""
    answer = raw(locked, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert status(answer) in (307, 400, 401, 404), answer[:200]
    assert b"default_user" not in answer and b"jiyi_memories" not in answer and b"evil.example" not in answer


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("locked") / "memory.db", server={"burst": 100_000}) as server:
        server.key("mei")
        yield server


def test_ids_with_slashes_and_dots_stay_ids(server: Running) -> None:
    with server.client() as web:
        for odd in ("..", "%2e%2e", "..%2f..%2fkeys", "x%2fhistory", "%00", "%0d%0a", "%ff", "a" * 300):
            for method in ("GET", "DELETE"):
                sent = (
                    f"{method} /v1/memories/{odd}?user_id=mei HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                assert status(raw(server, sent.encode())) in (307, 404, 405, 422), (method, odd)
        assert web.get("/v1/keys").json() == {"items": []}


SMUGGLED = b"GET /v1/users HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 4\r\nContent-Length: 400\r\n",
        b"Content-Length: +4\r\n",
        b"Content-Length: 4, 4\r\nTransfer-Encoding: identity\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"X: a\r\n\tContent-Length: 400\r\n",
        b"Content-Length: 4\x0b\r\n",
    ],
)
def test_one_request_cannot_hide_another(server: Running, framing: bytes) -> None:
    """A proxy before the server and the server must not disagree where a request ends."""
    head = POST + framing + b"\r\n"
    answer = raw(server, head + b"0\r\n\r\n" + SMUGGLED)
    assert b'"users"' not in answer, "it was taken for a request of its own"


@pytest.mark.parametrize(
    "value", ["a\r\nSet-Cookie: x=1", "a\nSet-Cookie: x=1", "a\r\n\r\n<html>", "\u2028Set-Cookie: x"]
)
def test_nothing_that_is_sent_becomes_a_header(server: Running, value: str) -> None:
    """In a query, a name of a file, or a body: whatever comes back in a header."""
    quoted = str(httpx.QueryParams({"q": value}))[2:]
    with server.client(params={"user_id": "headers"}) as web:
        answers = [
            web.get(f"/v1/memories/{quoted}"),
            web.get(f"/v1/memories?cursor={quoted}"),
            web.post(f"/v1/imports?filename={quoted}.jsonl", content=b'{"role": "user", "content": "x"}\n'),
            web.post("/v1/memories", json={"text": "likes tea", "session_id": value}),
            web.get(f"/{quoted}"),
        ]
    for answer in answers:
        assert "set-cookie" not in answer.headers and answer.status_code < 500
        assert all("\n" not in header for header in answer.headers.values())
    for bare in (b"X-Request-Id: a\r\x20Set-Cookie: x=1", b"X-Request-Id: a\nSet-Cookie: x=1", b"X\x00: a"):
        got = raw(server, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n" + bare + b"\r\nConnection: close\r\n\r\n")
        assert b"\nset-cookie" not in got.lower()


def test_trailers_are_not_headers(server: Running) -> None:
    """A proxy before the server checks headers only."""
    body = b'10\r\n{"query": "xyz"}\r\n0\r\n'
    head = b"POST /v1/search?user_id=mei HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    sent = head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"X-Request-Id: mine\r\n\r\n"
    answer = raw(server, sent)
    assert status(answer) == 200 and b"x-request-id: mine" not in answer


# -- too large --------------------------------------------------------------------------------------------------------


def test_what_is_too_large_is_refused_before_it_is_read(place: Path, server: Running) -> None:
    announced = (
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n"
    )
    for size in (2**40, 10**30):
        assert status(raw(server, announced % size)) in (400, 413)
    packed = (
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    )
    packed += b"Content-Length: 4\r\nConnection: close\r\n\r\n\x1f\x8b\x08\x00"
    assert status(raw(server, packed)) in (400, 415)
    with server.client() as web:
        many = {"candidates": [{"content": "x"}] * 2001}
        assert web.post("/v1/memories", json=many).status_code == 422
        keys = {"text": "x", "metadata": {str(number): None for number in range(20_000)}}
        assert web.post("/v1/memories", json=keys).status_code in (201, 413, 422)
        number = b'{"query": "x", "limit": ' + b"9" * 100_000 + b"}"
        answer = web.post("/v1/search", content=number, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422)
        assert web.get("/livez").status_code == 200


ENDLESS = {
    "address": (b"GET /", b"x" * 1000),
    "header": (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"x" * 1000),
    "headers": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X: " + b"x" * 995 + b"\r\n"),
    "chunk": (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 1000),
    "trailer": (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"x" * 1000),
    "trailers": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"X: " + b"x" * 995 + b"\r\n",
    ),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_endless_headers_are_cut_off(server: Running, what: str) -> None:
    begin, part = ENDLESS[what]
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(begin)
        with pytest.raises(ConnectionError):
            for _ in range(100_000):  # 100 MB
                connection.sendall(part)


def test_an_endpoint_cannot_be_chosen_by_a_client(server: Running) -> None:
    """No request has the server open an address: such names are unknown to it."""
    with server.client() as web:
        for name in ("url", "endpoint", "base_url", "callback", "webhook", "embedder", "llm"):
            answer = web.post("/v1/search", json={"query": "x", name: "http://169.254.169.254/"})
            assert answer.status_code == 422
        told = json.dumps(web.get("/openapi.json").json()["paths"])
        assert '"format": "uri"' not in told


def test_making_the_application_for_others_without_a_key_is_refused(path: Path) -> None:
    from jiyi import InvalidInput, Memory

    memory: Any = Memory.open(path, embedder=WordEmbedder())
    with pytest.raises(InvalidInput, match="create a key first"):
        make_app(memory, host="10.0.0.7", keyless=True)
