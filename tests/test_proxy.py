"""The OpenAI-compatible proxy: the real client talks through it to a scripted model that keeps every request."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import uvicorn

from jiyi import InvalidInput, Memory
from jiyi.http_server import bind_socket
from jiyi.ids import new_id
from jiyi.server.proxy import Upstream, proxy_app
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

TOOL = {"type": "function", "function": {"name": "book", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}


class Model:
    """A server that answers with the next of its replies and keeps what it was sent."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, str, list[bytes]]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                model.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                status, kind, pieces = model.replies.pop(0)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("X-Upstream", "yes")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in [*pieces, b""]:
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    self.wfile.flush()

            do_GET = do_POST  # noqa: N815 - the name that the base class calls

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def say(self, text: str | None, **message: Any) -> None:
        """Answer a request of Chat Completions."""
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
        reply = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        self.replies.append((200, "application/json", [json.dumps(reply).encode()]))

    def respond(self, text: str) -> None:
        """Answer a request of Responses."""
        content = [{"type": "output_text", "text": text, "annotations": []}]
        output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}]
        reply = {"id": "r", "object": "response", "created_at": 0, "model": "m", "output": output, "tools": []}
        reply |= {"parallel_tool_calls": True, "tool_choice": "auto"}
        self.replies.append((200, "application/json", [json.dumps(reply).encode()]))

    def stream(self, *events: dict[str, Any]) -> bytes:
        whole = b"".join(b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n" for event in events)
        whole += b"data: [DONE]\n\n"
        # Pieces that end within lines and within characters.
        self.replies.append((200, "text/event-stream", [whole[at : at + 7] for at in range(0, len(whole), 7)]))
        return whole

    @property
    def last(self) -> dict[str, Any]:
        sent: dict[str, Any] = json.loads(self.requests[-1][2])
        return sent


def chunk(text: str) -> dict[str, Any]:
    delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    return {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [delta]}


class Running:
    """A proxy that runs in a thread, over a store of its own."""

    def __init__(self, path: Path, model: Model, key: str | None, limits: dict[str, Any]) -> None:
        self._path, self._model, self._key, self._limits = path, model, key, limits
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._up.wait(60)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        settings = load_settings(extraction={"enabled": True}, server=self._limits)
        opened = Memory.open(self._path, settings=settings, embedder=WordEmbedder(128))
        async with opened as self.memory, httpx.AsyncClient(verify=False) as http:
            upstream = Upstream.parse(self._model.url, key=self._key)
            app = proxy_app(self.memory, upstream, http, user_id="me", host="127.0.0.1")
            self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
            with bind_socket("127.0.0.1", 0) as sock:
                self.url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
                self._up.set()
                await self._server.serve(sockets=[sock])

    def do(self, verb: Any) -> Any:
        async def work() -> Any:
            return await verb

        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(60)

    def stored(self, user_id: str) -> list[tuple[str, str]]:
        """The messages of a user, oldest first, once everything queued is stored."""
        self.do(self.memory.sessions.flush(user_id=user_id))
        found = self.do(self.memory.messages(user_id=user_id)).items
        return [(one.role, one.text) for one in reversed(found)]

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)


Start = Callable[..., Running]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


@contextmanager
def proxied(path: Path, model: Model, key: str | None = None, **limits: Any) -> Iterator[Running]:
    running = Running(path, model, key, limits)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Running]:
    with proxied(tmp_path_factory.mktemp("proxy") / "memory.db", model) as running:
        running.do(running.memory.add("I live in Lisbon", user_id="mei"))
        running.do(running.memory.add("I am allergic to peanuts", user_id="me"))
        yield running


@contextmanager
def client(proxy: Running, key: str = "sk-of-the-program", **headers: str) -> Iterator[openai.OpenAI]:
    with httpx.Client(verify=False) as http:
        yield openai.OpenAI(base_url=proxy.url, api_key=key, default_headers=headers, http_client=http, max_retries=0)


def ask(text: str) -> Any:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]


def test_a_turn_gets_what_bears_on_it_and_is_stored(proxy: Running, model: Model) -> None:
    model.say("Lisbon.")
    with client(proxy, **{"X-Jiyi-User": "mei", "X-Jiyi-Session": "s1"}) as web:
        raw = web.chat.completions.with_raw_response.create(
            model="m", messages=ask("Which city do I live in?"), tools=[TOOL], seed=7, extra_body={"unknown": {"a": 1}}
        )
    assert raw.parse().choices[0].message.content == "Lisbon." and raw.headers["x-upstream"] == "yes"
    path, headers, _ = model.requests[-1]
    sent = model.last
    assert path == "/v1/chat/completions" and headers["authorization"] == "Bearer sk-of-the-program"
    assert not [name for name in headers if name.startswith("x-jiyi")]
    assert sent["tools"] == [TOOL] and sent["seed"] == 7 and sent["unknown"] == {"a": 1} and sent["model"] == "m"
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert sent["messages"][0]["content"] == "Be brief." and "I live in Lisbon" in sent["messages"][1]["content"]
    assert sent["messages"][1]["content"].startswith("Which city do I live in?\n\n<jiyi-memory")
    assert proxy.stored("mei") == [("user", "Which city do I live in?"), ("assistant", "Lisbon.")]


