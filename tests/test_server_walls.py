"""Who gets in and how much they may ask: keys, scopes, names, sizes, rates, and what a refusal looks like."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from jiyi import InvalidInput, Memory
from jiyi.http_server import bind_socket, host_names, redacted, without_port
from jiyi.keys import hash_key, key_id_of
from jiyi.models import utc_now
from jiyi.server.app import make_app
from jiyi.store.schema.tables import ApiKeyRow
from jiyi.testing import WordEmbedder
from rest import Running, running
from support import ask, rows_with

ALL = ("read", "write", "delete", "admin")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """With keys; small limits."""
    limits = {"max_body_mb": 0.01, "max_upload_mb": 0.05, "receive_timeout_s": 1.0}
    with running(tmp_path_factory.mktemp("walls") / "memory.db", hosts=["memory.example.org"], server=limits) as server:
        server.key(scopes=["read"])
        yield server


@pytest.fixture(scope="module")
def web(server: Running) -> Iterator[httpx.Client]:
    with server.client(server.key("mei", scopes=ALL)) as client:
        yield client


def code(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of a refusal, which is a problem as RFC 9457 has it."""
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code and told["type"] == f"urn:jiyi:problem:{told['code']}"
    assert told["title"] and told["detail"]
    return answer.status_code, told["code"]


# -- keys -------------------------------------------------------------------------------------------------------------


def test_without_keys_it_is_for_this_machine_only(path: Path) -> None:
    memory = Memory.open(path, embedder=WordEmbedder())
    for host in ("0.0.0.0", "::", "192.168.1.7", "memory.example.org"):
        with pytest.raises(InvalidInput, match="create a key first"):
            make_app(memory, host=host, keyless=True)


def test_from_the_first_key_on_every_request_must_show_one(path: Path) -> None:
    with running(path) as server, server.client() as nobody:
        told = nobody.get("/v1/whoami").json()
        assert told["keys_needed"] is False and told["default_user"] == "default"
        key = server.key("mei", scopes=["read"])
        assert code(nobody.get("/v1/whoami")) == (401, "key_needed")
        assert nobody.get("/v1/whoami").headers["www-authenticate"] == "Bearer"
        for wrong in (key[:-1], key + "x", key.swapcase(), "x", "jiyi_" + "0" * 26 + "_" + "A" * 43):
            assert code(nobody.get("/v1/whoami", headers={"Authorization": f"Bearer {wrong}"})) == (401, "key_needed")
        assert nobody.get("/v1/whoami", headers={"Authorization": f"Basic {key}"}).status_code == 401
        told = nobody.get("/v1/whoami", headers={"Authorization": f"bearer {key}"}).json()
        assert told["scopes"] == ["read"] and told["user_ids"] == ["mei"] and told["default_user"] == "mei"
        server.do(server.memory.keys.revoke(key_id_of(key)))
        assert nobody.get("/v1/whoami", headers={"Authorization": f"Bearer {key}"}).status_code == 401
        assert nobody.get("/v1/whoami").status_code == 401, "that all were withdrawn does not open the door"


def test_a_key_is_kept_as_a_hash_only(path: Path) -> None:
    with running(path) as server:
        key = server.key("mei")
    assert rows_with(path, key, key[32:]) == {}, "neither the key nor its secret half"
    assert ask(path, "SELECT key_hash FROM api_keys") == [(hash_key(key),)]


def test_a_key_ends_when_it_said(server: Running) -> None:
    key = server.key("mei", expires_at=utc_now() + timedelta(hours=1))
    with server.client(key) as web:
        assert web.get("/v1/whoami").status_code == 200

    def end(session: Any) -> None:
        mine = ApiKeyRow.id == key_id_of(key)
        session.execute(update(ApiKeyRow).where(mine).values(expires_at=utc_now()))

    server.do(server.memory._engine.store.database.write([], end))
    server.memory.keys._cached = None  # rather than wait for a second
    with server.client(key) as web:
        assert web.get("/v1/whoami").status_code == 401
    with pytest.raises(InvalidInput, match="in the past"):
        server.key("mei", expires_at=utc_now())


