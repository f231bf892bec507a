"""Several server processes behind one port: a parent that starts them, replaces those that end, and stops them all.

uvicorn has a supervisor too, but its workers run uvicorn's own server, which closes no database and ends no streams.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from socket import socket
from time import monotonic

from ..engine import runtime
from ..errors import InvalidInput, JiyiError, StoreUnavailable
from ..http_protocol import CLOSE_S, SIGNALS
from ..http_server import bind_socket, start_logging, url_host
from ..memory import Memory
from ..settings import load_settings
from ..settings_files import own_program
from ..warm import warm_up
from .serve import fast_loop, key_needed, server_over
from .shared_metrics import SharedMetrics

logger = logging.getLogger("jiyi.server")

CHECK_S = 0.2
RESTART_S = 1.0  # between two starts in place of workers that end at once


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Options of `jiyi serve` that its workers need."""

    store: str | None
    host: str
    allowed_hosts: Sequence[str]
    log_level: str
    log_format: str


@dataclass(frozen=True, slots=True)
class Worker:
    process: BaseProcess
    link: Connection  # says when the worker is ready; a worker whose parent is gone finds it closed

    def is_ready(self) -> bool:
        return self.link.poll() and self.process.is_alive()


class Supervisor:
    def __init__(self, options: WorkerOptions, sock: socket, number: int, shutdown_timeout_s: float) -> None:
        self._options = options
        self._sock = sock
        self._number = number
        self._shutdown_timeout_s = shutdown_timeout_s
        self._context = multiprocessing.get_context("spawn")
        self._stopping = False

    def run(self, ready: Callable[[], None]) -> None:
        """Serve until a signal. `ready` is called once all workers answer."""
        before = {number: signal.signal(number, self._stop) for number in SIGNALS}
        with tempfile.TemporaryDirectory(prefix="jiyi-metrics-") as folder:
            workers: list[Worker] = []
            try:
                workers += [self._start(folder) for _ in range(self._number)]
                self._wait_until_ready(workers)
                if not self._stopping:
                    ready()
                self._replace_until_stopped(workers, folder)
            finally:
                self._end(workers)
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _start(self, folder: str) -> Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=run_worker, args=(self._options, self._sock, theirs, folder), name="jiyi-worker"
        )
        process.start()
        theirs.close()
        return Worker(process, ours)

    def _wait_until_ready(self, workers: Sequence[Worker]) -> None:
        while not self._stopping and not all(worker.is_ready() for worker in workers):
            if any(not worker.process.is_alive() for worker in workers):
                raise StoreUnavailable("a worker of the server did not start: see its messages above")
            wait([worker.process.sentinel for worker in workers], CHECK_S)

    def _replace_until_stopped(self, workers: list[Worker], folder: str) -> None:
        started_at = monotonic()
        while not self._stopping:
            wait([worker.process.sentinel for worker in workers], CHECK_S)
            for place, worker in enumerate(workers):
                if worker.process.is_alive() or self._stopping or monotonic() - started_at < RESTART_S:
                    continue
                code = worker.process.exitcode
                logger.error("worker %s ended with exit code %s and is replaced", worker.process.pid, code)
                worker.link.close()
                workers[place] = self._start(folder)
                started_at = monotonic()

    def _end(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.process.terminate()
        until = monotonic() + self._shutdown_timeout_s + CLOSE_S + CHECK_S  # when a worker ends itself, if it can
        for worker in workers:
            worker.process.join(max(0.0, until - monotonic()))
            if worker.process.is_alive():
                logger.error("worker %s did not end in time and is killed", worker.process.pid)
                worker.process.kill()
                worker.process.join()
            worker.link.close()


@dataclass(frozen=True, slots=True)
class Prepared:
    needs_key: bool
    shutdown_timeout_s: float


async def prepare(memory: Memory, host: str) -> Prepared:
    """Create or migrate the store, once for all workers, and check that it may be served at this address."""
    if sys.platform == "win32":
        raise InvalidInput("--workers", "is not offered on Windows: start several servers, each on a port of its own")
    needs_key = await key_needed(memory, host)
    return Prepared(needs_key, runtime(memory).settings.server.shutdown_timeout_s)


def serve_with_workers(
    options: WorkerOptions, number: int, *, port: int, prepared: Prepared, ready: Callable[[str, bool], None]
) -> None:
    """Serve with several processes until stopped. `ready` is called with the address, and whether a key is needed."""
    with bind_socket(options.host, port) as sock:
        url = f"http://{url_host(options.host)}:{sock.getsockname()[1]}"
        supervisor = Supervisor(options, sock, number, prepared.shutdown_timeout_s)
        supervisor.run(lambda: ready(url, prepared.needs_key))


def run_worker(options: WorkerOptions, sock: socket, link: Connection, folder: str) -> None:
    """Serve in a process of its own."""
    start_logging(level=options.log_level, lines=options.log_format)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    try:
        with own_program(), asyncio.Runner(loop_factory=fast_loop()) as runner:
            runner.run(_serve(options, sock, link, Path(folder)))
    except JiyiError as error:
        logger.error("%s: %s", type(error).__name__, error)
        raise SystemExit(1) from None


async def _serve(options: WorkerOptions, sock: socket, link: Connection, folder: Path) -> None:
    async with Memory.open(options.store, settings=load_settings()) as memory:
        await memory.keys.exist()  # opens the database
        await warm_up(memory)
        server = server_over(memory, host=options.host, allowed_hosts=options.allowed_hosts)
        loop = asyncio.get_running_loop()

        def parent_is_gone() -> None:
            loop.remove_reader(link.fileno())
            server.should_exit = True

        async with SharedMetrics(folder, memory, server.metrics):
            loop.add_reader(link.fileno(), parent_is_gone)
            with suppress(OSError):
                link.send(True)
            await server.serve(sockets=[sock])
            loop.remove_reader(link.fileno())
