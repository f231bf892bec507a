"""PostgreSQL's errors as Jiyi's: what happened, at which server, and the next step. No message holds a password."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ...errors import ConnectionLost, JiyiError, NotAStore, StoreError, StoreUnavailable, VectorSearchError

NO_PGVECTOR = (
    "the extension pgvector 0.7 or newer is missing: install it on the server, then run CREATE EXTENSION vector (or"
    " ALTER EXTENSION vector UPDATE) in this database as a superuser"
)

# By SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html
_MEANING: dict[str, tuple[type[JiyiError], str]] = {
    "28P01": (StoreError, "the server refused the user or the password: check both"),
    "28000": (StoreError, "the server refused this user: check the user's name and the server's pg_hba.conf"),
    "3D000": (StoreError, "there is no such database: create it (createdb), with the encoding UTF8"),
    "3F000": (StoreError, "there is no such schema: create it, or correct search_path in the URL"),
    "42501": (StoreError, "this role lacks a right: let the owner of the tables grant it, or connect as the owner"),
    "25006": (StoreUnavailable, "it is read-only, as a replica is: connect to the primary to write"),
    "53100": (StoreUnavailable, "the server's disk is full: make room, then try again"),
    "53200": (StoreUnavailable, "the server is out of memory: try again"),
    "53300": (StoreUnavailable, "the server has no connection left: lower postgres.pool_size or raise max_connections"),
    "55P03": (StoreUnavailable, "another process kept it locked for too long: try again"),
    "40001": (StoreUnavailable, "it collided with another transaction: try again"),
    "40P01": (StoreUnavailable, "it collided with another transaction: try again"),
    "57014": (StoreUnavailable, "the server cancelled it, as it took too long: try again"),
    "57P03": (StoreUnavailable, "the server is starting or stopping: try again"),
    "42P01": (NotAStore, "a table is missing: the database was damaged or made by another program"),
    "42703": (StoreError, "a column is missing: has another version migrated it? See jiyi migrate --check"),
    "42704": (VectorSearchError, NO_PGVECTOR),
}
_LOST = ("08", "57P01", "57P02", "57P05", "25P03")  # the connection, the server's end, a session that was ended


@contextmanager
def translated(where: str, *, wait_s: float) -> Iterator[None]:
    """The one place where errors of PostgreSQL, its driver and its pool become Jiyi's."""
    try:
        yield
    except PoolTimeout as error:
        busy = f"all connections of the pool were busy for {wait_s:g} s: raise postgres.pool_size, or try again"
        raise StoreUnavailable(f"{where}: {busy}") from error
    except DBAPIError as error:
        driver = error.orig.__cause__ if error.orig is not None else None
        if error.connection_invalidated or isinstance(driver, OSError) or isinstance(error, InterfaceError):
            raise _lost(where, driver or error.orig) from error
        raise _named(where, driver or error.orig) from error
    except asyncpg.PostgresError as error:  # while connecting
        raise _named(where, error) from error
    except asyncpg.InterfaceError as error:
        raise _lost(where, error) from error
    except TimeoutError as error:
        raise StoreUnavailable(
            f"{where}: no answer in time: is the server running, and is the address right?"
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreUnavailable(
            f"{where} cannot be reached ({reason}): is the server running, and is the address right?"
        ) from error


def _named(where: str, error: BaseException | None) -> JiyiError:
    state = str(getattr(error, "sqlstate", "") or "")
    problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    if state in _MEANING:
        kind, meaning = _MEANING[state]
        return kind(f"{where}: {meaning} ({problem})")
    if state.startswith(_LOST):
        return _lost(where, error)
    return StoreError(f"{where}: {problem}")


def _lost(where: str, error: BaseException | None) -> ConnectionLost:
    problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    return ConnectionLost(
        f"{where}: the connection was lost ({problem}); if something was being written, it may or may not be kept:"
        " look, or repeat it with its idempotency key"
    )