@pytest.mark.parametrize(
    ("scope", "method", "address", "body"),
    [
        ("read", "POST", "/v1/search", {"query": "tea"}),
        ("write", "POST", "/v1/memories", {"text": "likes tea"}),
        ("delete", "DELETE", "/v1/memories?all=true", None),
        ("admin", "GET", "/v1/keys", None),
    ],
)
def test_a_scope_opens_what_it_names_and_nothing_else(
    server: Running, scope: str, method: str, address: str, body: Any
) -> None:
    with server.client(server.key("scopes", scopes=[scope])) as web:
        assert web.request(method, address, json=body).status_code in (200, 201)
    with server.client(server.key("scopes", scopes=[other for other in ALL if other != scope])) as web:
        assert code(web.request(method, address, json=body)) == (403, "scope_missing")


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("PATCH", "/v1/memories/{id}", {"importance": 0.4}),
        ("POST", "/v1/memories/{id}/restore", {"to_version": 1}),
        ("POST", "/v1/undo", {"to": "2020-01-01T00:00:00Z"}),
        ("POST", "/v1/compress", None),
        ("PUT", "/v1/memories/{id}/", {"text": "likes coffee"}),
    ],
)
def test_what_replies_with_stored_texts_needs_read_too(server: Running, method: str, address: str, body: Any) -> None:
    with server.client(server.key("writer", scopes=["write"])) as web:
        [made] = web.post("/v1/memories", json={"text": "the PIN is 4711"}).json()["memories"]
        answer = web.request(method, address.format(id=made["id"]), json=body)
        assert answer.status_code == 403 and "4711" not in answer.text


def test_a_key_for_several_users_says_whom_it_means(server: Running) -> None:
    with server.client(server.key("ann", "bob")) as web:
        assert code(web.get("/v1/memories")) == (422, "user_needed")
        assert web.get("/v1/memories", params={"user_id": "bob"}).status_code == 200
        foreign = web.get("/v1/memories", params={"user_id": "mei"})
        nobody = web.get("/v1/memories", params={"user_id": "mey"})
        assert code(foreign) == code(nobody) == (404, "not_found")
        for twice in ("user_id=mei&user_id=bob", "user_id=bob&user_id=mei"):
            answer = web.get(f"/v1/memories?{twice}")
            assert answer.status_code == 404 or all(item["user_id"] == "bob" for item in answer.json()["items"])
    with server.client(server.key("ann")) as web:
        assert web.post("/v1/memories", json={"text": "tea", "user_id": "mei"}).status_code == 422
        assert code(web.post("/v1/retrieve", json={"query": "tea", "user_id": "mei"})) == (404, "not_found")
        said = {"new_raw_data_list": [{"text": "tea"}], "user_id_list": ["ann", "mei"]}
        assert code(web.post("/v1/memorize", json=said)) == (404, "not_found")
        assert web.get("/v1/memories").json()["items"] == [], "nothing was stored for anybody"


def test_a_key_cannot_give_away_see_or_withdraw_more_than_it_opens(server: Running, web: httpx.Client) -> None:
    everything = server.key(scopes=ALL)
    with server.client(server.key("ann", scopes=["admin", "read"])) as ann:
        for more in (
            {"scopes": ["write"], "user_ids": ["ann"]},
            {"scopes": ["read"], "user_ids": ["ann", "bob"]},
            {"scopes": ["read"], "all_users": True},
        ):
            assert code(ann.post("/v1/keys", json={"name": "x", **more})) == (403, "scope_missing")
        assert ann.post("/v1/keys", json={"name": "x", "scopes": ["read"]}).status_code == 422, "for whom?"
        made = ann.post("/v1/keys", json={"name": "mine", "scopes": ["read"], "user_ids": ["ann"]})
        assert made.status_code == 201
        with server.client(made.json()["key"]) as hers:
            assert hers.get("/v1/memories").status_code == 200
        assert code(ann.delete(f"/v1/keys/{key_id_of(everything)}")) == code(ann.delete("/v1/keys/nothing"))
        assert all(key["user_ids"] == ["ann"] for key in ann.get("/v1/keys").json()["items"])
        assert "key_hash" not in ann.get("/v1/keys").text
        assert ann.delete(f"/v1/keys/{made.json()['id']}").json()["revoked_at"] is not None
        assert code(ann.get("/v1/audit")) == (403, "scope_missing")
        assert code(ann.get("/v1/jobs", params={"all_users": True})) == (403, "scope_missing")
        assert code(ann.get("/v1/stats", params={"all_users": True})) == (403, "scope_missing")
        for everybodys in ("/v1/metrics", "/metrics", "/v1/health"):
            assert code(ann.get(everybodys)) == (403, "scope_missing")
    shared = {"pairs": [{"keyword": "a", "synonym": "b"}], "shared": True}
    assert code(web.post("/v1/synonyms", json=shared)) == (403, "scope_missing")
    with server.client(everything) as admin:
        both = {"name": "x", "scopes": ["read"], "user_ids": ["ann"], "all_users": True}
        assert code(admin.post("/v1/keys", json=both)) == (422, "invalid_input")
        assert admin.post("/v1/synonyms", params={"user_id": "mei"}, json=shared).json() == {"changed": 1}
        actions = {entry["action"] for entry in admin.get("/v1/audit").json()["items"]}
        assert {"key.create", "key.revoke"} <= actions


