"""Fixtures: a memory in a file or a database of its own, and an environment without the developer's settings.

A test that takes a `memory` runs twice, on SQLite and on PostgreSQL; with a `path` as well it runs on the file only.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

from browser import browser  # noqa: F401 - a fixture
from engine_servers import elasticsearch_url, engine_urls  # noqa: F401 - fixtures
from jiyi import Memory, reader
from jiyi.embed import BuiltinEmbedder
from jiyi.read.accesses import Period
from jiyi.reader import Passage, Reader
from jiyi.settings import Settings, load_settings
from jiyi.testing import FailingEmbedder, WordEmbedder
from postgres_server import QUICK, Databases, Server, Unavailable
from redis_server import own_redis, redis_url, shared_redis  # noqa: F401 - fixtures
from support import LONG, MISSING, missing

# The same examples in each run; those of a long one are chosen anew.
settings.register_profile(
    "jiyi",
    max_examples=1000 if LONG else 30,
    derandomize=not LONG,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("jiyi")

# Made-up texts need no reader, which takes its time; here too, for settings that modules and their fixtures load. Tests
# of what a user meets use the fixture `as_installed`.
READER = os.environ.get("JIYI_TESTS_READER", "false")
os.environ["JIYI_SEARCH__READER"] = READER
os.environ["JIYI_TOOLS__RECALL_TIMEOUT_S"] = "60"


class CompiledStatements(LRUCache[Any, Any]):
    """Compiled SQL, shared by all stores of a test process: compiling it is a third of a test's time."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)  # for each kind of database, not for each engine


STATEMENTS = CompiledStatements(2000)
Engine._compiled_cache = property(lambda _: STATEMENTS, lambda *_: None)  # type: ignore[assignment]

FOREIGN = ("JIYI_", "LLM_", "EMBEDDING_", "MONGODB_", "ELASTICSEARCH_", "MILVUS_", "OPENAI_")


@pytest.fixture(autouse=True)
def nobodys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the settings, the memories and the working folder of the person who runs the tests."""
    for name in os.environ:
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    here = tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("JIYI_SEARCH__READER", READER)
    monkeypatch.setenv("JIYI_TOOLS__RECALL_TIMEOUT_S", "60")  # a test of deadlines sets its own
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.chdir(here)


@pytest.fixture
def as_installed(nobodys_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the reader of the package read, as it does for users."""
    monkeypatch.setenv("JIYI_SEARCH__READER", "true")


class ChangesOnly:
    """The reader of the package where it says what new statements end; it reads no hits, which takes longer."""

    def __init__(self, packaged: Reader) -> None:
        self.id, self.changes = f"{packaged.id}, changes only", packaged.changes

    def answers(self, question: str, passages: Sequence[Passage]) -> list[None]:
        return [None for _ in passages]

    def supports(self, messages: Sequence[Passage], memory: str) -> None:
        return None


