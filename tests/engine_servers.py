"""Real engines for the tests: Milvus (milvus-lite), OpenSearch and Elasticsearch (Java, from Maven) and FerretDB (Go,
on SQLite), with MongoDB's protocol. `python tests/engine_servers.py` builds what is built into a cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support import missing, unused_port

HERE = Path(__file__).parent / "servers"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jiyi-test-servers"
ENVIRONMENT = dict(os.environ)  # tests replace HOME, and Maven and Go look for their settings in it
TRIES = 3
START_S = 90


class Unavailable(Exception):
    """There is no server here, and why."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time run this."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def download(*command: object, cwd: Path | None = None, **variables: str) -> None:
    """Run a command that downloads; try again if that fails."""
    for attempt in range(TRIES):
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env={**ENVIRONMENT, **variables},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode == 0:
            return
        time.sleep(2 * attempt)
    raise Unavailable(f"{command[0]} failed: {(done.stderr or done.stdout)[-500:]}")


def _needed(program: str, package: str) -> str:
    found = shutil.which(program, path=ENVIRONMENT.get("PATH"))
    if found is None:
        raise Unavailable(f"{program} is not installed (Debian: apt-get install {package})")
    return found


def opensearch() -> Path:
    """Return the folder with OpenSearch's jars and our class, which are fetched and checked once."""
    sums = (HERE / "opensearch/jars.sha256").read_text()
    source = (HERE / "opensearch/OpenSearchServer.java").read_text()
    folder = CACHE / f"opensearch-{hashlib.sha256((sums + source).encode()).hexdigest()[:12]}"
    with locked(CACHE / "opensearch.lock"):
        if (folder / "done").is_file():
            return folder
        _needed("java", "default-jdk-headless")
        maven, javac = _needed("mvn", "maven"), _needed("javac", "default-jdk-headless")
        shutil.rmtree(folder, ignore_errors=True)
        jars = folder / "jars"
        pom = HERE / "opensearch/pom.xml"
        download(maven, "-q", "-B", "-f", pom, "dependency:copy-dependencies", f"-DoutputDirectory={jars}")
        for line in sums.splitlines():
            wanted, name = line.split()
            if hashlib.sha256((jars / name).read_bytes()).hexdigest() != wanted:
                raise Unavailable(f"{name} has another checksum than in jars.sha256")
        if extra := {path.name for path in jars.iterdir()} - set(sums.split()):
            raise Unavailable(f"not in jars.sha256: {sorted(extra)}")
        download(javac, "-cp", f"{jars}/*", "-d", folder / "classes", HERE / "opensearch/OpenSearchServer.java")
        (folder / "done").touch()
    return folder


def elasticsearch() -> Path:
    """Return the folder with Elasticsearch's distribution for integration tests and our classes, which are fetched and
    checked once. It has no module but the network's, so a plugin stands in for those that Jiyi needs."""
    sources = HERE / "elasticsearch"
    parts = [path.read_bytes() for path in sorted(sources.iterdir())]
    folder = CACHE / f"elasticsearch-{hashlib.sha256(b''.join(parts)).hexdigest()[:12]}"
    with locked(CACHE / "elasticsearch.lock"):
        if (folder / "done").is_file():
            return folder
        _needed("java", "default-jdk-headless")
        maven, javac = _needed("mvn", "maven"), _needed("javac", "default-jdk-headless")
        shutil.rmtree(folder, ignore_errors=True)
        wanted, name = (sources / "distribution.sha256").read_text().split()
        version = name.removeprefix("elasticsearch-").removesuffix(".zip")
        artifact = f"org.elasticsearch.distribution.integ-test-zip:elasticsearch:{version}:zip"
        download(
            maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}", cwd=HERE
        )
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != wanted:
            raise Unavailable(f"{name} has another checksum than in distribution.sha256")
        shutil.unpack_archive(folder / name, folder)
        (folder / name).unlink()
        (folder / f"elasticsearch-{version}").rename(folder / "distribution")
        plugin, jars = folder / "distribution/plugins/test-modules", f"{folder}/distribution/lib/*"
        download(javac, "-cp", jars, "-d", folder / "classes", sources / "ElasticsearchServer.java")
        download(javac, "-cp", jars, "-d", folder / "plugin", sources / "TestModules.java")
        shutil.make_archive(str(folder / "test-modules"), "zip", folder / "plugin")
        plugin.mkdir(parents=True)
        (folder / "test-modules.zip").rename(plugin / "test-modules.jar")
        shutil.copy(sources / "plugin-descriptor.properties", plugin)
        (folder / "done").touch()
    return folder


