"""`jiyi serve --workers 2`: each process answers alike, one that dies is replaced, and all end together."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from jiyi.server.spool import Spool
from test_server_process import served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for the processes under /proc")


def workers_of(pid: int) -> set[int]:
    found = set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            command = Path(f"/proc/{child}/cmdline").read_text()
        except OSError:
            continue
        if "spawn_main" in command:
            found.add(int(child))
    return found


@contextmanager
def only(worker: int, others: set[int]) -> Iterator[None]:
    """Let one worker answer: the others are stopped, and accept no connection."""
    for other in others - {worker}:
        os.kill(other, signal.SIGSTOP)
    try:
        yield
    finally:
        for other in others - {worker}:
            os.kill(other, signal.SIGCONT)


def eventually(holds: Callable[[], Any]) -> Any:
    for _ in range(1200):
        if found := holds():
            return found
        time.sleep(0.1)
    return pytest.fail("it did not happen")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_each_worker_sees_at_once_what_another_one_did(
    place: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JIYI_SERVER__UPLOAD_DIR", str(tmp_path / "spool"))
    chat = "".join(json.dumps({"role": "user", "content": f"message {day}"}) + "\n" for day in range(5))
    with served(place, "--workers", "2") as (url, process):
        workers = workers_of(process.pid)
        assert len(workers) == 2
        one, other = workers
        with only(one, workers):
            assert httpx.post(f"{url}/v1/memories", json={"text": "I drink green tea"}, timeout=60).status_code == 201
            imported = httpx.post(f"{url}/v1/imports?filename=chat.jsonl", content=chat.encode(), timeout=60)
            where = url + imported.headers["location"]
            eventually(lambda: httpx.get(where, timeout=60).json()["state"] == "done")
        with only(other, workers):
            found = httpx.post(f"{url}/v1/search", json={"query": "green tea"}, timeout=60).json()
            assert found["hits"][0]["content_preview"] == "I drink green tea"
            assert httpx.get(where, timeout=60).json()["done"] == 5
            assert [one["state"] for one in httpx.get(f"{url}/v1/imports", timeout=60).json()["items"]] == ["done"]
            assert b"event: end" in httpx.get(f"{where}/events", timeout=60).content
            assert httpx.delete(f"{url}/v1/memories?all=true", timeout=60).status_code == 200
        with only(one, workers):
            assert httpx.get(where, timeout=60).status_code == 404
            assert httpx.post(f"{url}/v1/search", json={"query": "green tea"}, timeout=60).json()["hits"] == []


def test_metrics_are_those_of_all_workers(path: Path) -> None:
    lines = (
        'jiyi_http_requests_total{method="POST",route="/v1/memories",status="201"} 2',
        'jiyi_http_request_seconds_count{method="POST",route="/v1/memories"} 2',
        "jiyi_add_seconds_count 2",
    )
    with served(path, "--workers", "2") as (url, process):
        workers = workers_of(process.pid)
        for worker in workers:
            with only(worker, workers):
                assert httpx.post(f"{url}/v1/memories", json={"text": f"tea {worker}"}, timeout=60).status_code == 201

        def shown_by_all() -> bool:
            texts = [httpx.get(f"{url}/metrics", timeout=60).text for _ in range(10)]
            return all(line in text for line in lines for text in texts)

        eventually(shown_by_all)
        os.kill(min(workers), signal.SIGKILL)
        eventually(lambda: workers_of(process.pid) - workers)
        eventually(shown_by_all)


def test_a_killed_worker_is_replaced_and_a_signal_ends_all(path: Path) -> None:
    with served(path, "--workers", "2") as (url, process):
        before = workers_of(process.pid)
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: len(workers_of(process.pid) - {killed}) == 2)
        (new,) = workers_of(process.pid) - before
        with only(new, workers_of(process.pid)):
            assert httpx.post(f"{url}/v1/memories", json={"text": "tea"}, timeout=60).status_code == 201
        workers = workers_of(process.pid)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
        assert process.returncode == 0 and "is replaced" in log
        assert not any(map(is_running, workers))


def test_workers_end_with_their_parent(path: Path) -> None:
    with served(path, "--workers", "2") as (_, process):
        workers = workers_of(process.pid)
        process.kill()
        eventually(lambda: not any(map(is_running, workers)))


def test_the_folders_of_a_process_that_runs_are_its_own(tmp_path: Path) -> None:
    first, second = Spool(tmp_path / "spool"), Spool(tmp_path / "spool")
    first.open()
    second.open()
    first.export_folder()
    first.folder_of("a" * 26).mkdir()
    assert list(second.take_over()) == [] and second.find("a" * 26) == first.folder_of("a" * 26)
    first.close()
    assert second.folder_of("a" * 26) in second.take_over()
    assert first.folders() == second.folders() and len(second.folders()) == 2
    assert second.find("*") is None
    second.close()