@pytest.fixture
def changes_are_read(nobodys_settings: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let new statements end what they change, as for users."""
    packaged = ChangesOnly(reader._packaged())
    monkeypatch.setenv("JIYI_SEARCH__READER", "true")
    monkeypatch.setattr(reader, "_packaged", lambda: packaged)


@pytest.fixture(autouse=True)
def own_period(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the cache's periods begin with the test. They begin every ten minutes by the clock, in some test or other."""
    begun, number, left = time.time(), Period.number, Period.left

    def since(at: datetime) -> float | None:
        seconds = at.timestamp() - begun
        return seconds if 0 <= seconds < 86_400 else None  # another clock: the test sets it

    def own_number(period: Period, at: datetime) -> int:
        seconds = since(at)
        return number(period, at) if seconds is None else int(seconds // period.seconds)

    def own_left(period: Period, at: datetime) -> float:
        seconds = since(at)
        return left(period, at) if seconds is None else period.seconds - seconds % period.seconds

    monkeypatch.setattr(Period, "number", own_number)
    monkeypatch.setattr(Period, "left", own_left)


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty store; copying it is quicker than creating one for each test."""
    path = tmp_path_factory.mktemp("empty") / "memory.db"

    async def make() -> None:
        async with Memory.open(path, embedder=WordEmbedder()):
            pass

    asyncio.run(make())
    return path


@pytest.fixture
def path(tmp_path: Path, empty_store: Path) -> Path:
    """The file of this test's store, which is empty."""
    return Path(shutil.copy(empty_store, tmp_path))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # one of several processes: the one that started them tells the person
        session.config.workeroutput["missing"] = MISSING


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    ended = getattr(node, "workeroutput", {})  # a process that died has none
    MISSING.extend(told for told in ended.get("missing", ()) if told not in MISSING)


class Failures:
    """Names a test as soon as it fails, and what failed: a run that is cut off shows no summary."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message.partition("\n")[0][:200] if crash else ""
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            assert terminal is not None
            terminal.write_line(f"\nFAILED {report.nodeid} ({report.when}): {message}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # in the process that started the others
        config.pluginmanager.register(Failures(config))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for message in MISSING:
        terminalreporter.write_line(message, red=True, bold=True)


# Servers, a browser, other processes, the real model, random calls, benchmarks: `make check` leaves them out.
SLOW_FIXTURES = frozenset({"databases", "browser", "shared_redis", "own_redis", "builtin", "engine_urls"})
SLOW_FILES = (
    "bench_", "cached_agrees", "canary", "cli_demo", "cli_process", "console", "deploy", "docs", "engines",
    "erasure_p", "extraction_corpus", "files_faults", "files_machine", "files_watch", "filters_agree", "kill_worker",
    "languages_patterns", "mcp_process", "nearest", "postgres", "process_recipes", "processes", "redis", "scaling",
    "server_attacks", "server_process", "server_schema", "server_walls", "server_workers", "stores_agree", "torture",
    "year",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what needs more than a few seconds, also by what it shares with other tests."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if (
            parameters.get("backend") == "postgres"
            or SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ()))
            or item.path.stem.removeprefix("test_").startswith(SLOW_FILES)
        ):
            item.add_marker(pytest.mark.slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        backends = ["sqlite"] if "path" in metafunc.fixturenames else ["sqlite", "postgres"]
        metafunc.parametrize("backend", backends)


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """A PostgreSQL server on which each test gets a database. Without one tests are skipped, and fail in CI."""
    server = None
    try:
        if not os.environ.get("TEST_DATABASE_URL"):
            server = Server(*QUICK)
        databases = Databases(os.environ.get("TEST_DATABASE_URL") or server.url())
        asyncio.run(databases.prepare())
    except (Unavailable, ImportError, OSError) as error:
        missing("POSTGRESQL", error)
    try:
        yield databases
        asyncio.run(databases.cleanup())
    finally:
        if server is not None:
            server.stop()


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """The URL of an empty store in PostgreSQL."""
    name = asyncio.run(databases.new())
    yield databases.url(name)
    asyncio.run(databases.drop(name))


@pytest.fixture
def place(backend: str, request: pytest.FixtureRequest) -> str | Path:
    """The file or the database URL of this test's store."""
    where: str | Path = request.getfixturevalue("path" if backend == "sqlite" else "database")
    return where


def verbatim() -> Settings:
    """Return settings without extraction, which has tests of its own."""
    return load_settings(extraction={"enabled": False})


@pytest.fixture
async def memory(place: str | Path) -> AsyncIterator[Memory]:
    """A memory with a quick embedder that compares words."""
    async with Memory.open(place, settings=verbatim(), embedder=WordEmbedder(512)) as memory:
        yield memory


@pytest.fixture
async def extracting_memory(place: str | Path) -> AsyncIterator[Memory]:
    """A memory as users have it, with a quick embedder."""
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        yield memory


@pytest.fixture
def switch() -> FailingEmbedder:
    """An embedder that is down until `switch.failing = False`."""
    return FailingEmbedder()


@pytest.fixture
async def deaf_memory(place: str | Path, switch: FailingEmbedder) -> AsyncIterator[Memory]:
    """A memory whose embedder is down."""
    async with Memory.open(place, settings=verbatim(), embedder=switch) as memory:
        yield memory


@pytest.fixture(scope="session")
def builtin() -> BuiltinEmbedder:
    """The real embedder, loaded once for all tests."""
    embedder = BuiltinEmbedder()
    asyncio.run(embedder.embed_query("warm"))
    return embedder


@pytest.fixture
async def real_memory(place: str | Path, builtin: BuiltinEmbedder) -> AsyncIterator[Memory]:
    """A memory with the built-in embedder."""
    async with Memory.open(place, settings=verbatim(), embedder=builtin) as memory:
        yield memory
