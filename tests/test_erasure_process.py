"""A deleted user does not return: servers, commands and imports in processes of their own, on both databases."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from jiyi.sync import Memory
from jiyi.testing import WordEmbedder
from support import Place
from test_server_process import JIYI, environment, served
from test_server_workers import eventually

MARK = "Zanzibarquartz"
IMPORTER = """
import asyncio, sys
from jiyi import JiyiError, Memory
from jiyi.testing import WordEmbedder

async def main():
    async with Memory.open(sys.argv[1], embedder=WordEmbedder(64)) as memory:
        try:
            await memory.transfer.import_chats(
                sys.argv[2], user_id="mei", progress=lambda done, total: print(done, flush=True)
            )
            print("done", flush=True)
        except JiyiError as error:
            print(type(error).__name__, flush=True)

asyncio.run(main())
"""


def chat(number: int) -> bytes:
    said = ({"role": "user", "content": f"{MARK} {at}", "timestamp": 1_700_000_000 + at} for at in range(number))
    return "".join(json.dumps(message) + "\n" for message in said).encode()


def kept(place: Place, user: str) -> int:
    with Memory.open(place, embedder=WordEmbedder()) as memory:
        return len(memory.messages(user_id=user, limit=1000).items) + memory.count(user_id=user)


@contextmanager
def serving_in(folder: Path, extra: dict[str, str]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server of the default store, or of the one that the environment names, that was started in a folder."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, *JIYI, "serve", "--port", "0"]
    env = {**environment(), **extra}
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://[\d.]+:\d+", line)
    assert found is not None, line
    try:
        yield found[0], process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


def spooled(folder: Path) -> list[str]:
    """Files that hold a mark or the name of the user."""
    marks = (MARK.encode(), b'"mei"')
    return [
        str(file) for file in folder.rglob("*") if file.is_file() and any(one in file.read_bytes() for one in marks)
    ]


def test_an_upload_does_not_return_after_a_kill_and_a_delete_from_another_folder(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("database") if backend == "postgres" else None
    extra = {"JIYI_URL": url} if url else {}
    data = Path(os.environ["XDG_DATA_HOME"]) / "jiyi"
    with serving_in(tmp_path / "one", extra) as (address, process):
        params = {"filename": "chat.jsonl", "user_id": "mei"}
        told = httpx.post(f"{address}/v1/imports", params=params, content=chat(2400), timeout=60)
        assert told.status_code == 202
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    (tmp_path / "two").mkdir()
    assert spooled(data / "imports"), "it waits to be imported"
    words = ["delete", "--all", "--user", "mei", "--yes"]
    done = subprocess.run(
        [sys.executable, *JIYI, *words],
        cwd=tmp_path / "two",
        env={**environment(), **extra},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert spooled(data / "imports") == [], "the deletion removes it"
    with serving_in(tmp_path / "one", extra) as (address, _), httpx.Client(base_url=address, timeout=60) as web:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            now = web.get(told.headers["location"], params={"user_id": "mei"})
            if now.status_code != 200 or now.json()["state"] != "running":
                break
            time.sleep(0.1)
        assert now.status_code == 404
        found = web.get("/v1/memories", params={"user_id": "mei", "memory_types": "message", "include_total": True})
        assert found.json()["total"] == 0
        added = web.post("/v1/memories", params={"user_id": "mei"}, json={"text": "I am back"})
        assert added.status_code == 201, "what is new is kept"
    assert kept(url or data / "memory.db", "mei") == 1


@pytest.mark.parametrize("batches", [1, 3])
def test_a_delete_in_another_process_ends_an_import(place: Place, tmp_path: Path, batches: int) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_bytes(chat(2400))
    process = subprocess.Popen(
        [sys.executable, "-c", IMPORTER, str(place), str(file)], env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        for _ in range(batches):
            assert process.stdout.readline().strip().isdigit()
        with Memory.open(place, embedder=WordEmbedder(64)) as memory:
            assert memory.delete_all("mei").messages
            memory.add("I am back", user_id="mei")
        assert process.communicate(timeout=120)[0].splitlines()[-1] == "UserErased"
    finally:
        process.kill()
        process.communicate()
    assert kept(place, "mei") == 1


def test_a_delete_by_one_worker_ends_the_import_of_another(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    monkeypatch.setenv("JIYI_SERVER__UPLOAD_DIR", str(spool))
    params = {"user_id": "mei"}
    with served(place, "--workers", "2") as (url, _):
        for attempt in range(8):
            posted = httpx.post(
                f"{url}/v1/imports", params={"filename": "chat.jsonl", **params}, content=chat(1000), timeout=60
            )
            assert posted.status_code == 202
            time.sleep(0.1 * attempt)
            assert httpx.delete(f"{url}/v1/memories", params={"all": True, **params}, timeout=60).status_code == 200
            where = url + posted.headers["location"]
            eventually(lambda where=where: httpx.get(where, params=params, timeout=60).status_code == 404)
            assert spooled(spool) == []
        time.sleep(2)
        assert kept(place, "mei") == 0
