"""Asynchronous work on a synchronous session. Through an asynchronous driver every statement switches threads twice;
here a whole transaction runs in one thread, and its functions stay the same for SQLite and PostgreSQL."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.orm import Session

T = TypeVar("T")


class ThreadSession:
    """The methods of an `AsyncSession` that repositories use; each has finished when it returns."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.add, self.add_all = session.add, session.add_all

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.execute(*args, **kwargs)

    async def scalars(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.scalars(*args, **kwargs)

    async def scalar(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.scalar(*args, **kwargs)

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.get(*args, **kwargs)

    async def get_one(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.get_one(*args, **kwargs)

    async def flush(self) -> None:
        self._session.flush()

    async def connection(self) -> "ThreadConnection":
        return ThreadConnection(self._session.connection())


class ThreadConnection:
    """The same for an `AsyncConnection`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        return self._connection.execute(*args, **kwargs)

    async def scalar(self, *args: Any, **kwargs: Any) -> Any:
        return self._connection.scalar(*args, **kwargs)

    async def run_sync(self, work: Callable[..., T], *args: Any) -> T:
        return work(self._connection, *args)


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that only awaits methods of a `ThreadSession`, so that it never pauses."""
    try:
        work.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    work.close()
    raise RuntimeError("work in a transaction may only wait for its session")
