"""Packages for the tests that cannot be in `.venv`: sources whose own tests are run on Jiyi, and packages that require
other versions than Jiyi. `python tests/foreign_packages.py` fetches them into a cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from engine_servers import CACHE, Unavailable, download, locked
from support import missing

HERE = Path(__file__).parent
STRANDS = "strands-agents==1.62.0"
PROCESS_SERVERS = ("gunicorn==27.0.1", "celery==5.7.0", "uvicorn-worker==0.4.0")


def langgraph_source() -> Path:
    """Return the sources of the installed `langgraph-checkpoint`, which hold the tests of its store."""
    number = version("langgraph-checkpoint")
    folder = CACHE / f"langgraph_checkpoint-{number}"
    with locked(CACHE / "langgraph.lock"):
        if not folder.is_dir():
            arguments = ("--quiet", "--no-deps", "--no-binary", ":all:", "--dest", CACHE)
            download(sys.executable, "-m", "pip", "download", *arguments, f"langgraph-checkpoint=={number}")
            shutil.unpack_archive(CACHE / f"{folder.name}.tar.gz", CACHE, filter="data")
    return folder


def strands() -> Path:
    """Return a folder with Strands Agents, which requires an older `mcp` than Jiyi, and all it requires; put before
    other folders, it replaces their versions."""
    folder = CACHE / f"{STRANDS}-python{sys.version_info.major}.{sys.version_info.minor}"
    with locked(CACHE / "strands.lock"):
        if not folder.is_dir():
            new = CACHE / f"{folder.name}.new"
            shutil.rmtree(new, ignore_errors=True)
            download(sys.executable, "-m", "pip", "install", "--quiet", "--target", new, STRANDS)
            new.rename(folder)
    return folder


def process_servers() -> Path:
    """Return a folder with gunicorn and Celery, and all they require, for a path behind the installed packages."""
    folder = CACHE / f"process-servers-python{sys.version_info.major}.{sys.version_info.minor}"
    with locked(CACHE / "process-servers.lock"):
        if not folder.is_dir():
            new = CACHE / f"{folder.name}.new"
            shutil.rmtree(new, ignore_errors=True)
            download(sys.executable, "-m", "pip", "install", "--quiet", "--target", new, *PROCESS_SERVERS)
            new.rename(folder)
    return folder


def mem0_client(number: str) -> Path:
    """Return a folder with an earlier version of mem0, for a path before the installed one."""
    folder = CACHE / f"mem0ai-{number}"
    with locked(CACHE / f"mem0-{number}.lock"):
        if not folder.is_dir():
            new = CACHE / f"{folder.name}.new"
            shutil.rmtree(new, ignore_errors=True)
            options = ("--quiet", "--no-deps", "--target", new)
            download(sys.executable, "-m", "pip", "install", *options, f"mem0ai=={number}")
            new.rename(folder)
    return folder


def mem0_npm_client(number: str) -> Path:
    """Return the folder of a version of mem0's npm package, with what it requires."""
    if shutil.which("npm") is None:
        raise Unavailable("npm is not installed")
    folder = CACHE / f"mem0ai-npm-{number}"
    with locked(CACHE / f"mem0-npm-{number}.lock"):
        if not folder.is_dir():
            new = CACHE / f"{folder.name}.new"
            shutil.rmtree(new, ignore_errors=True)
            leave_out = ("--omit=optional", "--omit=peer", "--legacy-peer-deps", "--ignore-scripts")
            options = ("--prefix", new, "--no-save", "--no-audit", "--no-fund", *leave_out)
            download("npm", "install", "--silent", *options, f"mem0ai@{number}")
            new.rename(folder)
    return folder / "node_modules" / "mem0ai"


def fetched(fetch: Callable[[], Path]) -> Path:
    """Fetch sources or a package; skip the test if they cannot be had."""
    try:
        return fetch()
    except Unavailable as error:
        missing(getattr(fetch, "__name__", "mem0").upper(), error)


def run_pytest(*arguments: object, cwd: Path, before: Path | None = None, timeout_s: float = 300) -> str:
    """Run pytest in another process, with the packages in a folder before others; return its output if it passes."""
    path = [str(part) for part in (before, HERE.parent / "src", HERE, os.environ.get("PYTHONPATH")) if part]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


if __name__ == "__main__":
    for fetch in (langgraph_source, strands, process_servers):
        try:
            fetch()
        except Unavailable as error:
            print(f"{fetch.__name__}: {error}")
