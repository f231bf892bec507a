"""Reading and replacing a person's files without ever damaging one.

A file is replaced as a whole: written beside it, flushed, exchanged in one step, the folder flushed. It is replaced
only if it still is what was read. Where the system can exchange two files (Linux), what was there is looked at after
the exchange, too: a save by an editor in the very moment between is given back. What a crash leaves behind has a name
that tells what it is, and `clean` deals with it.
"""

from __future__ import annotations

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

from ..durable import flush_folder, make_folder
from ..errors import WorkspaceError

LARGEST = 64 << 20  # bytes
NEW, SWAP = ".jiyi-new", ".jiyi-swap"  # endings of files in the making
_SHOWN = 16  # characters of a checksum in a file's name
_LOOK_AGAIN_S = 0.02
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


class Changed(Exception):
    """The file is not what it was when it was read; nothing was written."""


class Refused(ValueError):
    """This is nothing that may be read or written here."""


def checksum(data: bytes) -> str:
    return sha256(data).hexdigest()


# -- looking --------------------------------------------------------------------------------------------------------


def check_path(root: Path, relative: str) -> Path:
    """The path of a file in the workspace. No part of it below the root may lead elsewhere."""
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
    """A file's content; None if there is none."""
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
            raise Refused("is no ordinary file")
        if found.st_size > LARGEST:
            raise Refused(f"has more than {LARGEST >> 20} MiB")
        return file.read()


def _flag(name: str) -> int:
    """Not every system has every one."""
    return int(getattr(os, name, 0))


# -- replacing ------------------------------------------------------------------------------------------------------


def replace_file(path: Path, data: bytes, *, expected: str | None) -> None:
    """Put `data` in place of the content with the checksum `expected`; None: there is no file yet. Raises `Changed`
    if something else is there."""
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
    flush_folder(path.parent)


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
        os.link(new, path)  # which, unlike a rename, never overwrites
    except FileExistsError as error:
        raise Changed from error
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        if os.path.lexists(path):
            raise Changed from error
        os.replace(new, path)


def _exchange_checked(new: Path, path: Path, data: bytes, expected: str) -> None:
    if not _is(path, expected):
        raise Changed
    swap = path.with_name(f".{path.name}.{expected[:_SHOWN]}-{checksum(data)[:_SHOWN]}{SWAP}")
    os.replace(new, swap)  # from here on the name tells whose content it can be
    try:
        exchanged = _exchange(swap, path)
        if not exchanged:
            if not _is(path, expected):
                raise Changed
            os.replace(swap, path)
            return
    except BaseException:
        with suppress(OSError):
            os.unlink(swap)
        raise
    if not _is(swap, expected):
        _give_back(swap, path, checksum(data))
        raise Changed
    os.unlink(swap)


def _give_back(swap: Path, path: Path, ours: str) -> None:
    """Somebody saved between our look and the exchange: theirs is in `swap` now."""
    _exchange(swap, path)
    if _is(swap, ours):
        os.unlink(swap)
    else:  # and once more after the exchange: the later save counts
        os.replace(swap, path)


def _is(path: Path, expected: str) -> bool:
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
    """Linux's call that can exchange two files; None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two files in one step. → False if the system or the file system cannot"""
    call = _renameat2()
    if call is None:
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _CANNOT:
        return False
    raise OSError(problem, os.strerror(problem), str(other))


# -- after a crash --------------------------------------------------------------------------------------------------


def clean(folder: Path) -> list[str]:
    """Remove what a crash left behind. A person's save that is found among it is put back; → what was found so"""
    told = []
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
            if _is(left, old) or _is(left, ours):
                os.unlink(left)
                continue
            path = folder / target
            if not os.path.lexists(path) or _is(path, ours):
                os.replace(left, path)
                told.append(f"{target}: a save that a crash had caught was put back")
            else:
                rescued = folder / f"{Path(target).stem}.rescued-{secrets.token_hex(3)}{Path(target).suffix}"
                os.replace(left, rescued)
                told.append(f"{target}: a save that a crash had caught is kept as {rescued.name}")
    return told


def _read_swap_name(name: str) -> tuple[str, str, str]:
    target, _, sums = name.removeprefix(".").removesuffix(SWAP).rpartition(".")
    old, _, ours = sums.partition("-")
    return target, old or "?", ours or "?"


# -- one at a time --------------------------------------------------------------------------------------------------


@contextmanager
def lock(path: Path, *, wait_s: float) -> Iterator[None]:
    """Hold a lock between processes; it ends with the process."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _flag("O_CLOEXEC") | _flag("O_NOFOLLOW"), 0o600)
    try:
        until = time.monotonic() + wait_s
        while not _try_lock(handle):
            if time.monotonic() > until:
                raise WorkspaceError(f"another process has kept {path.parent.parent} busy for {wait_s:g} s: try again")
            time.sleep(_LOOK_AGAIN_S)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
            return False
        raise
    return True
