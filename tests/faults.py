"""A server on loopback that speaks OpenAI's protocol, and misbehaves on demand.

It speaks HTTP by hand, because most of what servers get wrong cannot be said with a well-behaved library.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Writer = asyncio.StreamWriter
Behaviour = Callable[[dict[str, Any], Writer], Awaitable[None]]


@dataclass
class FaultServer:
    """`behave` says how the next requests are answered; the last one given stays."""

    url: str = ""
    behaviour: list[Behaviour] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def behave(self, *behaviours: Behaviour) -> None:
        self.behaviour = list(behaviours)

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            _, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}")
            self.requests.append(body)
            self.headers.append(headers)
            behave = self.behaviour.pop(0) if len(self.behaviour) > 1 else self.behaviour[0]
            await behave(body, writer)


@asynccontextmanager
async def fault_server() -> AsyncIterator[FaultServer]:
    faults = FaultServer()
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await faults.serve(reader, writer)
            writer.close()
        except asyncio.CancelledError:
            writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    faults.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield faults
    finally:
        server.close()
        _, hanging = await asyncio.wait(tasks, timeout=0.05) if tasks else (set(), set())
        for task in hanging:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# -- ways to answer ---------------------------------------------------------------------------------------------------


def http(status: int, body: bytes, *, kind: str = "application/json", **headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status} Whatever",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def raw(data: bytes) -> Behaviour:
    """These bytes, then the end of the connection."""

    async def behave(request: dict[str, Any], writer: Writer) -> None:
        writer.write(data)
        await writer.drain()

    return behave


def status(code: int, message: str = "no", *, kind: str = "application/json", **headers: str) -> Behaviour:
    body = message if kind != "application/json" else json.dumps({"error": {"message": message, "type": "x"}})
    return raw(http(code, body.encode(), kind=kind, **headers))


def completion(content: Any, *, finish: str = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20} if usage is None else usage,
    }


def answer(body: Any, **headers: str) -> Behaviour:
    return raw(http(200, json.dumps(body).encode(), **headers))


def says(content: Any, *, finish: str = "stop", **message: Any) -> Behaviour:
    """A completion with this text; what is no text is written as JSON."""
    text = content if isinstance(content, str) or content is None else json.dumps(content, ensure_ascii=False)
    return answer(completion(text, finish=finish, **message))


def by_task(**contents: Any) -> Behaviour:
    """A text for each task, told apart by what the prompt asks for; tasks without one get an empty list."""

    async def behave(request: dict[str, Any], writer: Writer) -> None:
        asked = request["messages"][-1]["content"]
        task = next(
            (key for key in ("memories", "episodes", "judgements", "keywords") if f'{{"{key}"' in asked), "memories"
        )
        await says(contents.get(task, {task: []}))(request, writer)

    return behave


async def hang(request: dict[str, Any], writer: Writer) -> None:
    await asyncio.sleep(3600)


async def reset(request: dict[str, Any], writer: Writer) -> None:
    writer.transport.abort()


async def half(request: dict[str, Any], writer: Writer) -> None:
    """Half of a good reply, then the connection ends."""
    data = http(200, json.dumps(completion('{"memories": []}')).encode())
    writer.write(data[: len(data) - 40])
    await writer.drain()


async def drip(request: dict[str, Any], writer: Writer) -> None:
    """A good reply, one byte after another, with pauses that no read timeout notices."""
    for byte in http(200, json.dumps(completion('{"memories": []}')).encode()):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


async def drip_spaces(request: dict[str, Any], writer: Writer) -> None:
    """Spaces for ever, as some servers send to keep a connection alive."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def flood(request: dict[str, Any], writer: Writer) -> None:
    """A reply without end."""
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"x": "')
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def flood_error(request: dict[str, Any], writer: Writer) -> None:
    """An error without end."""
    writer.write(b"HTTP/1.1 500 No\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


def bomb() -> bytes:
    packed = gzip.compress(b" " * 50_000_000)
    return http(200, packed, Content_Encoding="gzip")


broken_chunks = raw(
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n{}\r\n0\r\n\r\n"
)
no_http = raw(b"SSH-2.0-OpenSSH_9.6\r\n")
