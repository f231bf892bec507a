"""Servers of Jiyi for benches, in the event loop of their memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from jiyi import Memory
from jiyi.server.proxy import Upstream, serve_proxy
from jiyi.server.serve import serve

Ready = Callable[[str, bool], None]


@asynccontextmanager
async def serving(start: Callable[[Ready], Awaitable[None]]) -> AsyncIterator[str]:
    """Run a server until the block ends; yield its address."""
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.ensure_future(start(lambda url, _: address.set_result(url)))
    await asyncio.wait((address, running), return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    try:
        yield address.result()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def server_of(memory: Memory) -> AbstractAsyncContextManager[str]:
    return serving(lambda ready: serve(memory, host="127.0.0.1", port=0, ready=ready))


def proxy_of(memory: Memory, to: str, *, user_id: str) -> AbstractAsyncContextManager[str]:
    upstream = Upstream.parse(to, key=None)
    return serving(lambda ready: serve_proxy(memory, upstream, user_id=user_id, host="127.0.0.1", port=0, ready=ready))