def test_the_history_names_the_key(server: Running, web: httpx.Client) -> None:
    kept = web.post("/v1/memories", json={"text": "speaks French", "actor": "import"}).json()["memories"][0]
    web.patch(f"/v1/memories/{kept['id']}", json={"importance": 1.0})
    history = web.get(f"/v1/memories/{kept['id']}/history").json()["items"]
    assert [change["actor"] for change in history] == ["import (key test)", "key test"]


# -- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Host": "localhost@evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "localhost:1"}, 200),
        ({"Host": "MEMORY.example.org"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:9"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Host": "memory.example.org", "Origin": "https://memory.example.org"}, 200),
        ({"Host": "localhost:80", "Origin": "http://localhost:80"}, 200),
    ],
)
def test_only_its_own_names_and_its_own_pages(web: httpx.Client, headers: dict[str, str], status: int) -> None:
    answer = web.get("/v1/whoami", headers=headers)
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers
    preflight = web.options("/v1/memories", headers={**headers, "Access-Control-Request-Method": "POST"})
    assert preflight.status_code in (405, status) and "access-control-allow-origin" not in preflight.headers


def test_a_name_without_its_port() -> None:
    assert without_port("[::1]:8766") == "[::1]" and without_port("[::1]") == "[::1]"
    assert without_port("LOCALHOST:80") == "localhost" and without_port("a:b") == "a:b"
    assert "0.0.0.0" not in host_names("0.0.0.0") and "[fd00::1]" in host_names("fd00::1")


def test_answers_are_sent_at_once() -> None:
    """asyncio turns Nagle's algorithm off only on sockets that name their protocol; else an answer waits 40 ms."""
    with bind_socket("127.0.0.1", 0) as sock:
        assert sock.proto == socket.IPPROTO_TCP
        with pytest.raises(InvalidInput, match="cannot listen on"):
            bind_socket("127.0.0.1", sock.getsockname()[1])


# -- how much ---------------------------------------------------------------------------------------------------------


def test_a_body_has_its_bounds(server: Running, web: httpx.Client) -> None:
    large = json.dumps({"text": "x" * 20_000})
    plain = {"Content-Type": "application/json"}
    assert code(web.post("/v1/memories", content=large, headers=plain)) == (413, "too_large")
    unannounced = (part.encode() for part in (large[:9000], large[9000:]))
    assert code(web.post("/v1/memories", content=unannounced, headers=plain)) == (413, "too_large")
    deep: Any = "x"
    for _ in range(65):
        deep = [deep]
    assert code(web.post("/v1/memories", json={"text": "x", "metadata": {"deep": deep}})) == (400, "bad_request")
    deepest = '{"text": "x", "metadata": ' + "[" * 4000
    for wrong in ("{", deepest, "NaN", '{"query": NaN}', b"\xff", ""):
        answer = web.post("/v1/search", content=wrong, headers=plain)
        assert answer.status_code in (400, 422), wrong
    assert code(web.post("/v1/search", content='{"query": "x"}', headers={"Content-Type": "text/plain"}))[0] == 415
    assert code(web.post("/v1/search", json={"query": "x", "nonsense": 1})) == (422, "invalid_input")
    assert web.post("/v1/search", json={"query": "x" * 9000}).json()["errors"][0]["argument"] == "body.query"
    assert code(web.post("/v1/imports?filename=a.json", content=b"x" * 60_000)) == (413, "too_large")
    assert code(web.post("/v1/fetch", json={"memory_ids": ["x"] * 1001}))[0] == 422


