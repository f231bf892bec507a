"""`jiyi worker` as a service: health, metrics and logs of a process without a REST server."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import httpx
import pytest

from jiyi import UserErased
from jiyi.http_server import JsonLines, TextLines, redacted
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder


@pytest.fixture
def worker(path: Path) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    options = ("--store", str(path), "--status-port", "0", "--log-level", "info", "--log-format", "json")
    command = [sys.executable, "-c", "from jiyi.cli import main; main()", "worker", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        url = next(line.split()[-1] for line in process.stderr if line.startswith("status at"))
        with httpx.Client(base_url=url.removesuffix("/metrics"), timeout=30) as web:
            yield web, process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_worker_has_health_and_metrics(path: Path, worker: tuple[httpx.Client, subprocess.Popen[str]]) -> None:
    web, _ = worker
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        memory.add("likes tea", user_id="mei")
    assert web.get("/livez").json() == {"status": "ok"}
    ready = web.get("/readyz")
    assert ready.status_code == 200 and ready.json()["ready"]
    told = web.get("/metrics").text
    assert 'jiyi_jobs{state="indexed"} 1' in told and "jiyi_store_bytes" in told and "mei" not in told
    assert web.get("/v1/memories").status_code == 404 and web.post("/metrics").status_code == 405
    with Memory.open(path, embedder=WordEmbedder()) as memory:
        one, all_of_them = memory.keys.create("one", user_ids=["mei"]), memory.keys.create("all", all_users=True)
    bearers = [{}, *({"Authorization": f"Bearer {key.key}"} for key in (one, all_of_them))]
    codes = []
    for _ in range(30):  # a new key counts within seconds
        codes = [web.get("/metrics", headers=bearer).status_code for bearer in bearers]
        if codes[0] == 401:
            break
        sleep(0.2)
    assert codes == [401, 401, 200], "as on the server, keys count once there is one"


def test_logs_name_no_user_and_are_text_or_json() -> None:
    error = UserErased(user_id="mei's")
    record = logging.LogRecord("jiyi.x", logging.WARNING, "", 1, "failed: %s", (error,), None)
    for formatter in (JsonLines(), TextLines("%(levelname)s %(name)s %(message)s")):
        line = formatter.format(record)
        assert "mei" not in line and "all data of user ***" in line
    assert json.loads(JsonLines().format(record))["logger"] == "jiyi.x"
    assert redacted("user 'a', user \"b'c\"") == "user ***, user ***"


def test_logging_of_a_program_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    from jiyi.http_server import start_logging

    own, root = logging.NullHandler(), logging.getLogger()
    with monkeypatch.context() as inside:
        inside.setattr(root, "handlers", [own])
        start_logging(level="info", lines="text")
        assert root.handlers == [own] and logging.getLogger("jiyi").level == logging.INFO
    logging.getLogger("jiyi").setLevel(logging.NOTSET)
