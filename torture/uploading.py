"""Uploads to one or two server processes that share a socket and a spool: users are deleted while a file comes in,
waits or is imported, by a server or by another process, and servers are killed and started again."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from jiyi.http_server import bind_socket
from jiyi.server.serve import server_over

from .forks import fork, wait
from .ledger import Log

if TYPE_CHECKING:
    from .erasure import Round

LONGEST_S = 60.0
ENDED = (0, -signal.SIGTERM, -signal.SIGKILL)


async def _serve(given: Round, sock: socket.socket) -> None:
    async with given.open() as memory:
        await server_over(memory, host="127.0.0.1").serve(sockets=[sock])


class Servers:
    """Server processes of one store."""

    def __init__(self, given: Round, number: int) -> None:
        self._given, self._number = given, number
        self._pids: list[int] = []
        self.failed: list[int] = []

    def start(self) -> None:
        self._sock = bind_socket("127.0.0.1", 0)
        self.port = self._sock.getsockname()[1]
        self._pids = [fork(lambda: _serve(self._given, self._sock)) for _ in range(self._number)]
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until:
            try:
                with self.answer("GET", "/livez") as found:
                    if found.status == 200:
                        return
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("no server has started")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        for pid in self._pids:
            os.kill(pid, how)
        self.failed += [code for code in map(wait, self._pids) if code not in ENDED]
        self._pids = []
        self._sock.close()

    @contextmanager
    def answer(
        self, method: str, path: str, body: Iterator[bytes] | None = None, size: int = 0, **params: Any
    ) -> Iterator[Any]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST_S)) as connection:
            headers = {"Content-Length": str(size)} if body is not None else {}
            connection.request(method, f"{path}?{urlencode(params)}", body, headers)
            yield connection.getresponse()


def play_uploads(given: Round, rng: random.Random, erase: Callable[[], int]) -> list[int]:
    """Upload files and delete their user at random moments; return the exit codes of processes that failed. `erase`
    deletes the user in another process and returns its id."""
    log, servers = Log(given.log), Servers(given, given.processes)
    servers.start()
    erasing: list[int] = []

    def delete() -> None:
        if rng.random() < 0.5:
            erasing.append(erase())
            return
        begun = time.monotonic()
        with servers.answer("DELETE", "/v1/memories", user_id=given.user, all="true") as found:
            found.read()
            log.note(erased=[begun, time.monotonic()], notes=[] if found.status == 200 else ["refused"])

    turns = 2 if given.returns else 1
    for turn in range(turns):
        when = rng.choice(("receiving", "importing", "importing", "killed"))
        texts, begun = given.texts(160, 0, turn), time.monotonic()
        log.note(begun=begun, texts=texts)
        said = [json.dumps({"role": "user", "content": text}).encode() + b"\n" for text in texts]
        location = _post(servers, given.user, said, delete if when == "receiving" else None)
        time.sleep(rng.uniform(0, 0.1))
        if when == "killed":
            servers.stop(signal.SIGKILL)
            wait(erase())
            servers.start()
        elif when == "importing":
            delete()
        outcome = "unknown" if location is None else _followed(servers, location, given.user)
        log.note(begun=begun, outcome=outcome, ended=time.monotonic())
    codes = [wait(process) for process in erasing]
    if given.returns:
        texts, begun = given.texts(160, 8), time.monotonic()
        log.note(begun=begun, texts=texts)
        said = [json.dumps({"role": "user", "content": text}).encode() + b"\n" for text in texts]
        location = _post(servers, given.user, said, None) or ""
        log.note(begun=begun, outcome=_followed(servers, location, given.user), ended=time.monotonic())
    servers.stop()
    return [*(code for code in codes if code), *servers.failed]


def _post(servers: Servers, user: str, said: list[bytes], halfway: Callable[[], None] | None) -> str | None:
    """Upload a chat; return where it can be followed, None if it was refused."""

    def body() -> Iterator[bytes]:
        yield b"".join(said[: len(said) // 2])
        if halfway is not None:
            halfway()
        yield b"".join(said[len(said) // 2 :])

    params = {"user_id": user, "filename": "chat.jsonl"}
    with servers.answer("POST", "/v1/imports", body(), sum(map(len, said)), **params) as found:
        told = json.loads(found.read())
        return str(found.getheader("location")) if found.status == 202 else None if found.status == 409 else str(told)


def _followed(servers: Servers, location: str, user: str) -> str:
    """Wait until an import has ended; return its outcome. One that is gone was deleted, or had ended before a kill."""
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        with servers.answer("GET", location, user_id=user) as found:
            state = json.loads(found.read()).get("state", "gone")
        if state != "running":
            return "saved" if state == "done" else "unknown" if state == "gone" else "failed"
        time.sleep(0.02)
    return "never ended"