def raw(server: Running, sent: bytes, *, wait: bool = True) -> bytes:
    """What comes back on a bare connection until the server closes it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(sent)
        got = b""
        while wait and (part := connection.recv(65536)):
            got += part
        return got


def test_whoever_sends_too_slowly_is_let_go(server: Running) -> None:
    assert raw(server, b"") == b""
    assert raw(server, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") == b""
    key = server.key("mei")
    head = f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    assert b"408" in raw(server, head.encode()).splitlines()[0]
    kept_open = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /li"
    assert raw(server, kept_open).count(b"HTTP/1.1 200") == 1


def test_odd_requests_are_refused(server: Running) -> None:
    for odd in (
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\nConnection: close\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"x" * 70_000 + b"\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\nConnection: close\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, x\r\nConnection: close\r\n\r\n",
        b"nonsense\r\n\r\n",
    ):
        assert raw(server, odd).split(b" ")[1] in (b"400", b"421", b"431", b"501"), odd[:60]


@pytest.mark.parametrize(
    "address",
    ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/console/../app.py", "/..%2fapp.py", "//etc/passwd", "/app.py"],
)
def test_no_path_leads_to_the_disk(server: Running, address: str) -> None:
    sent = f"GET {address} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert raw(server, sent.encode()).split(b" ")[1] == b"404"


def test_what_a_client_sends_does_not_become_a_header(web: httpx.Client) -> None:
    named = web.get("/v1/whoami", headers={"X-Request-Id": "mine-1"})
    assert named.headers["x-request-id"] == "mine-1"
    for odd in ("a b", "x" * 65, "<script>"):
        assert web.get("/v1/whoami", headers={"X-Request-Id": odd}).headers["x-request-id"] != odd
    split = web.get("/v1/memories/a%0d%0aSet-Cookie:%20x=1")
    assert split.status_code == 404 and "set-cookie" not in split.headers
    assert split.json()["request_id"] == split.headers["x-request-id"]


def test_too_many_requests_are_put_off(path: Path) -> None:
    with running(path, server={"burst": 5, "requests_per_minute": 6}) as server:
        greedy, modest = server.key("mei"), server.key("ann")
        with server.client(greedy) as web:
            answers = [web.get("/v1/whoami") for _ in range(7)]
            assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 2
            assert code(answers[-1]) == (429, "too_many_requests") and int(answers[-1].headers["retry-after"]) >= 1
            assert web.get("/livez").status_code == 200
        with server.client(modest) as web:
            assert web.get("/v1/whoami").status_code == 200


def test_what_takes_too_long_is_given_up_and_says_so(path: Path) -> None:
    import asyncio

    class Slow(WordEmbedder):
        async def embed_query(self, text: str) -> Any:
            await asyncio.sleep(600)
            return await super().embed_query(text)

    with (
        running(path, embedder=Slow(), server={"timeout_s": 0.3, "max_concurrent": 1}) as server,
        server.client() as web,
    ):
        web.post("/v1/memories", json={"text": "tea"})
        assert code(web.post("/v1/search", json={"query": "tea"})) == (504, "timeout")
        assert web.get("/v1/whoami").status_code == 200


# -- what is told -----------------------------------------------------------------------------------------------------


def test_an_unexpected_failure_tells_nothing_but_where_to_look(
    server: Running, web: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("postgresql://mei:hunter2@db/jiyi is broken")

    monkeypatch.setattr(server.memory.usage, "groups", broken)
    answer = web.get("/v1/groups")
    assert code(answer) == (500, "internal") and "hunter2" not in answer.text and "broken" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    for _ in range(1200):  # it is logged after it was answered
        if any(getattr(record, "request_id", None) == answer.headers["x-request-id"] for record in caplog.records):
            return
        time.sleep(0.05)
    pytest.fail("the log has no line with the id of the request")


def test_a_line_about_a_request_has_no_contents(
    server: Running, web: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    web.post("/v1/search?user_id=mei", json={"query": "a very private question"})
    lines: list[logging.LogRecord] = []
    for _ in range(1200):  # it is written after the answer was sent
        lines = [record for record in caplog.records if record.name == "jiyi.server.auth"]
        if lines:
            break
        time.sleep(0.05)
    assert lines[-1].__dict__["route"] == "/v1/search" and lines[-1].__dict__["status"] == 200
    told = "".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records if record.name != "httpx")
    assert "private" not in told and "user_id" not in told and "jiyi_0" not in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key jiyi_" + "0" * 26 + "_" + "A" * 43, "key jiyi_" + "0" * 26 + "_***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("redis://:pass@host", "redis://:***@host"),
        ("postgresql://mei:hunter2@db/x", "postgresql://mei:***@db/x"),
        ('{"password": "hunter2"}', '{"password": "***"}'),
        ("sk-1234567890abc", "sk-***"),
        ("花生 token=abc", "花生 token=***"),
    ],
)
def test_secrets_are_taken_out_of_the_log(text: str, told: str) -> None:
    assert redacted(text) == told


def test_pages_come_with_a_strict_policy(server: Running) -> None:
    from jiyi.server.console_files import FOLDER

    if not FOLDER.is_dir():
        pytest.skip("the console is not built in")
    with server.client() as web:
        page = web.get("/")
        assert page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert web.get("/", headers={"If-None-Match": page.headers["etag"]}).status_code == 304
