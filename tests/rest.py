"""A real server for tests: uvicorn on a port of its own, in a thread, over a store of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from jiyi import Embedder, Extractor, Memory, NewKey
from jiyi.http_server import bind_socket
from jiyi.server.serve import Server, server_over
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder


class Running:
    """A server that runs, and its memory, which can be used past it."""

    def __init__(
        self,
        place: str | Path,
        settings: dict[str, Any],
        embedder: Embedder | None,
        extractor: Extractor | None,
        hosts: Sequence[str],
    ) -> None:
        self._place = place
        self._extractor = extractor
        self._settings = settings
        self._embedder = embedder or WordEmbedder(128)
        self._hosts = hosts
        self._up = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._main, name="server", daemon=True)
        self.memory: Memory
        self.server: Server
        self._loop: asyncio.AbstractEventLoop

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - it is raised where the server was asked for
            self._failure = error
        finally:
            self._up.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        settings = load_settings(**{"extraction": {"enabled": False}, **self._settings})
        async with Memory.open(
            self._place, settings=settings, embedder=self._embedder, extractor=self._extractor
        ) as memory:
            self.memory = memory
            self.server = server_over(memory, host="127.0.0.1", allowed_hosts=self._hosts)
            with bind_socket("127.0.0.1", 0) as sock:
                self.port = sock.getsockname()[1]
                self._up.set()
                await self.server.serve(sockets=[sock])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        self._up.wait(60)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        if self._thread.is_alive():
            self.server.should_exit = True
            self._thread.join(60)
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure

    def do(self, verb: Any) -> Any:
        """Await something of the memory, in the server's own loop."""

        async def work() -> Any:
            return await verb

        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(60)

    def key(self, *users: str, scopes: Sequence[str] = ("read", "write", "delete"), **more: Any) -> str:
        """A new key: for these users, or for all."""
        made: NewKey = self.do(
            self.memory.keys.create("test", scopes=scopes, user_ids=users, all_users=not users, **more)
        )
        return made.key

    def client(self, key: str | None = None, **more: Any) -> httpx.Client:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        # Without certificates to check none need to be loaded, which takes longer than a request.
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=False, **more)


@contextmanager
def running(
    place: str | Path,
    *,
    embedder: Embedder | None = None,
    extractor: Extractor | None = None,
    hosts: Sequence[str] = (),
    **settings: Any,
) -> Iterator[Running]:
    if isinstance(place, Path):
        settings["server"] = {"upload_dir": place.parent / "spool", **settings.get("server", {})}
    server = Running(place, settings, embedder, extractor, hosts)
    server.start()
    try:
        yield server
    finally:
        server.stop()
