"""The proxy between clients that leave or send odd headers and a model's server that misbehaves."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from jiyi.server.observed_reply import ObservedReply
from jiyi.validation import MAX_TEXT
from support import cpu_unit
from test_proxy import chunk, proxied

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
Answer = Callable[[socket.socket], None]


def event(text: str) -> bytes:
    return b"data: " + json.dumps(chunk(text)).encode() + b"\n\n"


@contextmanager
def raw_model(answer: Answer) -> Iterator[SimpleNamespace]:
    """Serve a model's server that gets the socket after each request; it has the requests' heads."""
    listening = socket.create_server(("127.0.0.1", 0))
    model: Any = SimpleNamespace(url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", requests=[], open=0)

    def serve(connection: socket.socket) -> None:
        model.open += 1
        with connection, suppress(OSError):
            model.requests.append(connection.recv(1 << 16))
            answer(connection)
        model.open -= 1

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with closing(listening):
        yield model


def turn(text: str) -> dict[str, Any]:
    return {"model": "m", "stream": True, "messages": [{"role": "user", "content": text}]}


def stream_until_closed(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    for at in range(2000):
        connection.sendall(event(f"word{at} "))
        time.sleep(0.005)


def test_headers_in_any_encoding_pass(tmp_path: Path) -> None:
    note = "记忆 café".encode()
    reply = HEAD.replace(b"\r\n\r\n", b"\r\nX-Note: " + note + b"\r\n\r\n") + event("Hello.")
    with raw_model(lambda connection: connection.sendall(reply)) as model, proxied(tmp_path / "m.db", model) as proxy:
        headers = {b"X-Title": note, b"X-Jiyi-User": "林梅".encode()}
        answer = httpx.post(f"{proxy.url}/chat/completions", json=turn("Hello there"), headers=headers)
        assert answer.status_code == 200 and event("Hello.") in answer.content
        assert dict(answer.headers.raw)[b"x-note"] == note
        assert note in model.requests[0]
        assert proxy.stored("林梅") == [("user", "Hello there"), ("assistant", "Hello.")]


def test_a_client_that_leaves_keeps_no_connection_and_its_turn_is_stored(tmp_path: Path) -> None:
    with raw_model(stream_until_closed) as model, proxied(tmp_path / "m.db", model) as proxy:
        for at in range(12):
            body, headers = turn(f"My cat number {at} is called Tom"), {"X-Jiyi-User": f"user{at}"}
            with httpx.stream("POST", f"{proxy.url}/chat/completions", json=body, headers=headers) as answer:
                if at % 2:
                    next(answer.iter_raw())
        until = time.monotonic() + 20
        while model.open and time.monotonic() < until:
            time.sleep(0.05)
        assert model.open == 0
        stored = [proxy.stored(f"user{at}") for at in range(12)]
        assert [messages[:1] for messages in stored] == [
            [("user", f"My cat number {at} is called Tom")] for at in range(12)
        ]


def test_a_reply_that_breaks_off_ends_early_for_the_client_too(tmp_path: Path) -> None:
    head = HEAD.replace(b"Connection: close", b"Content-Length: 100000")
    with (
        raw_model(lambda connection: connection.sendall(head + event("Half"))) as model,
        proxied(tmp_path / "m.db", model) as proxy,
    ):
        headers = {"X-Jiyi-User": "mei"}
        with suppress(httpx.RemoteProtocolError):
            answer = httpx.post(f"{proxy.url}/chat/completions", json=turn("I have a dog"), headers=headers)
            raise AssertionError(f"the client took {len(answer.content)} bytes for the whole reply")
        assert proxy.stored("mei") == [("user", "I have a dog"), ("assistant", "Half")]


def test_a_long_reply_costs_neither_memory_nor_time() -> None:
    line = ObservedReply(streamed=True)
    began = time.thread_time()
    for _ in range(7000):
        line.feed(b"x" * 1024)
    assert time.thread_time() - began < 60 * cpu_unit(), "an endless line is searched again and again"
    words = ObservedReply(streamed=True)
    for _ in range(300):
        words.feed(event("a" * 1000) * 10)
    assert len(words.text()) == MAX_TEXT
    assert sum(map(len, words._parts)) <= MAX_TEXT + 1000
