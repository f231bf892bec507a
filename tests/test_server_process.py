"""`jiyi serve` as a process: how it starts, how it is stopped, and what a sudden end leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from jiyi.sync import Memory
from jiyi.testing import WordEmbedder

JIYI = ["-c", "from jiyi.cli import main; main()"]


def environment() -> dict[str, str]:
    """Without a model to load: messages are kept as they are, and found by their words."""
    return {**os.environ, "OPENBLAS_NUM_THREADS": "1", "JIYI_EXTRACTION__ENABLED": "false"}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=environment(), capture_output=True, text=True, timeout=60, check=False
    )


@contextmanager
def served(path: str | Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server in a process of its own, and the process."""
    process = subprocess.Popen(
        [sys.executable, *JIYI, "serve", "--port", "0", "--store", str(path), *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://[\d.]+:\d+", line)
    assert found is not None, line + process.communicate(timeout=60)[1]
    try:
        yield found[0], process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_acknowledged_is_there_afterwards(path: Path, how: signal.Signals) -> None:
    """Several clients write while it is stopped, in order or by force."""
    acknowledged: list[str] = []
    begun = threading.Event()

    def write(url: str, name: str) -> None:
        with httpx.Client(base_url=url, timeout=60, verify=False) as web:
            for number in range(1000):
                text = f"{name} said {number}"
                try:
                    answer = web.post("/v1/memories", json={"text": text})
                except httpx.HTTPError:
                    return
                if answer.status_code != 201:
                    return
                acknowledged.append(text)
                if len(acknowledged) > 10:
                    begun.set()

    with served(path, "--verbose") as (url, process):
        writers = [threading.Thread(target=write, args=(url, name)) for name in ("mei", "林梅")]
        for writer in writers:
            writer.start()
        assert begun.wait(120)
        process.send_signal(how)
        if how is signal.SIGTERM:
            _, log = process.communicate(timeout=60)
            assert process.returncode == 0, log
            lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
            assert any(line.get("route") == "/v1/memories" and line["status"] == 201 for line in lines)
            assert "said" not in log, "contents are not logged"
        for writer in writers:
            writer.join(60)
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        kept = {item.content for item in memory.list(user_id="default", limit=1000).items}
    assert set(acknowledged) <= kept and len(acknowledged) > 10


def test_a_request_that_is_half_here_is_finished_before_it_stops(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_SERVER__SHUTDOWN_TIMEOUT_S", "30")
    body = json.dumps({"text": "我吃素，对花生过敏"}).encode()
    head = "POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    with served(path) as (url, process):
        with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=60) as halfway:
            halfway.sendall(head.encode())
            assert halfway.recv(65536).startswith(b"HTTP/1.1 100"), "it is being worked on"
            halfway.sendall(body[:5])
            process.send_signal(signal.SIGTERM)
            with pytest.raises(httpx.TransportError):
                for _ in range(600):
                    httpx.get(f"{url}/livez", timeout=60)
                    time.sleep(0.1)
            halfway.sendall(body[5:])
            assert halfway.recv(65536).startswith(b"HTTP/1.1 201")
        assert process.wait(60) == 0
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        assert [item.content for item in memory.list(user_id="default").items] == ["我吃素，对花生过敏"]


def test_an_upload_that_was_acknowledged_survives_a_kill(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JIYI_SERVER__UPLOAD_DIR", str(path.parent / "spool"))
    said = ({"role": "user", "content": f"message {day}", "timestamp": 1_700_000_000 + day} for day in range(100))
    lines = "".join(json.dumps(message) + "\n" for message in said)
    with served(path) as (url, process):
        told = httpx.post(f"{url}/v1/imports?filename=chat.jsonl", content=lines.encode(), timeout=60)
        assert told.status_code == 202
        process.kill()
    with served(path) as (url, _), httpx.Client(base_url=url, timeout=60) as web:
        until = time.monotonic() + 60
        while (now := web.get(told.headers["location"]).json())["state"] == "running" and time.monotonic() < until:
            time.sleep(0.2)
        assert now["state"] == "done", now
        assert web.get("/v1/memories?memory_types=message&limit=1&include_total=true").json()["total"] == 100


def test_without_a_key_it_listens_to_this_machine_only(path: Path) -> None:
    words = ["serve", "--host", "0.0.0.0", "--port", "0", "--store", str(path)]
    done = run(*JIYI, *words)
    assert done.returncode == 2 and "create a key first" in done.stderr and done.stdout == ""
    made = run(*JIYI, "keys", "create", "phone", "--for", "mei", "--json", "--store", str(path))
    key = json.loads(made.stdout)["key"]
    with served(path, "--host", "0.0.0.0") as (url, _), httpx.Client(verify=False) as web:
        address = url.replace("0.0.0.0", "127.0.0.1")
        assert web.get(f"{address}/v1/whoami").status_code == 401
        assert web.get(f"{address}/v1/whoami", headers={"Authorization": f"Bearer {key}"}).status_code == 200
        assert web.get(f"{address}/v1/whoami", headers={"Host": "0.0.0.0"}).status_code == 421


def test_without_its_packages_it_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['fastapi'] = None; sys.argv = ['jiyi', 'serve']\nfrom jiyi.cli import main; main()"
    )
    done = run("-c", program)
    assert done.returncode == 1 and "pip install 'jiyi[server]'" in done.stderr
