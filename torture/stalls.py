"""Requests of the largest size, of every kind, to real servers: others are answered within 0.3 s meanwhile, each
request ends in time, and SIGTERM ends a busy server within 5 s with everything kept that it acknowledged.

A second, idle server is asked at the same time. What that takes is noise of the machine, and is allowed on top.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, sleep

import httpx

from .heartbeat import Heartbeat
from .stall_cases import PARTS, USER, Case, Surface, queries, reads, text_of, writes
from .trial import Trial

JIYI = "from jiyi.cli import main; main()"
PROTECTIONS = {"threads": "long texts are read by the event loop itself"}
WITHOUT_THREADS = f"import jiyi.threads; jiyi.threads.SHORT = 10**9; {JIYI}"
SURFACES: tuple[Surface, ...] = ("serve", "mcp", "proxy")
LONGEST_GAP_S = 0.3
LONGEST_REQUEST_S = 65.0  # the server itself gives up after 60
LONGEST_END_S = 5.0
STORED = 12  # memories of the largest size that the user has at the start
REPLY = b'{"choices": [{"message": {"role": "assistant", "content": "ok"}}]}'


async def run(trial: Trial) -> None:
    """Try every request with every text at scale 1, and SIGTERM during each kind of request."""
    await asyncio.to_thread(_run, trial)


def _run(trial: Trial) -> None:
    chances = trial.chances()
    kinds = chances.sample(sorted(PARTS), len(PARTS))
    with _model() as model, Served("serve", trial.scratch / "idle" / "memory.db", trial.without) as idle:
        for surface in SURFACES:
            scene = Scene(trial, surface, model)
            memory_id = scene.fill(kinds[: trial.times(STORED, 3)])
            every = [case for kind in kinds for case in (*writes(kind, memory_id), *queries(kind))]
            cases = [case for case in (*every, *reads(memory_id)) if case.surface == surface]
            chosen = chances.sample(cases, min(len(cases), trial.times(len(cases), 8 if surface == "serve" else 2)))
            scene.stalls(chosen, idle)
            if trial.without is None:
                each = {case.name: case for case in chances.sample(cases, len(cases))}
                names = chances.sample(sorted(each), min(len(each), trial.times(len(each), 2)))
                for number, name in enumerate(names):
                    scene.end_during(each[name], workers=1 + (surface == "serve" and number % 2))
                scene.check()


class Served:
    """A server in a process of its own."""

    def __init__(self, surface: Surface, store: Path, without: str | None = None, *words: str) -> None:
        store.parent.mkdir(exist_ok=True)
        settings = {"JIYI_SERVER__UPLOAD_DIR": str(store.parent / "spool"), "JIYI_TOOLS__CALLS_PER_MINUTE": "6000"}
        program = JIYI if without is None else WITHOUT_THREADS
        mode = ["mcp", "--http"] if surface == "mcp" else [surface]
        user = [] if surface == "serve" else ["--user", USER]
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, *mode, "--port", "0", "--store", str(store), *user, *words],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"http://[\d.]+:\d+", line)
        if found is None:
            raise RuntimeError(line + self._process.communicate()[1])
        self.url = found[0]
        self.log: list[str] = []
        threading.Thread(target=self._read_log, daemon=True).start()
        self._headers = {"Content-Type": "application/json"}
        if surface == "mcp":
            self._headers |= self._initialised()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        self.log.extend(self._process.stderr)

    def _initialised(self) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        call = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": told}
        reply = httpx.post(f"{self.url}/mcp", json=call, headers=headers, timeout=60)
        headers["Mcp-Session-Id"] = reply.headers["mcp-session-id"]
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        httpx.post(f"{self.url}/mcp", json=ready, headers=headers, timeout=60)
        return headers

    def ask(self, case: Case) -> int:
        """Send a request; return its status, 0 if there is no whole answer."""
        body = None if case.body is None else case.body()
        wait = httpx.Timeout(2 * LONGEST_REQUEST_S)
        try:
            with httpx.Client(timeout=wait, verify=False, trust_env=False) as client:
                return client.request(
                    case.method, self.url + case.path, content=body, headers=self._headers
                ).status_code
        except httpx.HTTPError:
            return 0

    def end(self) -> float:
        """Send SIGTERM; return the seconds until the process has ended."""
        began = monotonic()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(4 * LONGEST_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return monotonic() - began


class Scene:
    """One kind of server over one store, and what it has acknowledged."""

    def __init__(self, trial: Trial, surface: Surface, model: str) -> None:
        self._trial = trial
        self._surface: Surface = surface
        self._store = trial.scratch / surface / "memory.db"
        self._words = ["--to", model] if surface == "proxy" else []
        self._acknowledged: list[str] = []

    def _served(self, *words: str, surface: Surface | None = None) -> Served:
        own = self._words if surface is None else []
        return Served(surface or self._surface, self._store, self._trial.without, *own, *words)

    def fill(self, kinds: Sequence[str]) -> str:
        """Store texts of the largest size; return the id of one of them."""
        with self._served(surface="serve") as server, httpx.Client(base_url=server.url, timeout=120) as client:
            for kind in kinds:
                reply = client.post(f"/v1/memories?user_id={USER}", json={"text": text_of(kind)})
                memory_id: str = reply.json()["memories"][0]["id"]
            server.end()
        return memory_id

    def stalls(self, cases: Sequence[Case], idle: Served) -> None:
        """Send requests one after the other while somebody else asks whether the server answers."""
        trial = self._trial
        with self._served() as server, Heartbeat(f"{server.url}/livez", f"{idle.url}/livez") as heartbeat:
            for case in cases:
                sleep(0.1)
                heartbeat.longest()
                began = monotonic()
                status = server.ask(case)
                took = monotonic() - began
                gap, noise = heartbeat.longest()
                what = f"{case.name} ({case.marker or case.path[:40]})"
                trial.counts["requests"] += 1
                trial.counts[f"answered with {status // 100}xx"] += 1
                trial.series.setdefault("gap_s", []).append(round(gap, 3))
                trial.series.setdefault("noise_s", []).append(round(noise, 3))
                trial.series.setdefault("request_s", []).append(round(took, 2))
                if gap > LONGEST_GAP_S + noise:
                    trial.breaks("other", f"{what} kept others waiting for {gap:.2f} s, the idle server {noise:.2f} s")
                if took > LONGEST_REQUEST_S:
                    trial.breaks("other", f"{what} took {took:.0f} s")
                if status == 0 or status == 500:
                    trial.breaks("other", f"{what} was answered with {status}")
                self._note(case, status)
            longest = max(trial.series["gap_s"])
            trial.notes.append(
                f"{self._surface}: longest gap {longest:.2f} s, of the idle server {max(trial.series['noise_s']):.2f} s"
            )
            server.end()

    def end_during(self, case: Case, *, workers: int) -> None:
        """Send SIGTERM while a request is worked on."""
        words = ["--workers", str(workers)] if workers > 1 else []
        with self._served(*words) as server:
            asking = threading.Thread(target=lambda: self._note(case, server.ask(case)))
            asking.start()
            sleep(self._trial.chances(case.name, workers).uniform(0.1, 1.5))
            took = server.end()
            asking.join()
        self._trial.counts["signals to a busy server"] += 1
        self._trial.series.setdefault("end_s", []).append(round(took, 2))
        if took > LONGEST_END_S:
            self._trial.breaks("other", f"{case.name}: SIGTERM ended {workers} processes after {took:.1f} s")

    def _note(self, case: Case, status: int) -> None:
        if case.marker is not None and status in (200, 201, 202):
            self._acknowledged.append(case.marker)

    def check(self) -> None:
        """Find everything that was acknowledged, after a start that goes on with imports."""
        with self._served(surface="serve") as server, httpx.Client(base_url=server.url, timeout=60) as client:
            until = monotonic() + 2 * LONGEST_REQUEST_S
            while monotonic() < until and any(
                one["state"] == "running" for one in client.get(f"/v1/imports?user_id={USER}").json()["items"]
            ):
                sleep(0.5)
            server.end()
        beginnings = " UNION ALL ".join(
            f"SELECT substr({column}, 1, 100) FROM {table}"
            for table, column in (("memories", "content"), ("messages", "text"))
        )
        with closing(sqlite3.connect(self._store)) as store:
            kept = [text for (text,) in store.execute(beginnings)]
        for marker in self._acknowledged:
            self._trial.counts["acknowledged writes"] += 1
            if not any(text.startswith(marker) for text in kept):
                self._trial.breaks("lost", f"{marker} was acknowledged")


@contextmanager
def _model() -> Iterator[str]:
    """A language model that always says the same."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(REPLY)))
            self.end_headers()
            self.wfile.write(REPLY)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
