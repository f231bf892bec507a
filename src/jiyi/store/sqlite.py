"""A database in one SQLite file."""

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.orm import Session

from ..errors import NotAStore, StoreError, StoreUnavailable
from ..forks import NoFork
from . import secrets
from .database import Database, SchemaWork, Work, open_session
from .schema import migrate as schema
from .sqlite_files import create_private, translated
from .write_set import CLOSED, Advance, StoreInfo

TEMPORARY = "PRAGMA temp_store = MEMORY"
COPY_ON_DISK = "PRAGMA temp_store = FILE"  # for a rewrite, which copies all that is not deleted
PRAGMAS = (
    "PRAGMA page_size = 8192",  # for a new file; a page of 4096 bytes holds only one vector
    "PRAGMA synchronous = FULL",  # an acknowledged write survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",  # deleted text is overwritten, not only unlinked
    TEMPORARY,
)
READ_ONLY = "PRAGMA query_only = ON"
VERSION = "PRAGMA data_version"  # changes with each commit of another connection
WRITE_AHEAD = "PRAGMA journal_mode = WAL"
BEGIN_TO_READ = "BEGIN"  # a snapshot from the first statement on
BEGIN_TO_WRITE = "BEGIN IMMEDIATE"
EMPTY_LOG = "PRAGMA wal_checkpoint(TRUNCATE)"
PATIENCE = "PRAGMA busy_timeout = {:.0f}"  # milliseconds
READERS = 2  # threads: a long read keeps nobody waiting, and more would only keep the event loop from its turn
SHORT_WAIT_S = 0.2  # for a reader, while writers wait
LONGEST_PAUSE_S = 30.0
REWRITE = "VACUUM"
COPY = "VACUUM INTO ?"
ROLLBACK_JOURNAL = "PRAGMA journal_mode = DELETE"  # needs exclusive access
EXAMINE = ("PRAGMA integrity_check", "PRAGMA foreign_key_check")
REWRITE_UP_TO = 256 << 20  # bytes; a larger file is rewritten when all of a user is deleted

T = TypeVar("T")

NO_FORK = NoFork()  # around all calls of SQLite: it has locks for the whole process

# Open files by database, with the process that has opened them. SQLite keeps the locks of a file for the whole process,
# and a fork copies these notes but not the locks: a new connection there waits for ever, or believes to hold locks.
_open_files: dict[int, tuple[int, tuple[int, int] | None]] = {}

logger = logging.getLogger(__name__)


