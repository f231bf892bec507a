"""Servers of Jiyi for benches, in the event loop of their memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn

from jiyi import Memory
from jiyi.http_server import bind_socket
from jiyi.server.proxy import Upstream, proxy_app
from jiyi.server.serve import ReturningServer, server_config, server_over
from jiyi.settings import ServerSettings

HOST = "127.0.0.1"


@asynccontextmanager
async def serving(server: uvicorn.Server) -> AsyncIterator[str]:
    """Run a server until the block ends; yield its address."""
    with bind_socket(HOST, 0) as sock:
        running = asyncio.ensure_future(server.serve(sockets=[sock]))
        try:
            yield f"http://{HOST}:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


@asynccontextmanager
async def server_of(memory: Memory) -> AsyncIterator[str]:
    async with serving(server_over(memory, host=HOST)) as url:
        yield url


@asynccontextmanager
async def proxy_of(memory: Memory, to: str, *, user_id: str) -> AsyncIterator[str]:
    async with httpx.AsyncClient(timeout=600) as http:
        app = proxy_app(memory, Upstream.parse(to, key=None), http, user_id=user_id, host=HOST)
        async with serving(ReturningServer(server_config(app, ServerSettings()))) as url:
            yield f"{url}/v1"