def ferretdb() -> Path:
    """Return the FerretDB server, which is built once; go.sum has the checksums of its sources."""
    sources = b"".join((HERE / "ferretdb" / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    program = CACHE / f"ferretdb-{hashlib.sha256(sources).hexdigest()[:12]}"
    with locked(CACHE / "ferretdb.lock"):
        if not program.is_file():
            go, new = _needed("go", "golang-go"), program.with_suffix(".new")
            download(
                go, "build", "-tags", "ferretdb_no_postgresql", "-trimpath", "-ldflags=-s -w", "-o", new, ".",
                cwd=HERE / "ferretdb", GOFLAGS="-mod=readonly -buildvcs=false",
            )  # fmt: skip
            new.rename(program)
    return program


class EngineServer:
    """A server process in a folder of its own, which can be killed and started again."""

    def __init__(self, name: str, command: Callable[[int, Path], list[str]], url: str) -> None:
        self._command = command
        self.name = name
        self.home = Path(tempfile.mkdtemp(prefix=f"jiyi-{name}-", dir="/tmp"))
        (self.home / "config").mkdir()
        (self.home / "data").mkdir()
        self.port = unused_port()
        self.url = url.format(port=self.port)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(self.port, self.home), stdout=log, stderr=log, cwd=self.home, start_new_session=True
            )
        until = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > until:
                    told = (self.home / "log").read_text(errors="replace")[-800:]
                    raise Unavailable(f"{self.name} does not start: {told}") from None
                time.sleep(0.05)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def leave(self, *, running: bool) -> None:
        """Forget the process, which another one ends, or which was ended."""
        assert self._process is not None
        if running:
            self._process.returncode = 0  # so that nobody complains that it still runs
        else:
            self._process.wait(60)

    def stop(self) -> None:
        self.end()
        shutil.rmtree(self.home, ignore_errors=True)


def start_milvus() -> EngineServer:
    program = Path(sys.executable).with_name("milvus-lite")
    if not program.is_file():
        raise Unavailable("milvus-lite is not installed (pip install milvus-lite)")
    return EngineServer(
        "milvus",
        lambda port, home: [
            str(program), "server", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(home / "data")
        ],
        "http://127.0.0.1:{port}",
    )  # fmt: skip


def start_opensearch() -> EngineServer:
    folder = opensearch()
    java = ["java", "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    classes = f"{folder}/classes:{folder}/jars/*"
    return EngineServer(
        "opensearch",
        lambda port, home: [*java, "-cp", classes, "OpenSearchServer", str(port), str(home)],
        "http://127.0.0.1:{port}",
    )


def start_elasticsearch() -> EngineServer:
    folder = elasticsearch()
    java = ["java", "-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    modules = ["--module-path", f"{folder}/distribution/lib", "--add-modules=jdk.net", "--add-modules=ALL-MODULE-PATH"]
    program = [*java, *modules, "-cp", f"{folder}/classes", "ElasticsearchServer"]
    return EngineServer(
        "elasticsearch",
        lambda port, home: [*program, str(port), str(home), f"{folder}/distribution"],
        "http://127.0.0.1:{port}",
    )


def start_ferretdb() -> EngineServer:
    program = ferretdb()
    return EngineServer(
        "ferretdb",
        lambda port, home: [str(program), f"127.0.0.1:{port}", f"file:{home}/data/"],
        "mongodb://127.0.0.1:{port}/",
    )


STARTS: dict[str, Callable[[], EngineServer]] = {
    "milvus": start_milvus,
    "elasticsearch": start_opensearch,
    "mongodb": start_ferretdb,
}


@contextmanager
def shared(name: str, folder: Path, start: Callable[[], EngineServer]) -> Iterator[str]:
    """Yield the URL of a server that test processes share; the first one starts it and the last one stops it."""
    note = folder / f"{name}.json"
    server = None
    with locked(folder / f"{name}.lock"):
        known = json.loads(note.read_text()) if note.is_file() else None
        if known is None:
            server = start()
            known = {"url": server.url, "pid": server.pid, "home": str(server.home), "users": 0}
        known["users"] += 1
        note.write_text(json.dumps(known))
    try:
        yield known["url"]
    finally:
        with locked(folder / f"{name}.lock"):
            known = json.loads(note.read_text())
            known["users"] -= 1
            note.write_text(json.dumps(known))
            if not known["users"]:
                note.unlink()
                os.kill(known["pid"], signal.SIGKILL)
                shutil.rmtree(known["home"], ignore_errors=True)
        if server is not None:
            server.leave(running=bool(known["users"]))


@pytest.fixture(scope="session")
def engine_urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The URLs of Milvus, OpenSearch and FerretDB, which all test processes share."""
    folder = _shared_folder(tmp_path_factory)
    with ExitStack() as stack:
        urls = {}
        for name, start in STARTS.items():
            try:
                urls[name] = stack.enter_context(shared(name, folder, start))
            except (Unavailable, OSError, subprocess.SubprocessError) as error:
                missing(name.upper(), error)
        yield urls


@pytest.fixture(scope="session")
def elasticsearch_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Elasticsearch itself."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(shared("elasticsearch-8", _shared_folder(tmp_path_factory), start_elasticsearch))
        except (Unavailable, OSError, subprocess.SubprocessError) as error:
            missing("ELASTICSEARCH 8", error)
        yield url


def _shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all test processes."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base


def prepare() -> int:
    """Build what the tests need; say what is missing."""

    def build(make: Callable[[], Path]) -> str | None:
        try:
            make()
        except (Unavailable, OSError, subprocess.SubprocessError) as error:
            return f"{make.__name__}: {error}"
        return None

    with ThreadPoolExecutor() as pool:
        problems = [problem for problem in pool.map(build, (opensearch, elasticsearch, ferretdb)) if problem]
    for problem in problems:
        print(problem)
    return 0


if __name__ == "__main__":
    sys.exit(prepare())