class SqliteDatabase(Database):
    """One SQLite file."""

    def __init__(self, path: Path, *, busy_timeout_s: float, auto_migrate: bool = True) -> None:
        super().__init__()
        self.path = path
        self._allowed = schema.Allowed(auto_migrate, auto_migrate)
        self._busy_timeout_s = busy_timeout_s
        self._engine: Engine | None = None
        self._commits = CommitCounter(path)
        self._cleaning: asyncio.Task[None] | None = None  # retries while a reader keeps the log busy
        self._scraps = False  # rows were deleted since the file was last rewritten
        # SQLite has one writer at a time; tasks of this process queue here rather than in SQLite's busy loop.
        self._writer, self._readers = _threads()
        self._idle: dict[str | None, list[Session]] = {None: [], BEGIN_TO_WRITE: []}  # by the beginning of transactions
        self._log = path.with_name(path.name + "-wal")
        self._file: tuple[int, int] | None = None  # device and inode of the opened file
        self._logged = False  # it has a write-ahead log

    async def start(self) -> None:
        self.owner.take()
        try:
            with translated(self.path):
                await asyncio.shield(self._begin(asyncio.to_thread(self._prepare)))
        except BaseException:
            await self.close()
            raise

    @NO_FORK
    def _prepare(self) -> None:
        """Open the file; create or migrate the schema."""
        create_private(self.path)
        self._note_open()
        self._engine = engine = _engine(self.path, self._busy_timeout_s)
        with engine.connect() as connection:
            found = schema.version(connection, self.path)
            mode = connection.exec_driver_sql(WRITE_AHEAD)  # only after the file is known to be ours
            self._logged = mode.scalar() == "wal"
        self._file = _identity(self.path)
        if schema.is_due(found, self.path, self._allowed):
            with engine.begin() as connection:
                _begin(connection, BEGIN_TO_WRITE)
                schema.prepare(connection, self.path, self._allowed)

    async def on_schema(self, work: SchemaWork[T], *, changes: bool) -> T:
        @NO_FORK
        def run() -> T:
            engine = _engine(self.path, self._busy_timeout_s)
            try:
                with engine.begin() as connection:
                    _begin(connection, BEGIN_TO_WRITE if changes else BEGIN_TO_READ)
                    return work(connection, str(self.path))
            finally:
                engine.dispose()

        with translated(self.path):
            return await asyncio.shield(self._begin(asyncio.to_thread(run)))

    def _note_open(self) -> None:
        """Raise if the file was open when this process was forked; note that it is open now."""
        file = _identity(self.path)
        if any(process != os.getpid() and inherited == file for process, inherited in _open_files.values()):
            raise StoreError(
                f"{self.path} was open when this process was forked, and SQLite cannot open it here again: close the"
                " memory before the fork, or open it only afterwards"
            )
        _open_files[id(self)] = os.getpid(), file

    async def close(self) -> None:
        if self._cleaning is not None:
            self._cleaning.cancel()
            await asyncio.gather(self._cleaning, return_exceptions=True)
        await super().close()
        if self._engine is not None:
            if self._scraps and _identity(self.path) == self._file and self.path.stat().st_size <= REWRITE_UP_TO:
                await self._clean(rewrite=True)
            await asyncio.to_thread(self._end_threads)
            self._started().dispose()
            self._engine = None
        self._commits.close()
        if _open_files.get(id(self), (None,))[0] == os.getpid():
            del _open_files[id(self)]

    def _end_threads(self) -> None:
        """Wait for transactions whose callers were cancelled; close the sessions."""
        for threads in (self._writer, self._readers):
            threads.shutdown()
        self._writer, self._readers = _threads()  # it may be opened again
        for idle in self._idle.values():
            while idle:
                _close(idle.pop())

    async def info(self) -> StoreInfo:
        files = [self.path, *(self.path.with_name(self.path.name + suffix) for suffix in ("-wal", "-shm"))]
        return StoreInfo(
            url=f"sqlite:///{self.path}",
            schema=schema.HEAD,
            size_bytes=sum(file.stat().st_size for file in files if file.exists()),
            details={"SQLite": sqlite3.sqlite_version},
        )

    async def scrub(self, *, everything: bool) -> list[str]:
        """Empty the write-ahead log, which still holds deleted pages; with `everything`, rewrite the file too. The
        deletion itself is committed, so a busy reader or a full disk is no error: cleaning is tried again later."""
        self._scraps = True
        left = await self._clean(rewrite=everything)
        if left and (self._cleaning is None or self._cleaning.done()):
            self._cleaning = asyncio.create_task(self._clean_later(rewrite=everything), name="jiyi-clean")
        return left

    async def vacuum(self) -> list[str]:
        return await self._clean(rewrite=True)

    async def backup(self, path: Path, advance: Advance) -> None:
        """Copy the file as of one moment while others write, without deleted data."""
        size = self.path.stat().st_size
        advance("copying", 0, size)
        with translated(self.path):
            await asyncio.shield(self._begin(asyncio.to_thread(self._copy, path)))
        advance("copying", size, size)

    @NO_FORK
    def _copy(self, path: Path) -> None:
        with self._started().connect() as connection:
            connection.exec_driver_sql(COPY, (str(path),))
        copied = _engine(path, self._busy_timeout_s)
        try:
            with copied.begin() as connection:
                _begin(connection, BEGIN_TO_WRITE)
                secrets.renew(connection)
        finally:
            copied.dispose()

    async def _clean(self, *, rewrite: bool) -> list[str]:
        """Empty the log and rewrite the file; return what is left."""
        left = []
        try:
            with translated(self.path):
                busy = await self._thread(self._writer, self._empty_log, rewrite)
            if busy:
                left.append("deleted text stays in the write-ahead log while somebody reads; it is tried again")
        except StoreError as error:
            left.append(f"scraps of deleted text may lie in unused parts of the file: {error} — run `jiyi vacuum`")
        for problem in left:
            logger.warning("%s: %s", self.path, problem)
        return left

    @NO_FORK
    def _empty_log(self, rewrite: bool) -> bool:
        """Empty the log, and rewrite the file if asked to; return True if a reader still needs the log."""
        with self._started().connect() as connection:
            if rewrite:
                connection.exec_driver_sql(COPY_ON_DISK)
                try:
                    connection.exec_driver_sql(REWRITE)
                finally:
                    connection.exec_driver_sql(TEMPORARY)
                self._scraps = False
            connection.exec_driver_sql(PATIENCE.format(SHORT_WAIT_S * 1000))
            try:
                return bool(connection.exec_driver_sql(EMPTY_LOG).scalar())  # reported, not raised
            finally:
                connection.exec_driver_sql(PATIENCE.format(int(self._busy_timeout_s * 1000)))

    async def _clean_later(self, *, rewrite: bool) -> None:
        """Retry until no reader needs the deleted pages."""
        pause = SHORT_WAIT_S
        while self._engine is not None:
            await asyncio.sleep(pause)
            if not await self._clean(rewrite=rewrite):
                return
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def version(self) -> int | None:
        self._same_file()
        try:
            return self._commits.number() if self._started() else None
        except sqlite3.Error:  # a read waits, or raises Jiyi's error
            return None

    async def _read(self, user_id: str | None, work: Work[T]) -> T:
        self._same_file()
        try:
            return await self._thread(self._readers, self._run, work, None)
        except StoreError as error:
            if type(error) is StoreError:  # perhaps another version has migrated the file
                await self.on_schema(schema.check, changes=False)
            raise

    def _write(self, users: Sequence[str], work: Work[T]) -> Awaitable[T]:
        return self._thread(self._writer, self._run, work, BEGIN_TO_WRITE)

    def _thread(self, threads: ThreadPoolExecutor, work: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Run something in a thread; once begun it goes on there if the caller is cancelled."""
        self._started()
        return asyncio.get_running_loop().run_in_executor(threads, work, *args)

    async def pages(self, user_id: str | None, work: Work[Iterator[T]]) -> AsyncGenerator[T, None]:
        with translated(self.path):
            session = open_session(self._started())
            reading: asyncio.Future[list[T]] | None = None
            try:
                pages = await asyncio.to_thread(self._run_snapshot, work, session)
                while True:
                    reading = self._begin(asyncio.to_thread(NO_FORK(lambda: list(islice(pages, 1)))))
                    page = await asyncio.shield(reading)
                    if not page:
                        return
                    yield page[0]
            finally:
                await asyncio.shield(self._begin(_close_after(reading, session)))

    @NO_FORK
    def _run(self, work: Work[T], begin: str | None) -> T:
        """Run a function in this thread, in a session that is kept: opening one takes longer than most reads. A
        transaction commits unless something is raised; without one, each statement sees the newest commit."""
        with translated(self.path):
            idle = self._idle[begin]
            session = idle.pop() if idle else open_session(self._started().connect())
            try:
                if begin is not None:
                    _begin(session.connection(), begin)
                if begin == BEGIN_TO_WRITE:
                    schema.require_current(session.scalar(schema.VERSION), self.path)
                done = work(session)
                if begin is not None:
                    self._same_file(committing=True)
                    session.commit()
            except BaseException:
                _close(session)
                raise
            idle.append(session)
            return done

    @NO_FORK
    def _run_snapshot(self, work: Work[T], session: Session) -> T:
        _begin(session.connection(), BEGIN_TO_READ)
        return work(session)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session for this thread, to read."""
        with NO_FORK, translated(self.path), open_session(self._started()) as session:
            yield session

    def _same_file(self, *, committing: bool = False) -> None:
        """Raise if the file, or the log of a commit, is gone: what is written to a removed file is lost."""
        gone = _identity(self.path) != self._file or (committing and not self._has_log())
        if self._file is not None and gone:
            raise StoreUnavailable(
                f"{self.path} was removed, moved or replaced while it was open: nothing was written. Put it back, or"
                " restart to open the file that is there now"
            )

    def _has_log(self) -> bool:
        """Return False if the write-ahead log of the open file was removed: it has the newest part of the store."""
        return not self._logged or self._log.exists()

    def _started(self) -> Engine:
        if self._engine is None:
            raise StoreError(CLOSED)
        self.owner.check()
        return self._engine


def _threads() -> tuple[ThreadPoolExecutor, ThreadPoolExecutor]:
    """Return the threads of writers and of readers; they begin when they are used."""
    return ThreadPoolExecutor(1, "jiyi-writer"), ThreadPoolExecutor(READERS, "jiyi-reader")


def _engine(path: Path, busy_timeout_s: float) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": busy_timeout_s, "isolation_level": None, "check_same_thread": False},
        hide_parameters=True,
        max_overflow=-1,  # a thread that waits for a connection would keep those who have one from theirs
    )

    # The driver is in autocommit mode (isolation_level None): a read sees the newest commit without a transaction, and
    # a write takes the write lock at once, so that its checks still hold when it inserts.
    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        for pragma in PRAGMAS:
            cursor.execute(pragma)
        cursor.close()

    return engine


