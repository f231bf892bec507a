"""The recipes of docs/processes.md for gunicorn and Celery, with the real servers: opened where the page says, a memory
works in every process; opened before the fork, it is an error at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest

from foreign_packages import fetched, process_servers
from support import unused_port
from test_fork import OTHER_PROCESS

ROOT = Path(__file__).parents[1]
PATIENCE_S = 120

CELERY = """
import os, sys, time
from celery import Celery
from celery.signals import worker_process_init, worker_process_shutdown
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder

def opened():
    return Memory.open("celery.db", embedder=WordEmbedder())

queue = {"data_folder_in": "queue", "data_folder_out": "queue"}
app = Celery("notes", broker="filesystem://", backend="file://" + os.path.abspath("results"))
app.conf.broker_transport_options = queue
memory = opened() if os.environ.get("EARLY") and "worker" in sys.argv else None

@worker_process_init.connect
def start(**_):
    global memory
    memory = memory or opened()

@worker_process_shutdown.connect
def stop(**_):
    memory.close()

@app.task
def note(text):
    memory.add(text, user_id="mei")
    time.sleep(0.2)  # so that the other process gets some
    return os.getpid()

if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        app.worker_main([*sys.argv[1:], "--pool", "prefork", "--concurrency", "2", "--loglevel", "error"])
    sent = [note.delay(f"likes tea number {number}") for number in range(8)]
    print("processes:", len({one.get(timeout=100) for one in sent}))
"""
WSGI = """
import os
from jiyi import StoreError
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder

def opened():
    return Memory.open("gunicorn.db", embedder=WordEmbedder())

memory = opened() if os.environ.get("EARLY") else None

def application(environ, start_response):
    try:
        memory.add("likes tea", user_id="mei")
        start_response("200 OK", [])
        return [f"{os.getpid()} {memory.count(user_id='mei')}".encode()]
    except StoreError as error:
        start_response("500 Error", [])
        return [str(error).encode()]
"""
GUNICORN = """
import os
preload_app, workers = True, 2

def post_fork(server, worker):
    import wsgi
    wsgi.memory = wsgi.memory or wsgi.opened()
"""


def command(code: str, *arguments: str) -> list[str]:
    """Return a command that runs code with the servers' packages behind those of the environment."""
    folder = fetched(process_servers)
    return [sys.executable, "-c", f"import sys; sys.path += ['', {str(folder)!r}]; {code}", *arguments]


@contextmanager
def process(arguments: list[str], folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server; end it as an operator does, which has to end all of its processes in time."""
    path = os.pathsep.join([str(ROOT / "src"), str(folder)])
    variables = {**os.environ, "PYTHONPATH": path, **environment}
    running = subprocess.Popen(arguments, cwd=folder, env=variables, start_new_session=True)
    try:
        yield running
        running.send_signal(signal.SIGTERM)
        running.wait(PATIENCE_S)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


@pytest.mark.parametrize("early", [False, True], ids=["worker_process_init", "top of the module"])
def test_celery_with_forked_workers(tmp_path: Path, early: bool) -> None:
    (tmp_path / "notes.py").write_text(CELERY)
    for folder in ("queue", "results"):
        (tmp_path / folder).mkdir()
    program = "import runpy; runpy.run_path('notes.py', run_name='__main__')"
    with process(command(program, "worker"), tmp_path, EARLY="1" if early else ""):
        path = os.pathsep.join([str(ROOT / "src"), str(tmp_path)])
        done = subprocess.run(
            command(program),
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    if early:
        assert "StoreError" in done.stderr and OTHER_PROCESS in done.stderr, done.stderr[-3000:]
    else:
        assert "processes: 2" in done.stdout, done.stderr[-3000:]


def answers(url: str, **params: str) -> set[tuple[int, str]]:
    """Ask until both workers have answered, at most a while."""
    found: set[tuple[int, str]] = set()
    until = monotonic() + PATIENCE_S
    while len({text.split()[0] for _, text in found}) < 2 and monotonic() < until:
        try:
            answer = httpx.get(url, params=params, timeout=PATIENCE_S, headers={"Connection": "close"})
        except httpx.TransportError:
            sleep(0.2)
            continue
        found.add((answer.status_code, answer.text))
        if answer.status_code != 200:
            break
    return found


@pytest.mark.parametrize("early", [False, True], ids=["post_fork", "top of the module"])
def test_gunicorn_with_preload(tmp_path: Path, early: bool) -> None:
    (tmp_path / "wsgi.py").write_text(WSGI)
    (tmp_path / "settings.py").write_text(GUNICORN)
    port = unused_port()
    options = ("--config", "settings.py", "--bind", f"127.0.0.1:{port}", "wsgi:application")
    run = "sys.argv[0] = 'gunicorn'; from gunicorn.app.wsgiapp import run; run()"
    with process(command(run, *options), tmp_path, EARLY="1" if early else ""):
        found = answers(f"http://127.0.0.1:{port}/")
    if early:
        [(status, text)] = found
        assert status == 500 and OTHER_PROCESS in text
    else:
        assert {status for status, _ in found} == {200} and {text.split()[1] for _, text in found} == {"1"}


def test_gunicorn_runs_the_fastapi_example(tmp_path: Path) -> None:
    """Preloaded, in two workers: the memory is opened in the application's `lifespan`."""
    port = unused_port()
    options = ("--preload", "--workers", "2", "--worker-class", "uvicorn_worker.UvicornWorker")
    run = "sys.argv[0] = 'gunicorn'; from gunicorn.app.wsgiapp import run; run()"
    arguments = command(
        run, *options, "--bind", f"127.0.0.1:{port}", "--chdir", str(ROOT / "examples"), "fastapi_app:app"
    )
    with process(arguments, tmp_path, APP_STORE=str(tmp_path / "notes.db")):
        url = f"http://127.0.0.1:{port}/users/mei/notes"
        until = monotonic() + PATIENCE_S
        while monotonic() < until:
            try:
                added = httpx.post(url, params={"text": "I am allergic to peanuts"}, timeout=PATIENCE_S)
                break
            except httpx.TransportError:
                sleep(0.2)
        assert added.json() == {"created": 1}
        for _ in range(6):
            found = httpx.get(url, params={"query": "what am I allergic to?"}, timeout=PATIENCE_S)
            assert found.json() == ["I am allergic to peanuts"]
