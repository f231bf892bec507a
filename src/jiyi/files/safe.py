"""Read and replace files that people edit, without losing a save of theirs. A file is replaced atomically, and only if
its content is still what was read. On Linux the two files are exchanged, and the old content is checked again after
that, so an editor's save in between is put back. `clean` removes files that a crash left behind."""

import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..durable import flush, make_folder, try_lock
from ..errors import WorkspaceError

MAX_SIZE = 64 << 20  # bytes
NEW, SWAP = ".jiyi-new", ".jiyi-swap"  # suffixes of temporary files
_PREFIX = 16  # characters of a checksum in a file name
_LOCK_RETRY_S = 0.02
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


class Changed(Exception):
    """The file has changed since it was read; nothing was written."""


class Refused(ValueError):
    """The path may not be read or written."""


def checksum(data: bytes) -> str:
    return sha256(data).hexdigest()


def check_path(root: Path, relative: str) -> Path:
    """Return the path of a file in the workspace; raise if a part of it leads elsewhere."""
    path = root
    for part in Path(relative).parts:
        if part in ("..", "/", "") or Path(part).is_absolute():
            raise Refused("lies outside the workspace")
        path /= part
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(os.lstat(path).st_mode):
                raise Refused("is, or lies behind, a symbolic link")
    return path


def read(path: Path) -> bytes | None:
    """Return the content of a file; None if it does not exist."""
    try:
        handle = os.open(path, os.O_RDONLY | _flag("O_NOFOLLOW") | _flag("O_NONBLOCK") | _flag("O_CLOEXEC"))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused("is a symbolic link") from error
        raise
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Refused("is not a regular file")
        if found.st_size > MAX_SIZE:
            raise Refused(f"has more than {MAX_SIZE >> 20} MiB")
        return file.read()


def _flag(name: str) -> int:
    """Return a flag of `os.open`, or 0 on systems without it."""
    return int(getattr(os, name, 0))


def replace_file(path: Path, data: bytes, *, expected: str | None) -> None:
    """Replace the content that has the checksum `expected` (None: no file); raise `Changed` if it is another."""
    make_folder(path.parent)
    new = path.with_name(f".{path.name}.{secrets.token_hex(6)}{NEW}")
    try:
        _write(new, data)
        if expected is None:
            _create(new, path)
        else:
            shutil.copystat(path, new, follow_symlinks=False)
            _keep_owner(path, new)
            os.utime(new)
            _exchange_checked(new, path, data, expected)
    except FileNotFoundError as error:
        raise Changed from error
    finally:
        with suppress(OSError):
            os.unlink(new)
    flush(path.parent)


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _flag("O_NOFOLLOW") | _flag("O_CLOEXEC"), 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _create(new: Path, path: Path) -> None:
    try:
        os.link(new, path)  # unlike a rename, it never overwrites
    except FileExistsError as error:
        raise Changed from error
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        if os.path.lexists(path):
            raise Changed from error
        os.replace(new, path)


def _exchange_checked(new: Path, path: Path, data: bytes, expected: str) -> None:
    if not _has_checksum(path, expected):
        raise Changed
    swap = path.with_name(f".{path.name}.{expected[:_PREFIX]}-{checksum(data)[:_PREFIX]}{SWAP}")
    os.replace(new, swap)  # the name says which contents it may have
    try:
        exchanged = _exchange(swap, path)
        if not exchanged:
            if not _has_checksum(path, expected):
                raise Changed
            os.replace(swap, path)
            return
    except BaseException:
        with suppress(OSError):
            os.unlink(swap)
        raise
    if not _has_checksum(swap, expected):
        _give_back(swap, path, checksum(data))
        raise Changed
    os.unlink(swap)


def _give_back(swap: Path, path: Path, ours: str) -> None:
    """Put back a save that came between our check and the exchange; it is in `swap` now."""
    _exchange(swap, path)
    if _has_checksum(swap, ours):
        os.unlink(swap)
    else:  # another save after the exchange: keep the later one
        os.replace(swap, path)


def _has_checksum(path: Path, expected: str) -> bool:
    try:
        found = read(path)
    except Refused:
        return False
    return found is not None and checksum(found).startswith(expected)


def _keep_owner(path: Path, new: Path) -> None:
    there, made = os.lstat(path), os.lstat(new)
    if (there.st_uid, there.st_gid) != (made.st_uid, made.st_gid) and hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(new, there.st_uid, there.st_gid)


@cache
def _renameat2() -> Any:
    """Return the Linux call that can exchange two files; None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two files atomically. Return False if the file system cannot."""
    call = _renameat2()
    if call is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _UNSUPPORTED:
        return False
    raise OSError(problem, os.strerror(problem), str(other))


def clean(folder: Path) -> list[str]:
    """Remove files that a crash left behind; put back an interrupted save. Return messages about those."""
    messages = []
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    for name in sorted(names):
        left = folder / name
        if name.startswith(".") and name.endswith(NEW):
            os.unlink(left)
        elif name.startswith(".") and name.endswith(SWAP):
            target, old, ours = _read_swap_name(name)
            if _has_checksum(left, old) or _has_checksum(left, ours):
                os.unlink(left)
                continue
            path = folder / target
            if not os.path.lexists(path) or _has_checksum(path, ours):
                os.replace(left, path)
                messages.append(f"{target}: a save that a crash interrupted was put back")
            else:
                rescued = folder / f"{Path(target).stem}.rescued-{secrets.token_hex(3)}{Path(target).suffix}"
                os.replace(left, rescued)
                messages.append(f"{target}: a save that a crash interrupted is kept as {rescued.name}")
    return messages


def _read_swap_name(name: str) -> tuple[str, str, str]:
    target, _, sums = name.removeprefix(".").removesuffix(SWAP).rpartition(".")
    old, _, ours = sums.partition("-")
    return target, old or "?", ours or "?"


@contextmanager
def lock(path: Path, *, wait_s: float) -> Iterator[None]:
    """Hold a lock between processes; the lock ends with the process."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _flag("O_CLOEXEC") | _flag("O_NOFOLLOW"), 0o600)
    try:
        until = time.monotonic() + wait_s
        while not try_lock(handle):
            if time.monotonic() > until:
                raise WorkspaceError(f"{path.parent.parent} is locked by another process for {wait_s:g} s: try again")
            time.sleep(_LOCK_RETRY_S)
        yield
    finally:
        os.close(handle)