def test_without_a_key_and_a_header_it_is_the_user_of_the_command(proxy: Running, model: Model) -> None:
    model.say("No peanuts.")
    with client(proxy) as web:
        web.chat.completions.create(model="m", messages=[{"role": "user", "content": "What am I allergic to?"}])
    assert "peanuts" in model.last["messages"][0]["content"]
    assert ("assistant", "No peanuts.") in proxy.stored("me")


def test_a_body_without_memories_is_sent_on_as_it_came(proxy: Running, model: Model) -> None:
    model.say("Hello!")
    body = b'{"messages":[{"role":"user","content":"hello"}],  "model":"m", "temperature":0.10}'
    with client(proxy, **{"X-Jiyi-User": "nobody"}) as web:
        answer = httpx.post(f"{proxy.url}/chat/completions", content=body, headers={"X-Jiyi-User": "nobody"})
        assert answer.status_code == 200 and web.base_url
    assert model.requests[-1][2] == body
    for broken in (b"{", b"[]", b""):
        model.replies.append((400, "application/json", [b'{"error":{"message":"broken"}}']))
        assert httpx.post(f"{proxy.url}/chat/completions", content=broken).json() == {"error": {"message": "broken"}}
        assert model.requests[-1][2] == broken


def test_a_stream_passes_byte_by_byte_and_its_text_is_stored(proxy: Running, model: Model) -> None:
    whole = model.stream(chunk("你住"), chunk("在"), chunk("里斯本。"), {"choices": [], "usage": {"total_tokens": 3}})
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "我住在哪个城市？"}]}
    answer = httpx.post(f"{proxy.url}/chat/completions", json=body, headers={"X-Jiyi-User": "zhu"})
    assert answer.content == whole and answer.headers["content-type"] == "text/event-stream"
    assert proxy.stored("zhu") == [("user", "我住在哪个城市？"), ("assistant", "你住在里斯本。")]
    model.stream(chunk("Still "), chunk("Lisbon."))
    with client(proxy, **{"X-Jiyi-User": "zhu"}) as web:
        events = web.chat.completions.create(model="m", messages=ask("And now?"), stream=True)
        assert "".join(event.choices[0].delta.content or "" for event in events) == "Still Lisbon."
    assert proxy.stored("zhu")[-1] == ("assistant", "Still Lisbon.")


def test_responses_are_served_too(proxy: Running, model: Model) -> None:
    model.respond("Lisbon.")
    with client(proxy, **{"X-Jiyi-User": "mei"}) as web:
        reply = web.responses.create(model="m", input="In which city do I live?", instructions="Be brief.")
        assert reply.output_text == "Lisbon."
        assert model.requests[-1][0] == "/v1/responses" and model.last["instructions"] == "Be brief."
        assert model.last["input"].startswith("In which city do I live?\n\n") and "Lisbon" in model.last["input"]
        assert proxy.stored("mei")[-2:] == [("user", "In which city do I live?"), ("assistant", "Lisbon.")]
        delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0}
        model.stream(
            {**delta, "delta": "Still ", "sequence_number": 1}, {**delta, "delta": "there", "sequence_number": 2}
        )
        for _ in web.responses.create(model="m", input="And today?", stream=True):
            pass
    assert proxy.stored("mei")[-1] == ("assistant", "Still there")


def test_tool_calls_pass_and_each_message_is_stored_once(proxy: Running, model: Model) -> None:
    model.say(None, tool_calls=[CALL])
    asked: list[Any] = [{"role": "user", "content": "Book a table for two"}]
    with client(proxy, **{"X-Jiyi-User": "guest"}) as web:
        message = web.chat.completions.create(model="m", messages=asked, tools=[TOOL]).choices[0].message
        assert message.tool_calls is not None and message.tool_calls[0].id == "c1"
        asked += [message.to_dict(), {"role": "tool", "tool_call_id": "c1", "content": "booked"}]
        model.say("Done.")
        web.chat.completions.create(model="m", messages=asked, tools=[TOOL])
    assert [one["role"] for one in model.last["messages"] if one["role"] != "system"] == ["user", "assistant", "tool"]
    assert proxy.stored("guest") == [("user", "Book a table for two"), ("assistant", "Done.")]