def _begin(connection: Connection, statement: str) -> None:
    """Begin a transaction. An event of SQLAlchemy would make all statements slower, and so would its `exec_driver_sql`
    this one."""
    connection.connection.cursor().execute(statement)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def examine(path: Path) -> None:
    """Raise if a file is not a sound store. The file is not changed."""
    if not path.is_file():
        raise NotAStore(f"{path} is no file")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            for statement in EXAMINE:
                found = [row for row in connection.execute(statement) if row != ("ok",)]
                if found:
                    raise NotAStore(f"{path} is damaged: {found[0]}")
    except sqlite3.Error as error:
        raise NotAStore(f"{path} is not a SQLite database, or it is damaged ({error})") from error


def take_away_log(path: Path) -> None:
    """Fold the log into the file, so that the file can be replaced. Raises if somebody has it open."""
    try:
        with closing(sqlite3.connect(path, timeout=1)) as connection:
            connection.execute(ROLLBACK_JOURNAL).fetchall()
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} is in use and cannot be replaced: stop what has it open ({error})") from error


class CommitCounter:
    """One connection, used by the event loop itself: asking for a number takes less time than a switch to a thread. It
    never waits for a lock, but raises."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    @NO_FORK
    def number(self) -> int:
        """Return a number that stays the same while nobody commits."""
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
            self._connection.execute(READ_ONLY)
        return int(self._connection.execute(VERSION).fetchone()[0])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


async def _close_after(reading: asyncio.Future[Any] | None, session: Session) -> None:
    """Close a session as soon as no thread uses it."""
    if reading is not None:
        await asyncio.gather(reading, return_exceptions=True)
    with NO_FORK:
        session.close()


def _close(session: Session) -> None:
    """Close a session and its connection."""
    connection = session.get_bind()
    session.close()
    if isinstance(connection, Connection):
        connection.close()
