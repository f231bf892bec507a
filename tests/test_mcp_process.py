"""`jiyi mcp` as its own process, over stdio and HTTP, with the official client, several clients, and enemies."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from jiyi.cli.app import app
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder
from test_mcp import ALL, call, save, text_of

JIYI = ["-c", "from jiyi.cli import main; main()", "mcp", "--chatgpt"]
KEY = "a key of more than sixteen letters"
QUIET = {"JIYI_EMBEDDER": "builtin", "JIYI_SEARCH__READER": "false", "OPENBLAS_NUM_THREADS": "1"}


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JIYI_", "LLM_", "EMBEDDING_"))}
    return {**kept, **QUIET, **more}


def stdio(path: Path, user: str = "mei", **more: str) -> Client:
    words = [*JIYI, "--store", str(path), "--user", user]
    return Client(StdioServerParameters(command=sys.executable, args=words, env=environment(**more)))


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def http(path: Path, *words: str, **more: str) -> Iterator[str]:
    """A server on a port of this machine; its address."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, *JIYI, "--http", "--port", str(port), "--store", str(path), "--user", "mei", *words],
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        for _ in range(600):
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, process.communicate()[1].decode()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=30)
    assert out == b"", "stdout stays empty"


async def use_every_tool(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == ALL
    key = await save(client, "Mei's cat is called 豆豆")
    found = await call(client, "search_memories", query="what is the name of the cat?")
    assert found.structured_content["results"][0]["memory_key"] == key
    for name, arguments in {
        "get_memory_detail": {"memory_key": key},
        "list_memories": {},
        "search": {"query": "cat"},
        "fetch": {"id": key},
        "update_memory": {"memory_key": key, "content": "猫叫豆豆"},
        "forget_memory": {"memory_key": key},
    }.items():
        assert (await call(client, name, **arguments)).structured_content
    assert (await client.read_resource("jiyi://recent")).contents
    assert (await client.get_prompt("use_memory")).messages


async def test_every_tool_over_stdio(path: Path) -> None:
    async with stdio(path) as client:
        await use_every_tool(client)


@pytest.fixture(scope="module")
def served(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A store with a server over HTTP, for several tests: starting one takes seconds."""
    path = tmp_path_factory.mktemp("mcp") / "memory.db"
    path.write_bytes(empty_store.read_bytes())
    with http(path, JIYI_TOOLS__CALLS_PER_MINUTE="200") as url:
        yield path, url


async def test_every_tool_over_http(served: tuple[Path, str]) -> None:
    async with Client(served[1]) as client:
        await use_every_tool(client)


async def test_clients_that_write_at_once_lose_nothing(served: tuple[Path, str]) -> None:
    """Two over stdio, each with a process of its own, and two over HTTP, all on one file."""
    path, url = served
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(client) for client in (stdio(path), stdio(path), Client(url), Client(url))
        ]

        async def write(number: int) -> list[str]:
            return [await save(clients[number], f"note {note} of client {number}") for note in range(10)]

        keys = [key for written in await asyncio.gather(*map(write, range(4))) for key in written]
        assert len(set(keys)) == 40
        seen = await call(clients[0], "get_memory_detail", memory_key=keys[-1])
        assert seen.structured_content["content"] == "note 9 of client 3"
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        stored = [item.content for item in memory.list(user_id="mei", limit=1000).items]
        assert sorted(text for text in stored if text.startswith("note")) == sorted(
            f"note {note} of client {number}" for note in range(10) for number in range(4)
        )


# -- stdio and garbage ------------------------------------------------------------------------------------------------

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
GARBAGE: list[bytes] = [
    b"hello?",
    b"{",
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe\x00\x01",
    b"[" * 100_000,
    b'{"jsonrpc": "1.0", "id": 7, "method": "tools/list"}',
    b'{"jsonrpc": "2.0"}',
    b'{"jsonrpc": "2.0", "id": 8, "method": "no/such/method"}',
    b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": 5}}',
    b'{"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": {"name": "save_memory", "arguments": [1]}}',
    b'{"jsonrpc": "2.0", "id": 11, "method": "resources/read", "params": {}}',
    b'{"jsonrpc": "2.0", "id": 12, "method": "prompts/get", "params": "x"}',
    b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 99, "result": {}}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 12345}}',
    b"x" * 1_000_000,
]


def test_garbage_does_not_kill_the_server(path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, *JIYI, "--store", str(path), "--user", "mei"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout

    def send(line: bytes) -> None:
        assert process.stdin
        process.stdin.write(line + b"\n")
        process.stdin.flush()

    def answer(number: int) -> dict[str, Any]:
        assert process.stdout
        for line in process.stdout:  # every line on stdout is a message of the protocol
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return message
        raise AssertionError("the server is gone")

    try:
        send(json.dumps(HELLO).encode())
        assert answer(1)["result"]["serverInfo"]["name"] == "jiyi"
        send(json.dumps(READY).encode())
        for line in GARBAGE:
            send(line)
        request = {"jsonrpc": "2.0", "id": 1000, "method": "tools/list"}
        send(json.dumps(request).encode())
        assert [tool["name"] for tool in answer(1000)["result"]["tools"]] == ALL
        saved = {"name": "save_memory", "arguments": {"content": "still here 还在"}}
        send(json.dumps({"jsonrpc": "2.0", "id": 1001, "method": "tools/call", "params": saved}).encode())
        assert answer(1001)["result"]["structuredContent"]["outcome"] == "saved"
        process.stdin.close()
        assert process.wait(timeout=30) == 0, "it ends in order when its client goes"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_garbage_before_the_handshake_does_not_kill_it_either(path: Path) -> None:
    lines = [*GARBAGE[:7], json.dumps(HELLO).encode(), b""]
    done = subprocess.run(
        [sys.executable, *JIYI, "--store", str(path)],
        env=environment(),
        input=b"\n".join(lines),
        capture_output=True,
        timeout=60,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(message.get("id") == 1 and "result" in message for message in answers)
    assert done.returncode == 0


# -- HTTP and its enemies ---------------------------------------------------------------------------------------------

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def test_a_web_page_cannot_reach_it_by_dns_rebinding(served: tuple[Path, str]) -> None:
    url = served[1]
    with httpx2.Client(timeout=60) as web:

        def status(**headers: str) -> int:
            return web.post(url, json=HELLO, headers={**ACCEPT, **headers}).status_code

        assert status() == 200
        assert status(Host="localhost:1234", Origin="http://localhost:5173") == 200
        assert status(Host="evil.example") == 421
        assert status(Host="127.0.0.1.evil.example:80") == 421
        assert status(Origin="https://evil.example") == 403
        assert status(Origin="null") == 403
        assert web.post(url, content=b"x" * 5_000_000, headers=ACCEPT).status_code == 413
        assert web.post(url, content=b"garbage", headers=ACCEPT).status_code == 400
        assert web.get(url.removesuffix("/mcp")).status_code == 404
        assert status() == 200


async def test_with_a_key_only_those_who_show_it_get_in(path: Path) -> None:
    with http(path, "--host", "0.0.0.0", JIYI_MCP__KEY=KEY) as url:
        async with httpx2.AsyncClient(headers=ACCEPT, timeout=60) as web:
            for shown in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": KEY},
                {"Authorization": f"Basic {KEY}"},
            ):
                refused = await web.post(url, json=HELLO, headers=shown)
                assert refused.status_code == 401
                assert refused.headers["WWW-Authenticate"] == "Bearer"
                assert KEY not in refused.text
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as web,
            Client(streamable_http_client(url, http_client=web)) as client,
        ):
            await save(client, "with a key")
            assert "with a key" in text_of(await call(client, "list_memories"))


# -- the command line -------------------------------------------------------------------------------------------------


def jiyi(*words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, list(words), prog_name="jiyi")
    assert result.exit_code == code, result.output
    return result


def test_other_machines_need_a_key(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("mcp", "--http", "--host", "0.0.0.0", "--store", str(path))
    monkeypatch.delenv("JIYI_MCP__KEY", raising=False)
    assert "set a key first" in jiyi(*words, code=2).stderr
    monkeypatch.setenv("JIYI_MCP__KEY", "short")
    refused = jiyi(*words, code=2).stderr
    assert "at least 16" in refused
    assert "short" not in refused


def test_a_port_that_is_taken_is_told(path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        words = ("mcp", "--http", "--port", str(taken.getsockname()[1]), "--store", str(path))
        refused = jiyi(*words, code=2).stderr
    assert "cannot listen on 127.0.0.1" in refused
    assert "serving" not in refused


def test_a_wrong_language_is_refused(path: Path) -> None:
    assert "'en', 'zh'" in jiyi("mcp", "--lang", "fr", "--store", str(path), code=2).stderr


def test_without_mcp_the_extra_is_named(path: Path) -> None:
    program = "import sys; sys.modules['mcp'] = sys.modules['mcp_types'] = None\n" + JIYI[1]
    words = [sys.executable, "-c", program, "mcp", "--store", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "pip install 'jiyi[mcp]'" in done.stderr
