"""A real Redis for the tests: the one at TEST_REDIS_URL, or one of our own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from support import missing, unused_port


class RedisServer:
    """Redis in a folder of its own, that keeps nothing on disk."""

    def __init__(self, program: str) -> None:
        self._program = program
        self.home = Path(tempfile.mkdtemp(prefix="jiyi-redis-", dir="/tmp"))
        self.port = unused_port()
        self.url = f"redis://127.0.0.1:{self.port}/3"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.home)],
            stdout=subprocess.DEVNULL,
        )
        until = time.monotonic() + 60
        while True:
            try:
                redis.Redis.from_url(self.url).ping()
                return
            except redis.ConnectionError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def stop(self) -> None:
        self.end()
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[str]:
    given = os.environ.get("TEST_REDIS_URL")
    if given:
        yield given
        return
    program = shutil.which("redis-server")
    if program is None:
        missing("REDIS", "redis-server is not installed (Debian: apt-get install redis-server)")
    server = RedisServer(str(program))
    yield server.url
    server.stop()


@pytest.fixture
def redis_url(shared_redis: str) -> Iterator[str]:
    """An empty Redis."""
    client = redis.Redis.from_url(shared_redis)
    client.flushdb()
    yield shared_redis
    client.flushdb()
    client.close()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server that a test may stop and start."""
    program = shutil.which("redis-server")
    if program is None:
        missing("REDIS", "redis-server is not installed (Debian: apt-get install redis-server)")
    server = RedisServer(str(program))
    yield server
    server.stop()