def test_errors_of_the_model_pass_and_nothing_is_stored(proxy: Running, model: Model) -> None:
    error = {"error": {"message": "slow down", "type": "rate", "code": "rate_limit"}}
    model.replies.append((429, "application/json", [json.dumps(error).encode()]))
    with client(proxy, **{"X-Jiyi-User": "fails"}) as web, pytest.raises(openai.RateLimitError, match="slow down"):
        web.chat.completions.create(model="m", messages=ask("Hello?"))
    assert proxy.stored("fails") == []


def test_other_paths_pass_unchanged(proxy: Running, model: Model) -> None:
    model.replies.append((200, "application/json", [b'{"object":"list","data":[{"id":"m","object":"model"}]}']))
    with client(proxy) as web:
        assert [one.id for one in web.models.list(extra_query={"limit": "2"})] == ["m"]
    assert model.requests[-1][0] == "/v1/models?limit=2"
    before = len(model.requests)
    for path in ("%2e%2e/admin", "..%2fadmin", "a//b", "a/%2e/b"):
        assert httpx.get(f"{proxy.url}/{path}").status_code == 404, path
    assert len(model.requests) == before


def test_pages_and_other_hosts_are_refused(proxy: Running) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert httpx.get(f"{proxy.url}/models", headers=headers).status_code in (403, 421)


def test_keys_decide_the_user_and_never_leave(tmp_path: Path, model: Model) -> None:
    with proxied(tmp_path / "memory.db", model, key="sk-of-the-proxy", max_body_mb=1) as proxy:
        create = proxy.memory.keys.create
        own = proxy.do(create("mei", user_ids=["mei"])).key
        everyone = proxy.do(create("backend", all_users=True)).key
        reader = proxy.do(create("reader", scopes=["read"], user_ids=["mei"])).key
        proxy.do(proxy.memory.add("I live in Lisbon", user_id="mei"))
        with client(proxy, key="sk-wrong") as web, pytest.raises(openai.AuthenticationError):
            web.chat.completions.create(model="m", messages=ask("Hello?"))
        cases: list[tuple[str, dict[str, str], str]] = [
            (own, {}, "sk-of-the-proxy"),
            ("sk-of-the-program", {"X-Jiyi-Key": own}, "sk-of-the-proxy"),
            (own, {"api-key": own, "X_Jiyi_Key": own, "X-Jiyi-Note": "jiyi_"}, "sk-of-the-proxy"),
            (everyone, {"X-Jiyi-User": "mei"}, "sk-of-the-proxy"),
        ]
        for key, headers, expected in cases:
            model.say("Lisbon.")
            with client(proxy, key=key, **headers) as web:
                web.chat.completions.create(model="m", messages=ask("Which city do I live in?"))
            _, sent, body = model.requests[-1]
            assert "I live in Lisbon" in body.decode() and sent["authorization"] == f"Bearer {expected}"
            assert "jiyi_" not in json.dumps(sent) + body.decode()
        with client(proxy, key=own, **{"X-Jiyi-User": "lin"}) as web, pytest.raises(openai.NotFoundError):
            web.chat.completions.create(model="m", messages=ask("Hello?"))
        with client(proxy, key=everyone) as web, pytest.raises(openai.UnprocessableEntityError, match="name the user"):
            web.chat.completions.create(model="m", messages=ask("Hello?"))
        before = proxy.stored("mei")
        model.say("Read only.")
        with client(proxy, key=reader) as web:
            web.chat.completions.create(model="m", messages=ask("Which city do I live in?"))
        assert proxy.stored("mei") == before


def test_an_unreachable_model_is_a_bad_gateway(tmp_path: Path) -> None:
    gone = Model()
    gone.close()
    with proxied(tmp_path / "memory.db", gone) as proxy, client(proxy) as web:
        with pytest.raises(openai.InternalServerError, match="cannot be reached"):
            web.chat.completions.create(model="m", messages=ask("Hello?"))
        assert proxy.stored("me") == []


def test_a_key_of_jiyi_is_not_sent_on_even_without_a_key_for_the_model() -> None:
    upstream = Upstream.parse("http://127.0.0.1:1/v1/", key=None)
    key = f"jiyi_{new_id()}_{'a' * 43}"
    for given in (None, f"Bearer {key}", f"Bearer\t{key}", key):
        assert upstream.authorization(given) is None
    assert upstream.authorization("Bearer sk-x") == "Bearer sk-x"
    for url in ("ftp://x/v1", "models", "https://u:p@models.example.org/v1", "https://models.example.org/v1?key=1"):
        with pytest.raises(InvalidInput, match="--to"):
            Upstream.parse(url, key=None)
    with pytest.raises(InvalidInput, match="https"):
        Upstream.parse("http://models.example.org/v1", key="sk-x")
